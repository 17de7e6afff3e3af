//! A mail store on the engine: mailboxes in one instance, the transport queue in another with its own database and log.
//!
//! A message is accepted with a durable commit in the queue. The mover delivers it to all its recipients in one transaction of the store,
//! and then deletes it from the queue. The two instances share no commit: a row of Delivered says what a crash between both had already
//! delivered, so that nothing arrives twice. Counters of mailboxes are added to, so deliveries at a time do not conflict on them.

mod audit;
mod schema;

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::retry::Retry;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{NANOS_PER_SECOND, Permits, Random};
use plimsoll_workload::mail::{Corpus, Letter};

pub use audit::MailAudit;
use schema::{Tables, mailbox, marker, message, queued};

use crate::shop::Value;

/// How long a transaction is tried when others are first again and again.
const TRIED_NS_MAX: u64 = 10 * NANOS_PER_SECOND;
/// Documents of one run at most, as a power of two: each run has numbers of its own.
const RUN_BITS: u32 = 40;
/// Lists of recipients begin with a byte that other readers do not take for a mark of compression.
const LIST_FIRST_BYTE: u8 = 0x41;

/// What a store is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Mailboxes, numbered from 0.
    pub mailboxes: u32,
    /// Read messages of each.
    pub messages: u32,
}

/// See the module text.
pub struct MailStore {
    mail: Rc<Instance>,
    queue: Rc<Instance>,
    tables: Tables,
    filling: Filling,
    run: i64,
    next: Cell<i64>,
    accepted: Cell<u64>,
    pauses: std::cell::RefCell<Random>,
    /// One mover at a time: two would deliver one message twice.
    mover: Permits,
}

