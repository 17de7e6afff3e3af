//! Mail on its way: accepted in the queue, delivered by the mover, and each exactly once whatever
//! crashes in between.

use std::cell::Cell;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_workload::mail::{Letter, Parts};

use super::homes::Home;
use super::rows::{New, Rows};
use super::schema::{accepted, pending, queued};
use super::{LONG_FIRST_BYTE, MailStore, SENT, long, of_long};
use crate::shop::Value;

/// A message that a user has written.
pub struct Draft {
    /// Who has.
    pub from: u32,
    /// To whom.
    pub to: Vec<u32>,
    /// Its number.
    pub document: i64,
    parts: Parts,
}

/// A message of the queue.
struct Waiting {
    key: Vec<u8>,
    document: i64,
    sender: i64,
    accepted: i64,
    recipients: Vec<u32>,
    body: Vec<u8>,
    attachment: Vec<u8>,
}

/// The recipients of a message that have it, while it is delivered.
struct Part<'a> {
    half_way: &'a Cell<bool>,
    is_some: Cell<bool>,
}

impl Part<'_> {
    /// It has come to all, and left the queue.
    fn settled(self) {
        self.half_way.set(false);
        self.is_some.set(false);
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.is_some.get() {
            self.half_way.set(true);
        }
    }
}

/// The subject of a message, at most 64 bytes of it.
pub fn subject_of(body: &[u8]) -> &str {
    let line = body.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"Subject: "));
    let text = line.and_then(|line| std::str::from_utf8(&line[9..]).ok()).unwrap_or_default();
    let text = text.trim_end();
    let end = text.len().min(64);
    text.get(..end).unwrap_or_default()
}

