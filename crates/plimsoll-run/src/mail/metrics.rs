//! What the family counts: its tasks, the commands inside them, and what became of messages.

use plimsoll_measure::{Metric, MetricKind, metric};
use plimsoll_workload::mail::MailTask;

/// The names of the metrics of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskMetrics {
    /// The task.
    pub task: MailTask,
    /// Response, from the intended start.
    pub response: &'static str,
    /// From the actual start.
    pub service: &'static str,
    /// Came due.
    pub planned: &'static str,
    /// Did not come to its end.
    pub refused: &'static str,
}

const fn timing(name: &'static str, meaning: &'static str) -> Metric {
    metric(name, MetricKind::Timing, "ns", meaning)
}

const fn counter(name: &'static str, meaning: &'static str) -> Metric {
    metric(name, MetricKind::Counter, "count", meaning)
}

const fn amount(name: &'static str, meaning: &'static str) -> Metric {
    metric(name, MetricKind::Counter, "byte", meaning)
}

const fn level(name: &'static str, meaning: &'static str) -> Metric {
    metric(name, MetricKind::Level, "count", meaning)
}

macro_rules! task {
    ($task:ident, $name:literal) => {
        TaskMetrics {
            task: MailTask::$task,
            response: $name,
            service: concat!($name, "_service"),
            planned: concat!($name, "_planned"),
            refused: concat!($name, "_refused"),
        }
    };
}

/// What a load may ask for of a server that speaks IMAP.
pub const IMAP_TASKS: usize = 11;

/// What a load may ask for: first of a server, then of a store of our own alone.
pub const TASKS: [TaskMetrics; 23] = [
    task!(Logon, "mail_logon"),
    task!(Logoff, "mail_logoff"),
    task!(SendMail, "mail_send_mail"),
    task!(ReadAndProcessMessages, "mail_read_and_process_messages"),
    task!(MoveMail, "mail_move_mail"),
    task!(DeleteMail, "mail_delete_mail"),
    task!(ExportMail, "mail_export_mail"),
    task!(CreateFolder, "mail_create_folder"),
    task!(SynchronizeFolders, "mail_synchronize_folders"),
    task!(Search, "mail_search"),
    task!(RequestMeeting, "mail_request_meeting"),
    task!(BrowseCalendar, "mail_browse_calendar"),
    task!(MakeAppointment, "mail_make_appointment"),
    task!(BrowseContacts, "mail_browse_contacts"),
    task!(CreateContact, "mail_create_contact"),
    task!(BrowseTasks, "mail_browse_tasks"),
    task!(CreateTask, "mail_create_task"),
    task!(PostFreeBusy, "mail_post_free_busy"),
    task!(PublicFolderPost, "mail_public_folder_post"),
    task!(BrowsePublicFolder, "mail_browse_public_folder"),
    task!(EditRules, "mail_edit_rules"),
    task!(DownloadOab, "mail_download_oab"),
    task!(EditSmartFolders, "mail_edit_smart_folders"),
];

/// The operations of the family, in the order of [`TASKS`].
pub const OPERATIONS: [&str; TASKS.len()] = operations();

const fn operations() -> [&'static str; TASKS.len()] {
    let mut names = [""; TASKS.len()];
    let mut position = 0;
    while position < TASKS.len() {
        names[position] = TASKS[position].response;
        position += 1;
    }
    names
}

pub const CONNECT: &str = "mail_connect";
pub const LOGIN: &str = "mail_login";
pub const SELECT: &str = "mail_select";
pub const LIST: &str = "mail_list";
pub const PAGE: &str = "mail_page";
pub const HEADERS: &str = "mail_headers";
pub const BODY: &str = "mail_body";
pub const ATTACHMENT: &str = "mail_attachment";
pub const STORE: &str = "mail_store";
pub const MOVE: &str = "mail_move";
pub const EXPUNGE: &str = "mail_expunge";
pub const APPEND: &str = "mail_append";
pub const SEARCH_COMMAND: &str = "mail_search_command";
pub const STATUS: &str = "mail_status";
pub const CREATE: &str = "mail_create";
pub const CHANGES: &str = "mail_changes";
pub const NOOP: &str = "mail_noop";
pub const SUBMIT: &str = "mail_submit";
pub const CALENDAR: &str = "mail_calendar";
pub const ITEM: &str = "mail_item";
pub const LOOK_UP: &str = "mail_look_up";
pub const DELIVERY: &str = "mail_delivery";
pub const CONNECTION_LOST: &str = "mail_connection_lost";
pub const TIMED_OUT: &str = "mail_timed_out";
pub const REFUSED_COMMANDS: &str = "mail_refused_commands";
pub const BAD_COMMANDS: &str = "mail_bad_commands";
pub const BODIES_WRONG: &str = "mail_bodies_wrong";
pub const UNPARSED: &str = "mail_unparsed";
pub const VALIDITY_CHANGED: &str = "mail_validity_changed";
pub const MESSAGES_SENT: &str = "mail_messages_sent";
pub const RECIPIENTS_ACCEPTED: &str = "mail_recipients_accepted";
pub const RECIPIENTS_REFUSED: &str = "mail_recipients_refused";
pub const MESSAGES_READ: &str = "mail_messages_read";
pub const PROBES_SENT: &str = "mail_probes_sent";
pub const PROBES_LOST: &str = "mail_probes_lost";
pub const MAILBOX_MOVED: &str = "mail_mailbox_moved";
pub const MAILBOX_CLOSED: &str = "mail_mailbox_closed";
pub const MOVES_PLANNED: &str = "mail_moves_planned";
pub const MOVES_READ: &str = "mail_moves_read_bytes";
pub const MOVES_WRITTEN: &str = "mail_moves_written_bytes";
pub const MOVES_LOG: &str = "mail_moves_log_bytes";
pub const OPEN: &str = "mail_open";
pub const WAITING: &str = "mail_waiting";
pub const QUEUED: &str = "mail_queued";
pub const COMMANDS_OPEN: &str = "mail_commands_open";

