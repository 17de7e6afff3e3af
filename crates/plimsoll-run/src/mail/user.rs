//! One user at its mail program: the connection it has, and what a cached program knows without
//! asking.

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use plimsoll_clients::endpoints::Open;
use plimsoll_clients::mail::{Imap, Literal, MailError, Recipient, Row};
use plimsoll_io::Random;
use plimsoll_workload::mail::{Check, Letter, MailHabits, Part};

use super::gauges::{Gauge, Gauges};
use super::metrics;
use super::prepare::SENT;
use super::server::MailServer;
use crate::load::Book;

/// What a user keeps from one task to the next.
#[derive(Default)]
pub struct Desk {
    /// The connection; nothing when it is not logged on.
    pub imap: Option<Imap>,
    /// The endpoint that the connection is at.
    pub open: Option<Open>,
    /// Messages it has written.
    pub written: u64,
    /// Folders it has made.
    pub folders_made: u64,
    /// Messages of the inbox whose numbers it knows, by UID.
    pub known: BTreeMap<u32, u64>,
    /// UIDs hold as long as this does.
    pub uid_validity: u32,
    /// A cached program: the first UID it has not seen yet.
    pub next_uid: u32,
    /// A cached program: number of the last change it has heard of.
    pub modseq: u64,
}

/// A user during one task.
pub struct User<'a> {
    /// What it works with.
    pub desk: Desk,
    /// Which account it is.
    pub account: u64,
    /// Where it works.
    pub server: &'a Rc<MailServer>,
    /// What it does.
    pub habits: &'a MailHabits,
    /// Where times and counts go.
    pub book: &'a mut Book,
    /// What is under way.
    pub gauges: &'a Rc<Gauges>,
    /// Bytes of contents that were read.
    pub bytes_read: u64,
    /// Decides what is left open.
    pub random: Random,
}

