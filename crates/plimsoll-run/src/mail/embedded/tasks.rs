//! What a user does in each of the tasks of the score sheet, as steps on the store: an online user
//! reads what it shows each time; a cached one asks what has changed, reads each message once, and
//! tells the store of what it did in one go.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use plimsoll_engine::error::Result;
use plimsoll_io::{Handle, NANOS_PER_SECOND, Random};
use plimsoll_stores::mail::{
    CONTACTS, Entry, INBOX, MailStore, Property, Read, Rule, Shown, TASKS,
};
use plimsoll_workload::mail::{Client, MailHabits, MailOrder, MailTask, Reaction};

use crate::load::Book;
use crate::mail::gauges::{Gauge, Gauges};
use crate::mail::metrics;

/// Words that are looked for; they are among those that texts are made of.
const SEARCHED_WORDS: u64 = 64;
/// Minutes of a week: what a calendar shows.
const WEEK: i64 = 7 * 24 * 60;
/// Minutes of a meeting.
const MEETING: i64 = 30;
/// Rules and smart folders of a user at most.
const RULES: u64 = 8;
/// Bytes of two months of free and busy half hours, two bits each, and names; Plimsoll's choice.
const FREE_BUSY_BYTES: usize = 1_024;
/// A rule files the mail of one sender of so many; Plimsoll's choice.
const RULE_SENDERS: u32 = 16;
/// Bytes of a smart folder; Plimsoll's choice.
const SMART_FOLDER_BYTES: usize = 512;

/// What a user keeps from one task to the next.
#[derive(Default)]
pub struct Desk {
    /// A cached program: what it knows of the inbox.
    known: BTreeSet<Entry>,
    /// Came and was not read.
    unread: VecDeque<Entry>,
    /// Changes it was told of; nothing before it has asked once.
    until: Option<i64>,
}

/// A user during one task.
pub struct User<'a> {
    /// What it keeps.
    pub desk: Desk,
    /// Its mailbox.
    pub account: u32,
    /// Where that lies.
    pub store: &'a Rc<MailStore>,
    /// What it does.
    pub habits: &'a MailHabits,
    /// Older messages that it looks at in a visit, where it is online.
    pub older_per_visit: u32,
    /// Time.
    pub handle: &'a Handle,
    /// What is under way.
    pub gauges: &'a Rc<Gauges>,
    /// Where times and counts go.
    pub book: &'a mut Book,
    /// Bytes of contents that were read.
    pub bytes_read: u64,
    /// Decides what is left open.
    pub random: Random,
}

