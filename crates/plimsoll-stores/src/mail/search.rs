//! Words of messages: an index that a job of its own keeps up behind deliveries, and what is found
//! by it. Of each message the first words count, each once.

use std::collections::BTreeSet;

use plimsoll_engine::error::Result;
use plimsoll_engine::transaction::Commit;

use super::schema::{message, pending};
use super::{Entry, INBOX, MailStore, of_long};
use crate::shop::Value;

/// Words of a message that are indexed.
const WORDS_MAX: usize = 32;
/// Letters of a word that is one.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=8;

/// The first words of a message, each once, in the order of the alphabet.
pub fn words_of(body: &[u8]) -> BTreeSet<String> {
    let text = body.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |end| end + 4);
    let mut words = BTreeSet::new();
    for word in body[text..].split(|byte| !byte.is_ascii_lowercase()) {
        if words.len() == WORDS_MAX {
            break;
        }
        if LETTERS.contains(&word.len()) {
            words.extend(std::str::from_utf8(word).map(str::to_owned));
        }
    }
    words
}

impl MailStore {
    /// Indexes messages that were delivered and are not indexed yet, so many at most: reads each
    /// once more and notes its words. How many it were.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn index_delivered(&self, most: usize) -> Result<usize> {
        let _only = self.indexer.acquire().await;
        let mut found = Vec::new();
        {
            let transaction = self.first().mail.begin();
            let sheet = &self.first().tables.pending;
            let mut rows = sheet.rows(&transaction, 0, &[])?;
            while found.len() < most
                && let Some(row) = rows.next().await?
            {
                let number = |position| sheet.number(&row, position);
                let entry = Entry {
                    folder: number(pending::FOLDER)? as i32,
                    received: number(pending::RECEIVED)?,
                    document: number(pending::DOCUMENT)?,
                };
                found.push((number(pending::MAILBOX)? as u32, entry, row.key));
            }
        }
        let count = found.len();
        for (mailbox, entry, key) in found {
            self.index(mailbox, entry, &key).await?;
            self.first().mail.store().handle.breathe().await;
        }
        Ok(count)
    }

    async fn index(&self, mailbox: u32, entry: Entry, pending: &[u8]) -> Result<()> {
        // What is indexed is not moved.
        let home = self.first();
        let (tables, rows) = (&home.tables, self.rows_of(home));
        self.transact(home, Commit::Lazy, async |transaction| {
            let key = tables.messages.prefix(0, &rows.content_of(mailbox, entry.document))?;
            // Who has removed it meanwhile leaves nothing to be found.
            if let Some(row) = tables.messages.get(transaction, &key).await? {
                let sheet = &tables.messages;
                let body = sheet.long_value(transaction, &row, message::BODY).await?;
                for word in words_of(of_long(&body)) {
                    let values = [
                        Value::Number(mailbox.into()),
                        Value::Text(&word),
                        Value::Number(entry.document),
                    ];
                    tables.words.insert(transaction, &values).await?;
                }
            }
            tables.pending.delete(transaction, pending).await
        })
        .await
    }

    /// How many messages of a mailbox hold a word: by the index, or else by reading every message
    /// of the inbox. Words of removed messages stay in the index and are not counted.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn search(&self, mailbox: u32, word: &str) -> Result<u64> {
        let mut count = 0;
        // Asked before the mailbox is entered, which is done only once at a time.
        let shown = match self.filling.is_indexed {
            true => Vec::new(),
            false => self.page(mailbox, INBOX, usize::MAX, false).await?,
        };
        let home = self.enter(mailbox).await?;
        let transaction = home.mail.begin();
        let tables = &home.tables;
        if self.filling.is_indexed {
            let place = [Value::Number(mailbox.into()), Value::Text(word)];
            let mut rows = tables.words.rows(&transaction, 0, &place)?;
            while let Some(row) = rows.next().await? {
                let document = tables.words.number(&row, super::schema::word::DOCUMENT)?;
                let key = tables
                    .messages
                    .prefix(0, &self.rows_of(&home).content_of(mailbox, document))?;
                count += u64::from(tables.messages.get(&transaction, &key).await?.is_some());
            }
            return Ok(count);
        }
        for shown in shown {
            let key = tables
                .messages
                .prefix(0, &self.rows_of(&home).content_of(mailbox, shown.entry.document))?;
            if let Some(row) = tables.messages.get(&transaction, &key).await? {
                let body = tables.messages.long_value(&transaction, &row, message::BODY).await?;
                count += u64::from(words_of(of_long(&body)).contains(word));
            }
            home.mail.store().handle.breathe().await;
        }
        Ok(count)
    }
}