pub fn numbers(list: &[u8]) -> Vec<u32> {
    let of = list.get(1..).unwrap_or_default().as_chunks::<4>().0;
    of.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

impl MailStore {
    /// Writes a message, and keeps it nowhere yet.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for a mailbox that is not there, one named twice or none.
    pub fn write(&self, from: u32, to: &[u32], prefix: &str, is_meeting: bool) -> Result<Draft> {
        let mut sorted = to.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let is_known = sorted.last().is_some_and(|last| *last < self.filling.mailboxes);
        if !is_known || sorted.len() != to.len() {
            return Err(EngineError::BadRow(format!(
                "recipients are {to:?}; name each mailbox once, from 0 to {}",
                self.filling.mailboxes.saturating_sub(1)
            )));
        }
        let document = self.next_document();
        let address = |number: &u32| format!("mailbox{number}");
        let addresses: Vec<String> = to.iter().map(address).collect();
        let parts = self.corpus.parts(&Letter {
            id: document as u64,
            from: &address(&from),
            to: &addresses,
            prefix,
            is_meeting,
        });
        Ok(Draft { from, to: to.to_vec(), document, parts })
    }

    /// Accepts a message; it is durable in the queue when this returns.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn submit(&self, draft: &Draft) -> Result<()> {
        let mut list = vec![LONG_FIRST_BYTE];
        list.extend(draft.to.iter().flat_map(|number| number.to_le_bytes()));
        let (body, attachment) = (long(&draft.parts.body()), long(&draft.parts.attachment));
        let values = [
            Value::Number(draft.document),
            Value::Number(draft.from.into()),
            Value::Number(self.utc_ns()),
            Value::Bytes(&list),
            Value::Bytes(&body),
            Value::Bytes(&attachment),
        ];
        let count = draft.to.len() as u64;
        let transaction = self.queue.begin();
        let tables = &self.first().tables;
        tables.queue.insert(&transaction, &values).await?;
        let sheet = &tables.accepted;
        let key = sheet.key_of_number(1)?;
        sheet.add(&transaction, &key, accepted::MESSAGES, 1).await?;
        sheet.add(&transaction, &key, accepted::RECIPIENTS, count as i64).await?;
        transaction.commit(Commit::Durable).await?;
        self.acknowledged.set(self.acknowledged.get() + count);
        self.waiting.set(self.waiting.get() + 1);
        self.news.notify_all();
        Ok(())
    }

    /// Lays a copy of a message into its sender's folder of sent ones.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn keep_sent(&self, draft: &Draft) -> Result<()> {
        let home = self.enter(draft.from).await?;
        let changes = self.open_changes(1);
        let body = draft.parts.body();
        let new = New {
            document: draft.document | 1,
            received: self.utc_ns(),
            sender: draft.from.into(),
            is_read: true,
            is_delivery: false,
            subject: subject_of(&body),
            body: &body,
            attachment: &draft.parts.attachment,
        };
        let rows = self.rows_of(&home);
        self.transact(&home, Commit::Lazy, async |transaction| {
            rows.lay(transaction, &[(draft.from, SENT)], &new, changes.first).await
        })
        .await
    }

    /// Delivers what waits in the queue now, in the order of acceptance; answers how many messages
    /// left it. `told` hears how long each of this run took since it was accepted.
    ///
    /// # Errors
    /// What the disk reports. A message whose delivery failed stays in the queue.
    pub async fn deliver_queued(&self, told: &dyn Fn(u64)) -> Result<u64> {
        let mut left = 0;
        while self.deliver_next(told).await? {
            left += 1;
        }
        Ok(left)
    }

    /// Delivers the message that has waited longest; `false` when none waits.
    ///
    /// # Errors
    /// As [`MailStore::deliver_queued`].
    pub async fn deliver_next(&self, told: &dyn Fn(u64)) -> Result<bool> {
        let _only = self.mover.acquire().await;
        let Some(waiting) = self.oldest().await? else {
            return Ok(false);
        };
        // A row is seen before its commit is durable. Delivered mail that a power cut then takes
        // out of the queue would have come from nowhere.
        let log = &self.queue.store().log;
        log.make_durable(log.tip()).await?;
        // Until it has left the queue for good its recipients stay where they are: a mark of what
        // was delivered lies in one database only.
        let mut recipients = waiting.recipients.clone();
        recipients.sort_unstable();
        let mut inside = Vec::new();
        for recipient in recipients {
            inside.push(self.enter(recipient).await?);
        }
        let part = Part { half_way: &self.half_way, is_some: Cell::new(false) };
        self.deliver(&waiting, &part).await?;
        if waiting.document >> super::RUN_BITS == self.run {
            told((self.utc_ns() - waiting.accepted).max(0) as u64);
        }
        let transaction = self.queue.begin();
        self.first().tables.queue.delete(&transaction, &waiting.key).await?;
        transaction.commit(Commit::Durable).await?;
        part.settled();
        drop(inside);
        self.waiting.set(self.waiting.get() - 1);
        self.forget(waiting.document).await?;
        Ok(true)
    }

    async fn oldest(&self) -> Result<Option<Waiting>> {
        let reading = self.queue.begin();
        let sheet = &self.first().tables.queue;
        let mut rows = sheet.rows(&reading, 0, &[])?;
        let Some(row) = rows.next().await? else {
            return Ok(None);
        };
        let of = async |position| sheet.long_value(&reading, &row, position).await;
        Ok(Some(Waiting {
            document: sheet.number(&row, queued::DOCUMENT)?,
            sender: sheet.number(&row, queued::SENDER)?,
            accepted: sheet.number(&row, queued::ACCEPTED)?,
            recipients: numbers(&of(queued::RECIPIENTS).await?),
            body: of(queued::BODY).await?,
            attachment: of(queued::ATTACHMENT).await?,
            key: row.key.clone(),
        }))
    }

    async fn deliver(&self, waiting: &Waiting, part: &Part<'_>) -> Result<()> {
        let changes = self.open_changes(waiting.recipients.len());
        let body = of_long(&waiting.body);
        let new = New {
            document: waiting.document,
            received: self.utc_ns(),
            sender: waiting.sender,
            is_read: false,
            is_delivery: true,
            subject: subject_of(body),
            body,
            attachment: of_long(&waiting.attachment),
        };
        let mut first_change = changes.first;
        for (position, home) in self.homes.iter().enumerate() {
            let mut here = waiting.recipients.clone();
            here.retain(|recipient| self.place_of(*recipient) == position);
            if !here.is_empty() {
                self.deliver_into(home, waiting, &here, &new, first_change).await?;
                first_change += here.len() as i64;
                part.is_some.set(true);
            }
        }
        Ok(())
    }

    /// Delivers to recipients of one database, in one transaction.
    async fn deliver_into(
        &self,
        home: &Home,
        waiting: &Waiting,
        recipients: &[u32],
        new: &New<'_>,
        first_change: i64,
    ) -> Result<()> {
        let (tables, rows) = (&home.tables, self.rows_of(home));
        self.transact(home, Commit::Durable, async |transaction| {
            let key = tables.delivered.key_of_number(waiting.document)?;
            if tables.delivered.get(transaction, &key).await?.is_some() {
                return Ok(());
            }
            let places = self.sorted(home, transaction, recipients, waiting.sender).await?;
            rows.lay(transaction, &places, new, first_change).await?;
            if self.filling.is_indexed {
                for (number, folder) in &places {
                    let mut values = [Value::Null; pending::COLUMNS.len()];
                    values[pending::MAILBOX] = Value::Number((*number).into());
                    values[pending::FOLDER] = Value::Number((*folder).into());
                    values[pending::RECEIVED] = Value::Number(new.received);
                    values[pending::DOCUMENT] = Value::Number(new.document);
                    tables.pending.insert(transaction, &values).await?;
                }
            }
            let mark = [Value::Number(waiting.document)];
            tables.delivered.insert(transaction, &mark).await
        })
        .await
    }

    /// What has durably left the queue needs no mark any more.
    async fn forget(&self, document: i64) -> Result<()> {
        for home in &self.homes {
            let sheet = &home.tables.delivered;
            let key = sheet.key_of_number(document)?;
            let work = async |transaction: &Transaction| match sheet.get(transaction, &key).await? {
                Some(_) => sheet.delete(transaction, &key).await,
                None => Ok(()),
            };
            self.transact(home, Commit::Lazy, work).await?;
        }
        Ok(())
    }

    /// Marks of messages that left the queue before a crash go; those still in it keep theirs until
    /// the mover comes.
    pub(super) async fn settle(&self) -> Result<()> {
        let queue = &self.first().tables.queue;
        let mut is_half_way = false;
        for home in &self.homes {
            let (reading, waiting) = (home.mail.begin(), self.queue.begin());
            let mut marks = home.tables.delivered.rows(&reading, 0, &[])?;
            while let Some(mark) = marks.next().await? {
                let document = home.tables.delivered.number(&mark, 0)?;
                let key = queue.key_of_number(document)?;
                match queue.get(&waiting, &key).await? {
                    None => self.forget(document).await?,
                    Some(_) => is_half_way = true,
                }
            }
        }
        // The oldest one alone can have been delivered to some of its recipients. None of them may
        // be moved before it has come to all.
        if is_half_way && self.homes.len() > 1 {
            self.deliver_next(&|_| {}).await?;
        }
        Ok(())
    }

    pub(super) fn rows_of<'a>(&self, home: &'a Home) -> Rows<'a> {
        Rows { tables: &home.tables, filling: self.filling }
    }
}
