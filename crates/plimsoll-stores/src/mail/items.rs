//! What a mailbox holds besides mail: appointments, contacts and things to be done, free and busy
//! times, rules, smart folders; and what all share: public folders and the address book.

use plimsoll_engine::error::Result;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::Random;
use plimsoll_workload::mail::Letter;

use super::rows::{New, others_first};
use super::schema::{event, property};
use super::transport::subject_of;
use super::{MailStore, long};
use crate::shop::Value;

/// Bytes of a part of the address book.
pub const ADDRESS_BOOK_PART: usize = 32 << 10;
/// Bytes of an entry of the address book; Plimsoll's choice.
const ADDRESS_BYTES: u64 = 512;

/// What is kept of a mailbox under a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Property {
    /// When its user is free.
    FreeBusy = 1,
    /// What becomes of mail by itself.
    Rule = 2,
    /// What a smart folder shows.
    SmartFolder = 3,
    /// A part of the address book; of the public mailbox alone.
    AddressBook = 4,
}

/// Parts of the address book of so many users.
pub fn address_book_parts(users: u32) -> u32 {
    (u64::from(users) * ADDRESS_BYTES).div_ceil(ADDRESS_BOOK_PART as u64).max(1) as u32
}

/// So many bytes by chance, the same for the same name.
pub fn filler(seed: u64, name: &str, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes.max(1)];
    Random::from_seed(seed).child(name).fill(&mut content);
    content[0] = super::LONG_FIRST_BYTE;
    content
}

impl MailStore {
    /// Lays something new into a folder: a contact, a thing to be done, a post of a public folder.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn post(&self, mailbox: u32, folder: i32, author: u32) -> Result<()> {
        let document = self.next_document();
        let address = format!("mailbox{author}");
        let parts = self.corpus.parts(&Letter {
            id: document as u64,
            from: &address,
            to: std::slice::from_ref(&address),
            prefix: "",
            is_meeting: false,
        });
        let body = parts.body();
        let new = New {
            document,
            received: self.utc_ns(),
            sender: author.into(),
            is_read: true,
            is_delivery: false,
            subject: subject_of(&body),
            body: &body,
            attachment: &parts.attachment,
        };
        let home = self.enter(mailbox).await?;
        let (changes, rows) = (self.open_changes(1), self.rows_of(&home));
        self.transact(&home, Commit::Durable, async |transaction| {
            rows.lay(transaction, &[(mailbox, folder)], &new, changes.first).await
        })
        .await
    }

    /// Enters an appointment that begins at a minute and takes so many.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn make_appointment(&self, mailbox: u32, minute: i64, minutes: i64) -> Result<()> {
        let document = self.next_document();
        let text = filler(self.corpus.seed(), &format!("event {document}"), 1_024);
        let mut values = [Value::Bytes(&text); event::COLUMNS.len()];
        for (position, value) in [
            (event::MAILBOX, mailbox.into()),
            (event::START, minute),
            (event::DOCUMENT, document),
            (event::END, minute + minutes),
        ] {
            values[position] = Value::Number(value);
        }
        let home = self.enter(mailbox).await?;
        let sheet = &home.tables.events;
        let work = async |transaction: &Transaction| sheet.insert(transaction, &values).await;
        self.transact(&home, Commit::Durable, work).await
    }

    /// How many appointments begin from one minute to another.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn appointments(&self, mailbox: u32, from: i64, to: i64) -> Result<u64> {
        let home = self.enter(mailbox).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.events;
        let place = [mailbox.into(), from].map(Value::Number);
        let mut rows = sheet.rows_from(&transaction, &place, 1)?;
        let mut count = 0;
        while let Some(row) = rows.next().await?
            && sheet.number(&row, event::START)? < to
        {
            sheet.long_value(&transaction, &row, event::TEXT).await?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes a property anew.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn put(
        &self,
        mailbox: u32,
        kind: Property,
        number: u32,
        content: &[u8],
    ) -> Result<()> {
        let home = self.enter(mailbox).await?;
        let sheet = &home.tables.properties;
        let place = [mailbox.into(), kind as i64, number.into()].map(Value::Number);
        let key = sheet.prefix(0, &place)?;
        let content = long(content);
        let mut values = [Value::Bytes(&content); property::COLUMNS.len()];
        values[..place.len()].copy_from_slice(&place);
        self.transact(&home, Commit::Durable, async |transaction| {
            if sheet.get(transaction, &key).await?.is_some() {
                sheet.delete(transaction, &key).await?;
            }
            sheet.insert(transaction, &values).await.map_err(others_first)
        })
        .await
    }

    /// Reads all properties of a kind; how many bytes they have.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn properties(&self, mailbox: u32, kind: Property) -> Result<u64> {
        let home = self.enter(mailbox).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.properties;
        let place = [mailbox.into(), kind as i64].map(Value::Number);
        let mut rows = sheet.rows(&transaction, 0, &place)?;
        let mut bytes = 0;
        while let Some(row) = rows.next().await? {
            bytes += sheet.long_value(&transaction, &row, property::CONTENT).await?.len() as u64;
        }
        Ok(bytes)
    }
}
