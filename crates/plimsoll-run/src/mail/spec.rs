//! What a plan says of a mail server, of its accounts and of the users that work on it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_clients::mail::{DeliveryProtocol, Security};
use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::mail::{Client, Corpus, Dispatch, MailHabits, MailTask, OnRead, SizeClass};

use super::metrics::{TASKS, is_of_imap, metrics_of};
use crate::spec::{DistributionSpec, InstanceSpec, LoadSpec, WorkloadSpec};

/// What only this family knows of an endpoint of a server, which stands in the place of a database.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailEndpoint {
    /// Where it speaks IMAP, `host:port`.
    pub imap: String,
    /// Where it takes messages, `host:port`.
    pub deliver: String,
}

/// When TLS begins.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TlsSpec {
    /// Never.
    None,
    /// After a greeting in the clear.
    Starttls,
    /// At once.
    Tls,
}

impl From<TlsSpec> for Security {
    fn from(spec: TlsSpec) -> Security {
        match spec {
            TlsSpec::None => Security::None,
            TlsSpec::Starttls => Security::StartTls,
            TlsSpec::Tls => Security::Tls,
        }
    }
}

/// Which protocol takes messages.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeliverSpec {
    /// LMTP, to mailboxes of this server.
    Lmtp,
    /// SMTP submission.
    Smtp,
}

impl From<DeliverSpec> for DeliveryProtocol {
    fn from(spec: DeliverSpec) -> DeliveryProtocol {
        match spec {
            DeliverSpec::Lmtp => DeliveryProtocol::Lmtp,
            DeliverSpec::Smtp => DeliveryProtocol::Smtp,
        }
    }
}

/// What an account holds when it is new.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitSpec {
    /// Folders besides the inbox.
    pub folders: u32,
    /// Messages of each of these.
    pub messages_per_folder: u32,
    /// Messages of the inbox.
    pub inbox: u32,
}

/// Messages of one size.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeSpec {
    /// How often, relative to the others.
    pub weight: f64,
    /// Bytes of the text.
    pub body_bytes: u32,
    /// Bytes of the attachment; 0 for none.
    pub attachment_bytes: u32,
}

/// What messages are like.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesSpec {
    /// How long they are.
    pub sizes: Vec<SizeSpec>,
    /// Share of the bits that cannot be compressed, 0 to 75.
    pub entropy_percent: u32,
    /// Share of the messages that have the body of another one.
    pub duplicate_percent: u32,
}

/// What only this family knows of an instance.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailInstance {
    /// TLS of IMAP.
    pub imap_tls: TlsSpec,
    /// Which protocol takes messages.
    pub deliver_protocol: DeliverSpec,
    /// TLS of that.
    pub deliver_tls: TlsSpec,
    /// Whether the sending user logs in there.
    pub deliver_login: bool,
    /// The name that certificates bear; absent: the host of the endpoint.
    pub tls_name: Option<String>,
    /// Certificates that are trusted (PEM).
    pub ca_file: Option<PathBuf>,
    /// The pattern of accounts; `{n}` is the number, `{n:04}` has leading zeros.
    pub login: String,
    /// The pattern of addresses.
    pub address: String,
    /// The number of the first account.
    pub first_account: u64,
    /// How many accounts there are.
    pub accounts: u32,
    /// Passwords, a line each: `ACCOUNT:PASSWORD`, and `*:PASSWORD` for all others.
    pub password_file: PathBuf,
    /// What the message says that marks an account as ours.
    pub marker: String,
    /// What new accounts are filled with; absent: they must be filled.
    pub init: Option<InitSpec>,
    /// What messages are like.
    pub messages: MessagesSpec,
    /// Connecting takes at most so long.
    pub connect_timeout_s: f64,
    /// A command without an answer for so long gives its connection up.
    pub command_timeout_s: f64,
    /// A server that nobody could use for so long ends the run.
    pub lost_after_s: f64,
    /// Contents of so many bytes are taken.
    pub literal_max_bytes: u64,
    /// How users are distributed over endpoints; absent: each has one where it stays.
    pub distribution: Option<DistributionSpec>,
}