const OTHERS: [Metric; 45] = [
    timing(
        CONNECT,
        "connections to a server, until it has greeted and TLS has begun, where there is TLS",
    ),
    timing(LOGIN, "logins"),
    timing(SELECT, "openings of a folder"),
    timing(LIST, "lists of folders"),
    timing(PAGE, "pages of rows, as a mail program shows them"),
    timing(HEADERS, "headers that tell our messages from others"),
    timing(BODY, "messages that were read, with the bytes of their contents"),
    timing(ATTACHMENT, "attachments that were opened, likewise"),
    timing(STORE, "flags that were set"),
    timing(MOVE, "moves to another folder"),
    timing(EXPUNGE, "removals"),
    timing(APPEND, "messages that were laid into a folder"),
    timing(SEARCH_COMMAND, "searches by the server"),
    timing(STATUS, "questions for the state of a folder"),
    timing(CREATE, "folders that were made"),
    timing(CHANGES, "questions of a cached client for what has changed"),
    timing(NOOP, "questions for what is new"),
    timing(SUBMIT, "messages that were handed to a server, from the sender's name to the answer"),
    timing(CALENDAR, "appointments of a week that were shown"),
    timing(ITEM, "appointments, contacts, tasks, posts, rules and free times that were written"),
    timing(LOOK_UP, "rules that were looked at, and address books that were loaded"),
    timing(
        DELIVERY,
        "probe messages from the sender's name to their first sight in the mailbox; in a store of \
         ours every message from its acceptance to its delivery",
    ),
    counter(CONNECTION_LOST, "connections that broke or were given up"),
    counter(TIMED_OUT, "commands that were not answered in time"),
    counter(REFUSED_COMMANDS, "commands to which the server said NO"),
    counter(BAD_COMMANDS, "commands to which the server said BAD"),
    counter(BODIES_WRONG, "contents that are not what was sent"),
    counter(UNPARSED, "responses that the grammar does not know"),
    counter(VALIDITY_CHANGED, "folders whose UIDs became invalid"),
    counter(MESSAGES_SENT, "messages that were accepted for at least one recipient"),
    counter(RECIPIENTS_ACCEPTED, "recipients for whom a message was accepted"),
    counter(RECIPIENTS_REFUSED, "recipients that were refused"),
    counter(MESSAGES_READ, "messages that were read"),
    counter(PROBES_SENT, "probe messages that were accepted"),
    counter(PROBES_LOST, "probe messages that were not seen in time, or could not be sent"),
    timing(
        MAILBOX_MOVED,
        "mailboxes that were moved to the other database, from when they were due to the last row \
         that was deleted at the old place",
    ),
    timing(MAILBOX_CLOSED, "how long moved mailboxes were closed for their users"),
    counter(MOVES_PLANNED, "moves of mailboxes that came due"),
    amount(MOVES_READ, "bytes of values that moves read at the old place"),
    amount(MOVES_WRITTEN, "bytes of values that moves wrote at the new place"),
    amount(MOVES_LOG, "bytes of log that moves appended, at both places"),
    level(OPEN, "tasks under way"),
    level(WAITING, "tasks that are due and not begun"),
    level(QUEUED, "messages offered to a server that has not answered yet"),
    level(COMMANDS_OPEN, "commands without an answer yet"),
];

/// What the family adds to the dictionary: four of each task, then the others.
pub static METRICS: [Metric; 4 * TASKS.len() + OTHERS.len()] = all();

const fn all() -> [Metric; 4 * TASKS.len() + OTHERS.len()] {
    let mut all = [OTHERS[0]; 4 * TASKS.len() + OTHERS.len()];
    let mut position = 0;
    while position < TASKS.len() {
        let task = TASKS[position];
        all[4 * position] =
            timing(task.response, "tasks of this name, from their intended start to their end");
        all[4 * position + 1] = timing(task.service, "the same tasks, from their actual start");
        all[4 * position + 2] = counter(task.planned, "tasks of this name that came due");
        all[4 * position + 3] = counter(
            task.refused,
            "tasks of this name that were refused, not answered in time or cut off",
        );
        position += 1;
    }
    let mut other = 0;
    while other < OTHERS.len() {
        all[4 * TASKS.len() + other] = OTHERS[other];
        other += 1;
    }
    all
}

/// The metrics of a task, if a load may ask for it.
pub fn metrics_of(task: MailTask) -> Option<&'static TaskMetrics> {
    TASKS.iter().find(|metrics| metrics.task == task)
}

/// Whether a server that speaks IMAP can do a task.
pub fn is_of_imap(task: MailTask) -> bool {
    TASKS[..IMAP_TASKS].iter().any(|metrics| metrics.task == task)
}