impl User<'_> {
    /// Waits for one step and notes how long it took.
    async fn timed<T>(
        &mut self,
        metric: &'static str,
        step: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _open = self.gauges.enter(Gauge::Command);
        let begun = self.handle.now();
        let value = step.await?;
        self.book.note(metric, self.handle.now() - begun);
        Ok(value)
    }

    async fn page(&mut self, mailbox: u32, folder: i32) -> Result<Vec<Shown>> {
        let (store, rows) = (self.store.clone(), self.habits.page_rows as usize);
        self.timed(metrics::PAGE, store.page(mailbox, folder, rows, false)).await
    }

    async fn hierarchy(&mut self) -> Result<Vec<(i32, u64)>> {
        let store = self.store.clone();
        self.timed(metrics::LIST, store.folders(self.account)).await
    }

    /// Reads a message; nothing when it is not there.
    async fn read(&mut self, entry: Entry) -> Result<Option<Read>> {
        let store = self.store.clone();
        let found = self.timed(metrics::BODY, store.read(self.account, entry)).await?;
        let Some(read) = found else {
            return Ok(None);
        };
        self.book.count(metrics::MESSAGES_READ, 1);
        self.book.count(metrics::BODIES_WRONG, u64::from(!read.is_right));
        self.bytes_read += read.bytes;
        Ok(Some(read))
    }

    async fn open_attachment(&mut self, entry: Entry) -> Result<()> {
        let store = self.store.clone();
        let step = store.read_attachment(self.account, entry);
        if let Some(read) = self.timed(metrics::ATTACHMENT, step).await? {
            self.book.count(metrics::BODIES_WRONG, u64::from(!read.is_right));
            self.bytes_read += read.bytes;
        }
        Ok(())
    }

    async fn delete(&mut self, entries: &[Entry]) -> Result<()> {
        if !entries.is_empty() {
            let store = self.store.clone();
            self.timed(metrics::EXPUNGE, store.delete(self.account, entries)).await?;
            entries.iter().for_each(|entry| {
                self.desk.known.remove(entry);
            });
        }
        Ok(())
    }

    async fn shift(&mut self, entries: &[Entry]) -> Result<()> {
        if !entries.is_empty() {
            let store = self.store.clone();
            let into = store.filling().folder(self.random.next_u64() as u32);
            self.timed(metrics::MOVE, store.shift(self.account, entries, into)).await?;
            entries.iter().for_each(|entry| {
                self.desk.known.remove(entry);
            });
        }
        Ok(())
    }

    async fn mark_read(&mut self, entries: &[Entry]) -> Result<()> {
        if !entries.is_empty() {
            let store = self.store.clone();
            self.timed(metrics::STORE, store.mark_read(self.account, entries)).await?;
        }
        Ok(())
    }

    /// Mailboxes by chance, each once, the user's own only where there is no other.
    fn draw_recipients(&mut self, count: u32) -> Vec<u32> {
        let all = u64::from(self.store.filling().mailboxes);
        if all == 1 {
            return vec![0];
        }
        let mut drawn = Vec::new();
        let wanted = u64::from(count).min(all - 1) as usize;
        while drawn.len() < wanted {
            let other = u64::from(self.account) + 1 + self.random.below(all - 1);
            let other = (other % all) as u32;
            if !drawn.contains(&other) {
                drawn.push(other);
            }
        }
        drawn
    }

    /// Writes a message, hands it in and lays a copy into the folder of sent ones.
    async fn send(&mut self, to: &[u32], prefix: &str, is_meeting: bool) -> Result<()> {
        let store = self.store.clone();
        let draft = store.write(self.account, to, prefix, is_meeting)?;
        self.timed(metrics::SUBMIT, store.submit(&draft)).await?;
        self.book.count(metrics::MESSAGES_SENT, 1);
        self.book.count(metrics::RECIPIENTS_ACCEPTED, to.len() as u64);
        self.timed(metrics::APPEND, store.keep_sent(&draft)).await
    }

    async fn send_new(&mut self, prefix: &str, is_meeting: bool) -> Result<()> {
        let count = self.habits.draw_recipients(&mut self.random);
        let to = self.draw_recipients(count);
        self.send(&to, prefix, is_meeting).await
    }

    async fn answer(&mut self, author: u32, reaction: Reaction) -> Result<()> {
        if reaction.reply {
            let to = match author == self.account {
                true => self.draw_recipients(1),
                false => vec![author],
            };
            self.send(&to, "Re: ", false).await?;
        }
        // As many as a new message has stand for those who had the message, too.
        for (is_wanted, prefix) in [(reaction.reply_all, "Re: "), (reaction.forward, "Fwd: ")] {
            if is_wanted {
                self.send_new(prefix, false).await?;
            }
        }
        Ok(())
    }

    /// Keeps a property anew under a number by chance.
    async fn keep(&mut self, kind: Property, numbers: u64, bytes: usize) -> Result<()> {
        let store = self.store.clone();
        let number = self.random.below(numbers) as u32;
        let mut content = vec![0; bytes];
        self.random.fill(&mut content);
        let step = store.put(self.account, kind, number, &content);
        self.timed(metrics::ITEM, step).await
    }

    fn minute(&self) -> i64 {
        (self.handle.clock().anchor().utc_ns / (60 * NANOS_PER_SECOND)) as i64
    }

    fn is_cached(&self) -> bool {
        self.habits.client == Client::Cached
    }
}