impl MailInstance {
    /// What an instance says, checked: every mistake at once.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of(instance: &InstanceSpec) -> Result<MailInstance, String> {
        let spec: MailInstance = instance.options_as()?;
        let mut found = Vec::new();
        for position in 0..instance.databases.len() {
            found.extend(instance.database_options_as::<MailEndpoint>(position).err());
        }
        for (name, pattern) in [("login", &spec.login), ("address", &spec.address)] {
            if expand(pattern, 1).is_none() {
                found.push(format!(
                    "{name} is {pattern:?}; write {{n}} or {{n:04}} once in it, and no line break"
                ));
            }
        }
        if spec.accounts == 0 || spec.accounts > ACCOUNTS_MAX {
            found.push(format!("accounts is {}; take 1 to {ACCOUNTS_MAX}", spec.accounts));
        }
        let uses_tls = [spec.imap_tls, spec.deliver_tls].iter().any(|tls| *tls != TlsSpec::None);
        if uses_tls && spec.ca_file.is_none() {
            found.push("TLS needs ca_file, the certificates that are trusted; name one".into());
        }
        if spec.deliver_login && spec.deliver_protocol == DeliverSpec::Lmtp {
            found.push("deliver_login is for smtp; LMTP knows no login".into());
        }
        found.extend(spec.distribution.and_then(DistributionSpec::mistake));
        if spec.marker.is_empty() || spec.marker.contains(['\r', '\n', '"', '\\', '\0']) {
            found.push(
                "marker must be a word or more without quotes, backslashes and line breaks".into(),
            );
        }
        for (name, value) in [
            ("connect_timeout_s", spec.connect_timeout_s),
            ("command_timeout_s", spec.command_timeout_s),
            ("lost_after_s", spec.lost_after_s),
        ] {
            if !(value.is_finite() && (0.001..=86_400.0).contains(&value)) {
                found.push(format!("{name} is {value}; take 0.001 to 86400"));
            }
        }
        if let Err(error) = spec.corpus(0) {
            found.push(error);
        }
        match found.is_empty() {
            true => Ok(spec),
            false => Err(format!("instance {}: {}", instance.name, found.join("; "))),
        }
    }

    /// What messages are made of.
    ///
    /// # Errors
    /// Values that are not possible.
    pub fn corpus(&self, seed: u64) -> Result<Corpus, String> {
        self.messages.corpus(seed)
    }
}

impl MessagesSpec {
    /// What they are made of.
    ///
    /// # Errors
    /// Values that are not possible.
    pub fn corpus(&self, seed: u64) -> Result<Corpus, String> {
        let sizes = self.sizes.iter().map(|size| SizeClass {
            weight: size.weight,
            body_bytes: size.body_bytes,
            attachment_bytes: size.attachment_bytes,
        });
        let (entropy, duplicates) = (self.entropy_percent, self.duplicate_percent);
        let corpus = Corpus::new(seed, sizes.collect(), entropy, duplicates);
        corpus.map_err(|error| error.to_string())
    }
}

/// Numbers of accounts fit into the numbers of messages.
const ACCOUNTS_MAX: u32 = 1_000_000;

/// A pattern with a number in it; nothing when it has no place for one.
pub fn expand(pattern: &str, number: u64) -> Option<String> {
    if pattern.contains(['\r', '\n', '\0', '<', '>']) {
        return None;
    }
    let (before, rest) = pattern.split_once("{n")?;
    let (width, after) = rest.split_once('}')?;
    let width: usize = match width {
        "" => 0,
        width => width.strip_prefix(":0")?.parse().ok()?,
    };
    if after.contains('{') || width > 20 {
        return None;
    }
    Some(format!("{before}{number:0width$}{after}"))
}

/// A task and how often a user does it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// One of the names of the published score sheet.
    pub task: String,
    /// How often in a day.
    pub per_day: f64,
}

/// Which kind of mail program.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientSpec {
    /// It asks the server for what it shows.
    Online,
    /// It keeps a copy and asks for changes.
    Cached,
}

/// How tasks are spaced.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DispatchSpec {
    /// At one interval for the group.
    Even,
    /// Independently of each other.
    Poisson,
}

/// How many recipients a message has.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecipientsSpec {
    /// How often, relative to the others.
    pub weight: f64,
    /// So many.
    pub count: u32,
}

/// What becomes of messages that are read: shares of 1.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnReadSpec {
    /// Answered to the sender.
    pub reply: f64,
    /// Answered to all.
    pub reply_all: f64,
    /// Passed on.
    pub forward: f64,
    /// Moved to another folder.
    pub r#move: f64,
    /// Deleted.
    pub delete: f64,
    /// Its attachment opened, where it has one.
    pub attachment: f64,
}

/// What only this family knows of a workload.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailSpec {
    /// What a user does in a day.
    pub tasks: Vec<TaskSpec>,
    /// Which kind of mail program users have.
    pub client: ClientSpec,
    /// Hours of a day.
    pub day_h: f64,
    /// How tasks are spaced.
    pub dispatch: DispatchSpec,
    /// How many recipients messages have.
    pub recipients: Vec<RecipientsSpec>,
    /// What becomes of messages that are read.
    pub on_read: OnReadSpec,
    /// A visit trims the inbox to so many messages.
    pub inbox_limit: u32,
    /// Rows that an online client shows.
    pub page_rows: u32,
    /// Unread messages that one visit reads at most.
    pub read_max: u32,
    /// Whether connections wait in IDLE between tasks.
    pub idle: bool,
    /// On a store of our own: older messages that a visit of an online user looks at, none if
    /// absent.
    pub older_per_visit: Option<u32>,
    /// On a store of our own: messages that jobs read behind each task on average, none if absent.
    pub background_reads_per_task: Option<f64>,
    /// On a store of our own with a further database: mailboxes that are moved in an hour, none if
    /// absent.
    pub mailbox_moves_per_h: Option<f64>,
    /// Probe messages in a minute; 0 for none.
    pub probes_per_minute: f64,
    /// How often a probe is looked for.
    pub probe_poll_ms: u64,
    /// A probe that is not seen for so long is lost.
    pub probe_timeout_s: f64,
    /// Unfinished tasks for each user that end the run.
    pub unfinished_max_per_user: f64,
}