impl MailStore {
    /// Makes the tables and fills the mailboxes; the marker is written last, durably.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn prepare(
        mail: &Rc<Instance>,
        queue: &Rc<Instance>,
        corpus: &Corpus,
        filling: Filling,
    ) -> Result<()> {
        let tables = Tables::create(mail, queue).await?;
        for number in 0..filling.mailboxes {
            let transaction = mail.begin();
            let values = [i64::from(number), 0, 0, 0, 0, 0].map(Value::Number);
            tables.mailboxes.insert(&transaction, &values).await?;
            for document in 1..=i64::from(filling.messages) {
                let id = (u64::from(number) << 32) | document as u64;
                let letter = Letter {
                    id,
                    from: "prepared",
                    to: &[format!("mailbox{number}")],
                    prefix: "",
                    is_meeting: false,
                };
                let body = corpus.mail(&letter).bytes;
                let new = New {
                    document,
                    received: document,
                    is_read: true,
                    body: &body,
                };
                insert(&tables, &transaction, number, &new).await?;
                mail.store().handle.breathe().await;
            }
            transaction.commit(Commit::Lazy).await?;
        }
        let counts = [
            1,
            corpus.seed() as i64,
            filling.mailboxes.into(),
            filling.messages.into(),
            0,
        ];
        let transaction = mail.begin();
        tables
            .marker
            .insert(&transaction, &counts.map(Value::Number))
            .await?;
        transaction.commit(Commit::Durable).await
    }

    /// Opens a whole store, and finishes what a crash left between queue and store; the run takes the next number.
    ///
    /// # Errors
    /// What the disk reports; [`EngineError::NoSuchObject`] where there is no store, [`EngineError::RowNotFound`] where it is not whole,
    /// [`EngineError::BadRow`] for one made with another seed or filling.
    pub async fn open(
        mail: &Rc<Instance>,
        queue: &Rc<Instance>,
        seed: u64,
        filling: Filling,
    ) -> Result<MailStore> {
        let tables = Tables::open(mail, queue).await?;
        let transaction = mail.begin();
        let sheet = &tables.marker;
        let key = sheet.key_of_number(1)?;
        let row = sheet.get(&transaction, &key).await?;
        let row = row.ok_or(EngineError::RowNotFound)?;
        let number = |position| sheet.number(&row, position);
        let found = [
            number(marker::SEED)?,
            number(marker::MAILBOXES)?,
            number(marker::MESSAGES)?,
        ];
        if found != [seed as i64, filling.mailboxes.into(), filling.messages.into()] {
            return Err(EngineError::BadRow(format!(
                "the database holds {} mailboxes of {} messages made with seed {}, not {} of {} with seed {seed}; name those, or let it be made anew",
                found[1], found[2], found[0], filling.mailboxes, filling.messages
            )));
        }
        let run = number(marker::RUNS)? + 1;
        sheet.set(&transaction, &key, &[(marker::RUNS, run)]).await?;
        transaction.commit(Commit::Durable).await?;
        let store = MailStore {
            mail: mail.clone(),
            queue: queue.clone(),
            tables,
            filling,
            run,
            next: Cell::new(1),
            accepted: Cell::new(0),
            pauses: std::cell::RefCell::new(Random::from_seed(seed).child("mail pauses")),
            mover: Permits::new(1),
        };
        store.settle().await?;
        Ok(store)
    }

    /// Which run of the database this is, from 1 on.
    pub fn run(&self) -> u64 {
        self.run as u64
    }

    /// Messages times recipients that were accepted since the store was opened.
    pub fn accepted(&self) -> u64 {
        self.accepted.get()
    }

    /// Accepts a message for mailboxes; it is durable in the queue when this returns.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for a mailbox that is not there, one named twice or none; what the disk reports.
    pub async fn submit(&self, recipients: &[u32], body: &[u8]) -> Result<i64> {
        let mut sorted = recipients.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let is_known = sorted.last().is_some_and(|last| *last < self.filling.mailboxes);
        if !is_known || sorted.len() != recipients.len() {
            return Err(EngineError::BadRow(format!(
                "recipients are {recipients:?}; name each mailbox once, from 0 to {}",
                self.filling.mailboxes.saturating_sub(1)
            )));
        }
        let document = (self.run << RUN_BITS) | self.next.replace(self.next.get() + 1);
        let mut list = vec![LIST_FIRST_BYTE];
        list.extend(recipients.iter().flat_map(|number| number.to_le_bytes()));
        let values = [Value::Number(document), Value::Bytes(&list), Value::Bytes(body)];
        let transaction = self.queue.begin();
        self.tables.queue.insert(&transaction, &values).await?;
        transaction.commit(Commit::Durable).await?;
        self.accepted.set(self.accepted.get() + recipients.len() as u64);
        Ok(document)
    }

    /// Messages that wait in the queue.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn queued(&self) -> Result<u64> {
        self.tables.queue.count(&self.queue.begin()).await
    }

    /// Delivers what waits in the queue now, in the order of acceptance; answers how many messages left it.
    ///
    /// # Errors
    /// What the disk reports. A message whose delivery failed stays in the queue.
    pub async fn deliver_queued(&self) -> Result<u64> {
        let _only = self.mover.acquire().await;
        let reading = self.queue.begin();
        let sheet = &self.tables.queue;
        let mut rows = sheet.rows(&reading, 0, &[])?;
        let mut left = 0;
        while let Some(row) = rows.next().await? {
            let document = sheet.number(&row, queued::DOCUMENT)?;
            let recipients = sheet.long_value(&reading, &row, queued::RECIPIENTS).await?;
            let body = sheet.long_value(&reading, &row, queued::BODY).await?;
            self.deliver(document, &numbers(&recipients), &body).await?;
            let transaction = self.queue.begin();
            sheet.delete(&transaction, &row.key).await?;
            transaction.commit(Commit::Durable).await?;
            self.forget(document).await?;
            left += 1;
        }
        Ok(left)
    }

    async fn deliver(&self, document: i64, recipients: &[u32], body: &[u8]) -> Result<()> {
        let received = self.mail.store().handle.now() as i64;
        let new = New {
            document,
            received,
            is_read: false,
            body,
        };
        let tables = &self.tables;
        self.transact(Commit::Durable, async |transaction| {
            let key = tables.delivered.key_of_number(document)?;
            if tables.delivered.get(transaction, &key).await?.is_some() {
                return Ok(());
            }
            for number in recipients {
                insert(tables, transaction, *number, &new).await?;
            }
            let mark = [Value::Number(document)];
            tables.delivered.insert(transaction, &mark).await
        })
        .await
    }

    /// What has durably left the queue needs no mark any more.
    async fn forget(&self, document: i64) -> Result<()> {
        let sheet = &self.tables.delivered;
        let key = sheet.key_of_number(document)?;
        let work = async |transaction: &Transaction| sheet.delete(transaction, &key).await;
        self.transact(Commit::Lazy, work).await
    }

    /// Marks of messages that left the queue before a crash go; those still in it keep theirs until the mover comes.
    async fn settle(&self) -> Result<()> {
        let (reading, waiting) = (self.mail.begin(), self.queue.begin());
        let mut marks = self.tables.delivered.rows(&reading, 0, &[])?;
        while let Some(mark) = marks.next().await? {
            let document = self.tables.delivered.number(&mark, 0)?;
            let key = self.tables.queue.key_of_number(document)?;
            if self.tables.queue.get(&waiting, &key).await?.is_none() {
                self.forget(document).await?;
            }
        }
        Ok(())
    }

    /// Reads the newest unread messages of a mailbox, so many at most, and marks them as read.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn read(&self, number: u32, most: usize) -> Result<Vec<(i64, Vec<u8>)>> {
        let tables = &self.tables;
        let sheet = &tables.messages;
        self.transact(Commit::Lazy, async |transaction| {
            let mut found = Vec::new();
            let mut keys = Vec::new();
            let mut rows = sheet.rows(transaction, message::BY_DATE, &[Value::Number(number.into())])?;
            while found.len() < most
                && let Some(row) = rows.next().await?
            {
                if sheet.number(&row, message::READ)? == 0 {
                    let body = sheet.long_value(transaction, &row, message::BODY).await?;
                    found.push((sheet.number(&row, message::DOCUMENT)?, body));
                    keys.push(row.key);
                }
            }
            drop(rows);
            for key in &keys {
                sheet.set(transaction, key, &[(message::READ, 1)]).await?;
            }
            if !keys.is_empty() {
                let key = tables.mailboxes.key_of_number(number.into())?;
                let fewer = -(keys.len() as i64);
                tables
                    .mailboxes
                    .add(transaction, &key, mailbox::UNREAD, fewer)
                    .await?;
            }
            Ok(found)
        })
        .await
    }

    /// Deletes a message of a mailbox; `false` when it is not there.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn delete(&self, number: u32, document: i64) -> Result<bool> {
        let tables = &self.tables;
        let sheet = &tables.messages;
        let key = sheet.prefix(0, &[Value::Number(number.into()), Value::Number(document)])?;
        self.transact(Commit::Durable, async |transaction| {
            let Some(row) = sheet.get(transaction, &key).await? else {
                return Ok(false);
            };
            let unread = i64::from(sheet.number(&row, message::READ)? == 0);
            let bytes = sheet.number(&row, message::SIZE_BYTES)?;
            sheet.delete(transaction, &key).await?;
            let key = tables.mailboxes.key_of_number(number.into())?;
            for (position, amount) in [
                (mailbox::USED_BYTES, -bytes),
                (mailbox::DELETED, 1),
                (mailbox::TOTAL, -1),
                (mailbox::UNREAD, -unread),
            ] {
                tables.mailboxes.add(transaction, &key, position, amount).await?;
            }
            Ok(true)
        })
        .await
    }

    async fn transact<T>(&self, how: Commit, work: impl AsyncFn(&Transaction) -> Result<T>) -> Result<T> {
        let retry = Retry::until(self.mail.store().handle.now() + TRIED_NS_MAX);
        let drawn = self.pauses.borrow_mut().next_u64();
        let mut random = Random::from_seed(drawn);
        self.mail.transact(how, retry, &mut random, work).await
    }
}

/// A message that comes to a mailbox.
struct New<'a> {
    document: i64,
    received: i64,
    is_read: bool,
    body: &'a [u8],
}

async fn insert(tables: &Tables, transaction: &Transaction, number: u32, new: &New<'_>) -> Result<()> {
    let bytes = new.body.len() as i64;
    let values = [
        Value::Number(number.into()),
        Value::Number(new.document),
        Value::Number(new.received),
        Value::Number(new.is_read.into()),
        Value::Number(bytes),
        Value::Bytes(new.body),
    ];
    tables.messages.insert(transaction, &values).await?;
    let key = tables.mailboxes.key_of_number(number.into())?;
    for (position, amount) in [
        (mailbox::USED_BYTES, bytes),
        (mailbox::RECEIVED, 1),
        (mailbox::TOTAL, 1),
        (mailbox::UNREAD, i64::from(!new.is_read)),
    ] {
        tables.mailboxes.add(transaction, &key, position, amount).await?;
    }
    Ok(())
}

fn numbers(list: &[u8]) -> Vec<u32> {
    let of = list.get(1..).unwrap_or_default().as_chunks::<4>().0;
    of.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}