/// Does one task.
///
/// # Errors
/// What the engine says.
pub async fn carry_out(user: &mut User<'_>, task: MailTask) -> Result<()> {
    let store = user.store.clone();
    let public = store.filling().public();
    match task {
        MailTask::Logon | MailTask::SynchronizeFolders => {
            user.hierarchy().await?;
            match user.is_cached() {
                true => changes(user).await,
                false => user.page(user.account, INBOX).await.map(drop),
            }
        }
        // Nothing of a session is kept on the disk.
        MailTask::Logoff => Ok(()),
        MailTask::SendMail => user.send_new("", false).await,
        MailTask::RequestMeeting => {
            make_appointment(user).await?;
            user.send_new("", true).await
        }
        MailTask::ReadAndProcessMessages => read_and_process(user).await,
        MailTask::MoveMail => match any_message(user).await? {
            Some(entry) => user.shift(&[entry]).await,
            None => Ok(()),
        },
        MailTask::DeleteMail => match any_message(user).await? {
            Some(entry) => user.delete(&[entry]).await,
            None => Ok(()),
        },
        MailTask::ExportMail => export(user).await,
        MailTask::CreateFolder => {
            user.timed(metrics::CREATE, store.create_folder(user.account)).await.map(drop)
        }
        MailTask::Search => search(user).await,
        MailTask::MakeAppointment => make_appointment(user).await,
        // A cached program has all this in its copy.
        MailTask::BrowseCalendar | MailTask::BrowseContacts | MailTask::BrowseTasks
            if user.is_cached() =>
        {
            Ok(())
        }
        MailTask::BrowseCalendar => {
            let from = user.minute();
            let step = store.appointments(user.account, from, from + WEEK);
            user.timed(metrics::CALENDAR, step).await.map(drop)
        }
        MailTask::BrowseContacts => browse(user, user.account, CONTACTS).await,
        MailTask::BrowseTasks => browse(user, user.account, TASKS).await,
        MailTask::CreateContact => post(user, user.account, CONTACTS).await,
        MailTask::CreateTask => post(user, user.account, TASKS).await,
        MailTask::PostFreeBusy => user.keep(Property::FreeBusy, 1, FREE_BUSY_BYTES).await,
        MailTask::EditRules => {
            user.timed(metrics::LOOK_UP, store.rules(user.account)).await?;
            let rule = Rule {
                senders: RULE_SENDERS,
                sender: user.random.below(RULE_SENDERS.into()) as u32,
                folder: store.filling().folder(user.random.next_u64() as u32),
            };
            let number = user.random.below(RULES) as u32;
            user.timed(metrics::ITEM, store.put_rule(user.account, number, rule)).await
        }
        MailTask::EditSmartFolders => {
            user.keep(Property::SmartFolder, RULES, SMART_FOLDER_BYTES).await?;
            user.page(user.account, INBOX).await.map(drop)
        }
        MailTask::DownloadOab => {
            let step = store.properties(public, Property::AddressBook);
            user.bytes_read += user.timed(metrics::LOOK_UP, step).await?;
            Ok(())
        }
        MailTask::PublicFolderPost => {
            let folder = store.filling().folder(user.random.next_u64() as u32);
            post(user, public, folder).await
        }
        MailTask::BrowsePublicFolder => {
            let folder = store.filling().folder(user.random.next_u64() as u32);
            browse(user, public, folder).await
        }
        MailTask::InitializeMailbox
        | MailTask::UserInit
        | MailTask::UserTerm
        | MailTask::ModuleInit
        | MailTask::ModuleTerm => unreachable!("{} is refused with the plan", task.name()),
    }
}

async fn make_appointment(user: &mut User<'_>) -> Result<()> {
    let store = user.store.clone();
    let minute = user.minute() + user.random.below(WEEK as u64) as i64;
    let step = store.make_appointment(user.account, minute, MEETING);
    user.timed(metrics::ITEM, step).await
}

async fn post(user: &mut User<'_>, mailbox: u32, folder: i32) -> Result<()> {
    let store = user.store.clone();
    let step = store.post(mailbox, folder, user.account);
    user.timed(metrics::ITEM, step).await
}

/// Shows a folder and reads one of what it shows.
async fn browse(user: &mut User<'_>, mailbox: u32, folder: i32) -> Result<()> {
    let store = user.store.clone();
    let rows = user.page(mailbox, folder).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let shown = &rows[user.random.below(rows.len() as u64) as usize];
    if let Some(read) = user.timed(metrics::BODY, store.read(mailbox, shown.entry)).await? {
        user.book.count(metrics::BODIES_WRONG, u64::from(!read.is_right));
        user.bytes_read += read.bytes;
    }
    Ok(())
}

async fn read_and_process(user: &mut User<'_>) -> Result<()> {
    match user.is_cached() {
        true => read_cached(user).await?,
        false => {
            read_online(user).await?;
            look_back(user).await?;
        }
    }
    trim(user).await
}

/// Looks at older messages. A cached program has them in its own copy, which costs the store
/// nothing.
async fn look_back(user: &mut User<'_>) -> Result<()> {
    for _ in 0..user.older_per_visit {
        if let Some(entry) = older(user.store, &mut user.random) {
            user.read(entry).await?;
        }
    }
    Ok(())
}

async fn read_online(user: &mut User<'_>) -> Result<()> {
    user.hierarchy().await?;
    let rows = user.page(user.account, INBOX).await?;
    let unread = rows.into_iter().filter(|row| !row.is_read);
    let unread: Vec<Shown> = unread.take(user.habits.read_max as usize).collect();
    for shown in unread {
        let Some(read) = user.read(shown.entry).await? else {
            continue;
        };
        let reaction = user.habits.on_read.react(&mut user.random);
        if reaction.attachment && read.has_attachment {
            user.open_attachment(shown.entry).await?;
        }
        user.mark_read(&[shown.entry]).await?;
        user.answer(shown.sender, reaction).await?;
        if reaction.delete {
            user.delete(&[shown.entry]).await?;
        } else if reaction.r#move {
            user.shift(&[shown.entry]).await?;
        }
    }
    Ok(())
}