impl MailSpec {
    /// What a workload says, which was checked before the run began.
    ///
    /// # Errors
    /// What is wrong.
    pub fn of(workload: &WorkloadSpec) -> Result<(MailSpec, MailHabits), String> {
        MailSpec::checked(workload, false)
    }

    /// What a workload says, checked: every mistake at once.
    ///
    /// # Arguments
    /// * `speaks_imap`: whether a server carries it out, which can do less than our own store.
    ///
    /// # Errors
    /// What is wrong.
    pub fn checked(
        workload: &WorkloadSpec,
        speaks_imap: bool,
    ) -> Result<(MailSpec, MailHabits), String> {
        let spec: MailSpec = workload.options_as()?;
        let mut found = Vec::new();
        let mut tasks = Vec::new();
        for TaskSpec { task, per_day } in &spec.tasks {
            match MailTask::of_name(task) {
                Some(known) if known.is_phase() || metrics_of(known).is_some() => {
                    tasks.push((known, *per_day))
                }
                Some(_) | None => found.push(format!(
                    "there is no task {task}; write one of {}",
                    TASKS.map(|metrics| metrics.task.name()).join(", ")
                )),
            }
        }
        let habits = spec.habits(tasks);
        if !spec.tasks.is_empty() && habits.tasks.is_empty() {
            // What is wrong with them was said.
        } else {
            found.extend(habits.mistakes());
        }
        if speaks_imap {
            found.extend(spec.cannot_by_imap(&habits));
        }
        if workload.instances.len() != 1 {
            found.push(format!(
                "it works on {} servers; write one workload for each",
                workload.instances.len()
            ));
        }
        if !matches!(workload.load, LoadSpec::Sessions(load) if load.shared) {
            found.push(
                "its load must be {\"sessions\": USERS, \"shared\": true}: a session is a user"
                    .into(),
            );
        }
        for (name, value, least) in [
            ("day_h", spec.day_h, 0.0),
            ("probes_per_minute", spec.probes_per_minute, 0.0),
            ("probe_timeout_s", spec.probe_timeout_s, 0.001),
            ("unfinished_max_per_user", spec.unfinished_max_per_user, 0.001),
        ] {
            if !(value.is_finite() && (least..=1e6).contains(&value)) {
                found.push(format!("{name} is {value}; take a number up to 1000000"));
            }
        }
        let behind = spec.background_reads_per_task.unwrap_or_default();
        if !(0.0..=1_000.0).contains(&behind) {
            found.push(format!("background_reads_per_task is {behind}; take 0 to 1000"));
        }
        if spec.mailbox_moves_per_h.is_some_and(|rate| !(0.0..=1e6).contains(&rate) || rate == 0.0)
        {
            found.push("mailbox_moves_per_h is not above 0 and up to 1000000; leave it out".into());
        }
        if spec.probe_poll_ms == 0 {
            found.push("probe_poll_ms is 0; take at least 1".into());
        }
        match found.is_empty() {
            true => Ok((spec, habits)),
            false => Err(format!("workload {}: {}", workload.name, found.join("; "))),
        }
    }

    /// What a server that speaks IMAP cannot do of such a load.
    fn cannot_by_imap(&self, habits: &MailHabits) -> Vec<String> {
        let mut found = Vec::new();
        let cannot = habits.tasks.iter().filter(|(task, _)| !is_of_imap(*task));
        let names: Vec<_> = cannot.map(|(task, _)| task.name()).collect();
        if !names.is_empty() {
            found.push(format!(
                "{} cannot be done by a server that speaks IMAP; leave them out, or take another \
                 target",
                names.join(", ")
            ));
        }
        if self.older_per_visit.is_some()
            || self.background_reads_per_task.is_some()
            || self.mailbox_moves_per_h.is_some()
        {
            found.push(
                "older_per_visit, background_reads_per_task and mailbox_moves_per_h are of a mail \
                 store on the engine; leave them out"
                    .into(),
            );
        }
        found
    }

    fn habits(&self, tasks: Vec<(MailTask, f64)>) -> MailHabits {
        let OnReadSpec { reply, reply_all, forward, r#move, delete, attachment } = self.on_read;
        MailHabits {
            tasks,
            day_ns: (self.day_h * 3600.0 * NANOS_PER_SECOND as f64) as Nanos,
            dispatch: match self.dispatch {
                DispatchSpec::Even => Dispatch::Even,
                DispatchSpec::Poisson => Dispatch::Poisson,
            },
            client: match self.client {
                ClientSpec::Online => Client::Online,
                ClientSpec::Cached => Client::Cached,
            },
            recipients: self.recipients.iter().map(|each| (each.weight, each.count)).collect(),
            on_read: OnRead { reply, reply_all, forward, r#move, delete, attachment },
            inbox_limit: self.inbox_limit,
            page_rows: self.page_rows,
            read_max: self.read_max,
        }
    }
}