impl User<'_> {
    /// Waits for one command and notes how long it took.
    pub async fn timed<T>(
        &mut self,
        metric: &'static str,
        command: impl AsyncFnOnce(&mut Imap) -> Result<T, MailError>,
    ) -> Result<T, MailError> {
        let _open = self.gauges.enter(Gauge::Command);
        let begun = self.server.handle.now();
        let imap = self.imap()?;
        let result = command(imap).await?;
        self.book.note(metric, self.server.handle.now() - begun);
        Ok(result)
    }

    fn imap(&mut self) -> Result<&mut Imap, MailError> {
        let server = self.server.address_of(self.server.endpoints.of(self.account)).to_owned();
        self.desk.imap.as_mut().ok_or(MailError::Closed { server, command: "a task" })
    }

    /// Connects, logs in and opens the inbox, unless all that is done.
    pub async fn log_on(&mut self) -> Result<(), MailError> {
        if self.desk.imap.as_ref().is_some_and(Imap::is_open) {
            return Ok(());
        }
        let begun = self.server.handle.now();
        self.desk.open = None;
        let (imap, open) = {
            let _open = self.gauges.enter(Gauge::Command);
            self.server.connect(self.account, Some(self.account)).await?
        };
        self.desk.open = Some(open);
        self.book.note(metrics::CONNECT, self.server.handle.now() - begun);
        self.desk.imap = Some(imap);
        let (server, account) = (self.server.clone(), self.account);
        self.timed(metrics::LOGIN, async |imap| server.login(imap, account).await).await?;
        self.open_inbox().await
    }

    /// Opens the inbox. What was known of it is forgotten when its UIDs no longer hold.
    pub async fn open_inbox(&mut self) -> Result<(), MailError> {
        let mailbox = self.timed(metrics::SELECT, async |imap| imap.select("INBOX").await).await?;
        if self.desk.uid_validity != mailbox.uid_validity {
            if self.desk.uid_validity != 0 {
                self.book.count(metrics::VALIDITY_CHANGED, 1);
            }
            self.desk.uid_validity = mailbox.uid_validity;
            self.desk.known.clear();
            (self.desk.next_uid, self.desk.modseq) = (1, 0);
        }
        Ok(())
    }

    /// Messages in the open folder now.
    pub fn exists(&self) -> u32 {
        let mailbox = self.desk.imap.as_ref().and_then(Imap::mailbox);
        mailbox.map_or(0, |mailbox| mailbox.exists)
    }

    /// The newest rows of the open folder, as many as the program shows.
    pub async fn page(&mut self) -> Result<Vec<Row>, MailError> {
        let exists = self.exists();
        if exists == 0 {
            return Ok(Vec::new());
        }
        let first = exists.saturating_sub(self.habits.page_rows - 1).max(1);
        let found = self.timed(metrics::PAGE, async |imap| imap.page(first..=exists).await).await?;
        Ok(found.rows)
    }

    /// Counts a message that was read, and holds its content against what was sent. Its check,
    /// where it is one of ours.
    pub fn read(&mut self, uid: u32, contents: &[Literal]) -> Option<Check> {
        self.book.count(metrics::MESSAGES_READ, 1);
        self.bytes_read += contents.iter().map(|content| content.whole.bytes).sum::<u64>();
        let check = contents.iter().find_map(|content| Check::find(&content.head))?;
        if check.seed != self.server.corpus.seed() {
            return None;
        }
        for content in contents {
            match content.section.as_str() {
                "" => self.hold(content.body, check.body),
                "1" => self.hold(content.whole, check.text),
                _ => {}
            }
        }
        self.desk.known.insert(uid, check.id);
        Some(check)
    }

    /// Counts a part that is not what was sent.
    pub fn hold(&mut self, found: Part, sent: Part) {
        self.book.count(metrics::BODIES_WRONG, u64::from(found != sent));
    }

    /// The numbers of messages, as far as they are ours; the server is asked for those that the
    /// user has not seen.
    pub async fn identify(&mut self, uids: &[u32]) -> Result<Vec<u64>, MailError> {
        let unknown: Vec<u32> =
            uids.iter().copied().filter(|uid| !self.desk.known.contains_key(uid)).collect();
        if !unknown.is_empty() {
            let found =
                self.timed(metrics::HEADERS, async |imap| imap.headers_of(&unknown).await).await?;
            for row in &found.rows {
                let check = row.contents.iter().find_map(|content| Check::find(&content.head));
                if let (Some(uid), Some(check)) = (row.uid, check) {
                    self.desk.known.insert(uid, check.id);
                }
            }
        }
        let ids = uids.iter().filter_map(|uid| self.desk.known.get(uid).copied());
        Ok(ids.collect())
    }

    /// Removes messages of the open folder for good.
    pub async fn delete(&mut self, uids: &[u32]) -> Result<(), MailError> {
        if uids.is_empty() {
            return Ok(());
        }
        let ids = self.identify(uids).await?;
        self.server.ledger.begin_delete(self.account, &ids);
        self.timed(metrics::STORE, async |imap| imap.store(uids, "\\Deleted").await).await?;
        self.timed(metrics::EXPUNGE, async |imap| imap.expunge(uids).await).await?;
        self.server.ledger.deleted(self.account, &ids);
        uids.iter().for_each(|uid| {
            self.desk.known.remove(uid);
        });
        Ok(())
    }

    /// Moves messages of the inbox to a folder.
    pub async fn r#move(&mut self, uids: &[u32], folder: &str) -> Result<(), MailError> {
        if uids.is_empty() {
            return Ok(());
        }
        let ids = self.identify(uids).await?;
        self.server.ledger.begin_move(self.account, &ids);
        self.timed(metrics::MOVE, async |imap| imap.r#move(uids, folder).await).await?;
        self.server.ledger.moved(self.account, &ids);
        uids.iter().for_each(|uid| {
            self.desk.known.remove(uid);
        });
        Ok(())
    }

    /// Accounts by chance, each once, the user itself only where there is no other.
    pub fn draw_recipients(&mut self, count: u32) -> Vec<u64> {
        let accounts = self.server.accounts.len() as u64;
        if accounts == 1 {
            return vec![0];
        }
        let mut drawn = Vec::new();
        let wanted = u64::from(count).min(accounts - 1) as usize;
        while drawn.len() < wanted {
            let other = (self.account + 1 + self.random.below(accounts - 1)) % accounts;
            if !drawn.contains(&other) {
                drawn.push(other);
            }
        }
        drawn
    }

    /// Writes a message, hands it to the server and lays a copy into the folder of sent ones.
    pub async fn send(
        &mut self,
        to: &[u64],
        prefix: &str,
        is_meeting: bool,
    ) -> Result<(), MailError> {
        let id = self.server.message_id(self.account, self.desk.written);
        self.desk.written += 1;
        let addresses: Vec<String> =
            to.iter().map(|to| self.server.accounts[*to as usize].address.clone()).collect();
        let mail = self.server.corpus.mail(&Letter {
            id,
            from: &self.server.accounts[self.account as usize].address,
            to: &addresses,
            prefix,
            is_meeting,
        });
        let server = self.server.clone();
        let delivery = submit(self, server.deliver(self.account, to, &mail)).await?;
        let accepted = delivery.count(|end| end == Recipient::Accepted);
        let refused = delivery.count(|end| matches!(end, Recipient::Refused(_)));
        self.book.count(metrics::MESSAGES_SENT, u64::from(accepted > 0));
        self.book.count(metrics::RECIPIENTS_ACCEPTED, accepted);
        self.book.count(metrics::RECIPIENTS_REFUSED, refused);
        if let Some(lost) = delivery.lost {
            return Err(lost);
        }
        if accepted == 0 {
            return Err(MailError::No {
                server: self.server.address_of(self.server.endpoints.of(self.account)).to_owned(),
                command: "RCPT",
                text: "no recipient was accepted".to_owned(),
            });
        }
        self.timed(metrics::APPEND, async |imap| imap.append(SENT, "\\Seen", &mail.bytes).await)
            .await?;
        self.server.ledger.count(|totals| totals.sent_copies += 1);
        Ok(())
    }
}

/// Waits for a delivery, which counts as one message in the queue before the server, and notes how
/// long it took.
async fn submit<T>(
    user: &mut User<'_>,
    delivery: impl Future<Output = Result<T, MailError>>,
) -> Result<T, MailError> {
    let _queued = user.gauges.enter(Gauge::Queued);
    let _open = user.gauges.enter(Gauge::Command);
    let begun = user.server.handle.now();
    let sent = delivery.await?;
    user.book.note(metrics::SUBMIT, user.server.handle.now() - begun);
    Ok(sent)
}