/// Asks what has changed in the mailbox. The first time the program lists the inbox.
async fn changes(user: &mut User<'_>) -> Result<()> {
    let store = user.store.clone();
    let Some(since) = user.desk.until else {
        let step = store.changes(user.account, 0);
        user.desk.until = Some(user.timed(metrics::CHANGES, step).await?.until);
        let step = store.page(user.account, INBOX, usize::MAX, false);
        for shown in user.timed(metrics::PAGE, step).await? {
            user.desk.known.insert(shown.entry);
            if !shown.is_read {
                user.desk.unread.push_back(shown.entry);
            }
        }
        return Ok(());
    };
    let found = user.timed(metrics::CHANGES, store.changes(user.account, since)).await?;
    user.desk.until = Some(found.until);
    for changed in found.list.iter().filter(|changed| changed.entry.folder == INBOX) {
        if changed.went {
            user.desk.known.remove(&changed.entry);
            user.desk.unread.retain(|entry| *entry != changed.entry);
        } else if changed.came && user.desk.known.insert(changed.entry) {
            user.desk.unread.push_back(changed.entry);
        }
    }
    Ok(())
}

async fn read_cached(user: &mut User<'_>) -> Result<()> {
    changes(user).await?;
    let most = (user.habits.read_max as usize).min(user.desk.unread.len());
    let new: Vec<Entry> = user.desk.unread.drain(..most).collect();
    let (mut seen, mut moved, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for entry in new {
        let Some(read) = user.read(entry).await? else {
            continue;
        };
        // A copy is a copy of all of it.
        if read.has_attachment {
            user.open_attachment(entry).await?;
        }
        let reaction = user.habits.on_read.react(&mut user.random);
        seen.push(entry);
        user.answer(read.sender, reaction).await?;
        if reaction.delete {
            deleted.push(entry);
        } else if reaction.r#move {
            moved.push(entry);
        }
    }
    user.mark_read(&seen).await?;
    user.shift(&moved).await?;
    user.delete(&deleted).await
}

/// Removes the oldest messages of an inbox that is too full.
async fn trim(user: &mut User<'_>) -> Result<()> {
    let store = user.store.clone();
    let limit = u64::from(user.habits.inbox_limit);
    let surplus = match user.is_cached() {
        true => (user.desk.known.len() as u64).saturating_sub(limit),
        false => store.total(user.account, INBOX).await?.saturating_sub(limit),
    };
    if surplus == 0 {
        return Ok(());
    }
    let step = store.page(user.account, INBOX, surplus as usize, true);
    let oldest = user.timed(metrics::PAGE, step).await?;
    let entries: Vec<Entry> = oldest.iter().map(|shown| shown.entry).collect();
    user.delete(&entries).await
}

/// A message of the inbox by chance.
async fn any_message(user: &mut User<'_>) -> Result<Option<Entry>> {
    if user.is_cached() {
        changes(user).await?;
        let count = user.desk.known.len() as u64;
        let drawn = user.random.below(count.max(1)) as usize;
        return Ok(user.desk.known.iter().nth(drawn).copied());
    }
    let rows = user.page(user.account, INBOX).await?;
    let drawn = user.random.below(rows.len().max(1) as u64) as usize;
    Ok(rows.get(drawn).map(|shown| shown.entry))
}

/// Reads one whole old message.
async fn export(user: &mut User<'_>) -> Result<()> {
    if let Some(entry) = older(user.store, &mut user.random)
        && user.read(entry).await?.is_some_and(|read| read.has_attachment)
    {
        user.open_attachment(entry).await?;
    }
    Ok(())
}

/// A cached program looks in its own copy, which costs the store nothing.
async fn search(user: &mut User<'_>) -> Result<()> {
    if user.is_cached() {
        return Ok(());
    }
    let word = plimsoll_workload::store::word(user.random.below(SEARCHED_WORDS));
    let store = user.store.clone();
    let word = word.to_ascii_lowercase();
    let step = store.search(user.account, &word);
    user.timed(metrics::SEARCH_COMMAND, step).await.map(drop)
}

/// One of the messages that a mailbox was filled with, by chance; it may have gone since.
fn older(store: &MailStore, random: &mut Random) -> Option<Entry> {
    let filling = store.filling();
    let messages = filling.messages();
    (messages > 0).then(|| filling.place_of(random.below(messages)))
}

/// What others read behind a task, such as jobs that index or watch: so many messages of the
/// mailbox on average.
///
/// # Errors
/// What the engine says.
pub async fn read_behind(store: &MailStore, order: &MailOrder, mean: f64) -> Result<()> {
    let mut random = order.random.child("behind");
    let count = mean.floor() as u64 + u64::from(random.chance(mean.fract()));
    for _ in 0..count {
        if let Some(entry) = older(store, &mut random) {
            store.read(order.user as u32, entry).await?;
        }
    }
    Ok(())
}
