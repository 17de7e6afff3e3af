//! Filling the mailboxes by ordinary transactions, one after the other in the order of their keys.
//! The marker comes last: without it the database is not whole, and whoever opens it next makes it
//! anew.

use std::rc::Rc;

use plimsoll_engine::error::Result;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_workload::mail::{Corpus, Letter};

use super::items::{ADDRESS_BOOK_PART, Property, address_book_parts, filler};
use super::schema::{Tables, folder, mailbox};
use super::search::words_of;
use super::transport::subject_of;
use super::{CONTACTS, Filling, INBOX, Layout, MailStore, OWN_FOLDERS, SENT, TASKS, long, marked};
use crate::shop::Value;

/// Messages of one transaction: few enough for any version store.
const MESSAGES_PER_TRANSACTION: u64 = 32;
/// In the numbers of what mailboxes are filled with.
const FILLED: u64 = 1 << 63;

/// Told how many mailboxes are filled.
pub type Preparing<'a> = &'a dyn Fn(u32);

/// The number in the corpus of a message of a mailbox.
pub fn letter_of(mailbox: u32, document: i64) -> u64 {
    match document >> super::RUN_BITS {
        0 => FILLED | u64::from(mailbox) << 32 | document as u64,
        // A copy of what was sent is the same letter.
        _ => document as u64 & !1,
    }
}

/// Folders that a mailbox has, with their kind; the public one has its own alone.
fn folders_of(filling: &Filling, number: u32) -> Vec<i32> {
    let own = (0..filling.folders.max(1)).map(|place| OWN_FOLDERS + place as i32);
    match number == filling.public() {
        true => own.collect(),
        false => [INBOX, SENT, CONTACTS, TASKS].into_iter().chain(own).collect(),
    }
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
        told: Preparing<'_>,
    ) -> Result<()> {
        let tables = Tables::create(mail, queue).await?;
        for number in 0..=filling.public() {
            fill(&tables, mail, corpus, &filling, number).await?;
            told(number);
        }
        let transaction = mail.begin();
        let book = filler(corpus.seed(), "address book", ADDRESS_BOOK_PART);
        for part in 0..address_book_parts(filling.mailboxes) {
            let place = [filling.public().into(), Property::AddressBook as i64, part.into()];
            let [mailbox, kind, number] = place.map(Value::Number);
            let values = [mailbox, kind, number, Value::Bytes(&book)];
            tables.properties.insert(&transaction, &values).await?;
        }
        let mut values = [0; super::schema::marker::COLUMNS.len()];
        values[super::schema::marker::ID] = 1;
        for (position, _, value) in marked(corpus, filling) {
            values[position] = value;
        }
        transaction.commit(Commit::Durable).await?;
        // The queue counts from nothing, before the store says that both are whole.
        let transaction = queue.begin();
        tables.accepted.insert(&transaction, &[1, 0, 0].map(Value::Number)).await?;
        transaction.commit(Commit::Durable).await?;
        let transaction = mail.begin();
        tables.marker.insert(&transaction, &values.map(Value::Number)).await?;
        transaction.commit(Commit::Durable).await
    }
}

/// Fills one mailbox.
async fn fill(
    tables: &Tables,
    mail: &Rc<Instance>,
    corpus: &Corpus,
    filling: &Filling,
    number: u32,
) -> Result<()> {
    let messages = if number == filling.public() { 0 } else { filling.messages() };
    let mut transaction = Some(mail.begin());
    let mut used_bytes = 0;
    for message in 0..messages {
        let open = transaction.get_or_insert_with(|| mail.begin());
        used_bytes += lay_first(tables, open, corpus, filling, number, message).await?;
        if (message + 1).is_multiple_of(MESSAGES_PER_TRANSACTION)
            && let Some(full) = transaction.take()
        {
            full.commit(Commit::Lazy).await?;
        }
        mail.store().handle.breathe().await;
    }
    let last = transaction.unwrap_or_else(|| mail.begin());
    for place in folders_of(filling, number) {
        let total = match place {
            _ if messages == 0 => 0,
            INBOX => filling.inbox,
            OWN_FOLDERS.. => filling.messages_per_folder,
            _ => 0,
        };
        let mut values = [Value::Number(0); folder::COLUMNS.len()];
        values[folder::MAILBOX] = Value::Number(number.into());
        values[folder::NUMBER] = Value::Number(place.into());
        values[folder::TOTAL] = Value::Number(total.into());
        tables.folders.insert(&last, &values).await?;
    }
    let mut values = [Value::Number(0); mailbox::COLUMNS.len()];
    values[mailbox::NUMBER] = Value::Number(number.into());
    values[mailbox::USED_BYTES] = Value::Number(used_bytes);
    values[mailbox::RECEIVED] = Value::Number(messages as i64);
    tables.mailboxes.insert(&last, &values).await?;
    last.commit(Commit::Lazy).await
}

/// Lays one message into a new mailbox, whose counters are written at its end; its bytes.
async fn lay_first(
    tables: &Tables,
    transaction: &Transaction,
    corpus: &Corpus,
    filling: &Filling,
    number: u32,
    message: u64,
) -> Result<i64> {
    let entry = filling.place_of(message);
    let address = format!("mailbox{number}");
    let parts = corpus.parts(&Letter {
        id: letter_of(number, entry.document),
        from: &address,
        to: std::slice::from_ref(&address),
        prefix: "",
        is_meeting: false,
    });
    let body = parts.body();
    let size_bytes = (body.len() + parts.attachment.len()) as i64;
    let [owner, document] = [number.into(), entry.document].map(Value::Number);
    let stored = long(&body);
    let values =
        [owner, document, Value::Number(size_bytes), Value::Number(1), Value::Bytes(&stored)];
    tables.messages.insert(transaction, &values).await?;
    if !parts.attachment.is_empty() {
        let content = long(&parts.attachment);
        let values = [owner, document, Value::Number(1), Value::Bytes(&content)];
        tables.attachments.insert(transaction, &values).await?;
    }
    let subject = subject_of(&body);
    let mut values = [Value::Text(subject); 8];
    for (value, number) in values.iter_mut().zip([
        number.into(),
        entry.folder.into(),
        entry.received,
        entry.document,
        1,
        size_bytes,
        number.into(),
    ]) {
        *value = Value::Number(number);
    }
    tables.contents.insert(transaction, &values).await?;
    for view in 0..filling.views {
        let key = super::rows::view_key(number, entry, view);
        tables.views.insert(transaction, &key).await?;
    }
    if filling.is_indexed {
        for word in words_of(&body) {
            let values = [owner, Value::Text(&word), document];
            tables.words.insert(transaction, &values).await?;
        }
    }
    debug_assert!(filling.layout == Layout::PerMailbox || entry.document >> super::RUN_BITS == 0);
    Ok(size_bytes)
}
