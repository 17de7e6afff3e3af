//! What users see and do of their mail: folders, rows of a folder, bodies, read marks, moves,
//! removals, and what has changed since they last asked.

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_workload::mail::{Check, PartSum};

use super::homes::Home;
use super::prepare::letter_of;
use super::rows::{What, others_first};
use super::schema::{attachment, change, contents, folder, mailbox, message};
use super::{Entry, MailStore, OWN_FOLDERS, entry_key, of_long};
use crate::shop::Value;

/// Changes of a mailbox that are kept.
const CHANGES_KEPT: i64 = 4_096;
/// How many more there may be before old ones go.
const CHANGES_SLACK: i64 = 256;

/// A row of a folder as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Where it stands.
    pub entry: Entry,
    /// Whether it was read.
    pub is_read: bool,
    /// Who wrote it.
    pub sender: u32,
    /// All of it.
    pub size_bytes: u64,
}

/// What a message was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Bytes that were read.
    pub bytes: u64,
    /// Whether they are what was written.
    pub is_right: bool,
    /// Whether it has an attachment.
    pub has_attachment: bool,
    /// Who wrote it, where it was found in a folder.
    pub sender: u32,
}

/// One change of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Of which message, and where that stood.
    pub entry: Entry,
    /// Whether it came.
    pub came: bool,
    /// Whether it went.
    pub went: bool,
}

/// What has changed since a client last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// In their order. A change may be told of twice.
    pub list: Vec<Changed>,
    /// Up to here nothing will be told of again.
    pub until: i64,
}

impl MailStore {
    /// The folders of a mailbox with how many messages of them are unread.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn folders(&self, number: u32) -> Result<Vec<(i32, u64)>> {
        let home = self.enter(number).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.folders;
        let mut rows = sheet.rows(&transaction, 0, &[Value::Number(number.into())])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().await? {
            let unread = sheet.number(&row, folder::UNREAD)?.max(0) as u64;
            found.push((sheet.number(&row, folder::NUMBER)? as i32, unread));
        }
        Ok(found)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn create_folder(&self, number: u32) -> Result<i32> {
        let home = self.enter(number).await?;
        let sheet = &home.tables.folders;
        self.transact(&home, Commit::Durable, async |transaction| {
            let of = [Value::Number(number.into())];
            let last = sheet.rows_backward(transaction, 0, &of)?.next().await?;
            let last = last.map_or(Ok(0), |row| sheet.number(&row, folder::NUMBER))?;
            let made = (last + 1).max(OWN_FOLDERS.into());
            let mut values = [Value::Number(0); folder::COLUMNS.len()];
            values[folder::MAILBOX] = Value::Number(number.into());
            values[folder::NUMBER] = Value::Number(made);
            sheet.insert(transaction, &values).await.map_err(others_first)?;
            Ok(made as i32)
        })
        .await
    }

    /// The rows of a folder, newest first, so many at most; or the oldest first.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn page(
        &self,
        number: u32,
        of: i32,
        most: usize,
        oldest_first: bool,
    ) -> Result<Vec<Shown>> {
        let home = self.enter(number).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.contents;
        let place = [number.into(), of.into()].map(Value::Number);
        let mut rows = match oldest_first {
            true => sheet.rows_backward(&transaction, 0, &place)?,
            false => sheet.rows(&transaction, 0, &place)?,
        };
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next().await?
        {
            let standing = self.rows_of(&home).standing(&row)?;
            found.push(Shown {
                entry: Entry {
                    folder: of,
                    received: sheet.number(&row, contents::RECEIVED)?,
                    document: sheet.number(&row, contents::DOCUMENT)?,
                },
                is_read: standing.is_read,
                sender: standing.sender as u32,
                size_bytes: standing.size_bytes as u64,
            });
        }
        Ok(found)
    }

    /// How many messages a folder has.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn total(&self, number: u32, of: i32) -> Result<u64> {
        let home = self.enter(number).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.folders;
        let key = sheet.prefix(0, &[number.into(), of.into()].map(Value::Number))?;
        let row = sheet.get(&transaction, &key).await?.ok_or(EngineError::RowNotFound)?;
        Ok(sheet.number(&row, folder::TOTAL)?.max(0) as u64)
    }

    /// Reads a message and holds it against what was written; `None` when it is not there.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn read(&self, number: u32, entry: Entry) -> Result<Option<Read>> {
        let home = self.enter(number).await?;
        let transaction = home.mail.begin();
        let sheet = &home.tables.contents;
        let key = entry_key(sheet, number, entry)?;
        let Some(row) = sheet.get(&transaction, &key).await? else {
            return Ok(None);
        };
        let sender = sheet.number(&row, contents::SENDER)? as u32;
        let read = self.read_content(&home, &transaction, number, entry.document).await?;
        Ok(read.map(|read| Read { sender, ..read }))
    }

    /// The same without looking whether it stands in a folder.
    pub(super) async fn read_content(
        &self,
        home: &Home,
        transaction: &Transaction,
        number: u32,
        document: i64,
    ) -> Result<Option<Read>> {
        let sheet = &home.tables.messages;
        let key = sheet.prefix(0, &self.rows_of(home).content_of(number, document))?;
        let Some(row) = sheet.get(transaction, &key).await? else {
            return Ok(None);
        };
        let stored = sheet.long_value(transaction, &row, message::BODY).await?;
        let body = of_long(&stored);
        let check = self.check_of(number, document, body);
        let is_right = check.as_ref().is_some_and(|check| {
            let text = body.len().checked_sub(check.text.bytes as usize);
            text.is_some_and(|at| part_is(&body[at..], check.text))
        });
        Ok(Some(Read {
            bytes: body.len() as u64,
            is_right,
            has_attachment: check.is_some_and(|check| check.attachment.bytes > 0),
            sender: 0,
        }))
    }

    /// What a message says of itself, if it is the one that is asked for.
    fn check_of(&self, number: u32, document: i64, body: &[u8]) -> Option<Check> {
        let end = body.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let check = Check::find(&body[..end])?;
        let is_it = check.seed == self.corpus.seed() && check.id == letter_of(number, document);
        is_it.then_some(check)
    }

    /// Reads the attachment of a message and holds it against what was written; `None` when there
    /// is none.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn read_attachment(&self, number: u32, entry: Entry) -> Result<Option<Read>> {
        let home = self.enter(number).await?;
        self.attachment_of(&home, &home.mail.begin(), number, entry.document).await
    }

    pub(super) async fn attachment_of(
        &self,
        home: &Home,
        transaction: &Transaction,
        number: u32,
        document: i64,
    ) -> Result<Option<Read>> {
        let (messages, sheet) = (&home.tables.messages, &home.tables.attachments);
        let [owner, document] = self.rows_of(home).content_of(number, document);
        let key = sheet.prefix(0, &[owner, document, Value::Number(1)])?;
        let Some(row) = sheet.get(transaction, &key).await? else {
            return Ok(None);
        };
        let stored = sheet.long_value(transaction, &row, attachment::CONTENT).await?;
        let content = of_long(&stored);
        let key = messages.prefix(0, &[owner, document])?;
        let Some(of) = messages.get(transaction, &key).await? else {
            return Ok(None);
        };
        let body = messages.long_value(transaction, &of, message::BODY).await?;
        let end = of_long(&body).windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let check = end.and_then(|end| Check::find(&of_long(&body)[..end]));
        Ok(Some(Read {
            bytes: content.len() as u64,
            is_right: check.is_some_and(|check| part_is(content, check.attachment)),
            has_attachment: true,
            sender: 0,
        }))
    }

    /// Marks messages as read, all in one transaction; how many were not.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn mark_read(&self, number: u32, entries: &[Entry]) -> Result<u64> {
        let home = self.enter(number).await?;
        let (changes, rows) = (self.open_changes(entries.len()), self.rows_of(&home));
        self.transact(&home, Commit::Lazy, async |transaction| {
            let mut marked = 0;
            for (entry, change) in entries.iter().zip(changes.first..) {
                let is_new = rows.mark_read(transaction, number, *entry, change).await?;
                marked += u64::from(is_new);
            }
            Ok(marked)
        })
        .await
    }

    /// Lets messages stand in another folder, all in one transaction; those that were there.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn shift(&self, number: u32, entries: &[Entry], into: i32) -> Result<Vec<Entry>> {
        let home = self.enter(number).await?;
        let (changes, rows) = (self.open_changes(2 * entries.len()), self.rows_of(&home));
        self.transact(&home, Commit::Durable, async |transaction| {
            let mut moved = Vec::new();
            for (entry, change) in entries.iter().zip((changes.first..).step_by(2)) {
                moved.extend(rows.shift(transaction, number, *entry, into, change).await?);
            }
            Ok(moved)
        })
        .await
    }

    /// Removes messages for good, all in one transaction; how many were there.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn delete(&self, number: u32, entries: &[Entry]) -> Result<u64> {
        let home = self.enter(number).await?;
        let (changes, rows) = (self.open_changes(entries.len()), self.rows_of(&home));
        self.transact(&home, Commit::Durable, async |transaction| {
            let mut gone = 0;
            for (entry, change) in entries.iter().zip(changes.first..) {
                gone += u64::from(rows.remove(transaction, number, *entry, change).await?);
            }
            Ok(gone)
        })
        .await
    }

    /// What has changed in a mailbox since a client last asked, who was told of everything up to
    /// `since`.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn changes(&self, number: u32, since: i64) -> Result<Changes> {
        // Asked before the snapshot is taken: what is open now may be missing in it.
        let until = self.settled_change().max(since);
        let mut found = Changes { list: Vec::new(), until };
        let surplus = {
            let home = self.enter(number).await?;
            let (sheet, mailboxes) = (&home.tables.changes, &home.tables.mailboxes);
            let transaction = home.mail.begin();
            let from = [number.into(), since + 1].map(Value::Number);
            let mut rows = sheet.rows_from(&transaction, &from, 1)?;
            while let Some(row) = rows.next().await? {
                let value = |position| sheet.number(&row, position);
                let what = value(change::WHAT)?;
                found.list.push(Changed {
                    entry: Entry {
                        folder: value(change::FOLDER)? as i32,
                        received: value(change::RECEIVED)?,
                        document: value(change::DOCUMENT)?,
                    },
                    came: what == What::Came as i64,
                    went: what == What::Went as i64,
                });
            }
            let key = mailboxes.key_of_number(number.into())?;
            let row = mailboxes.get(&transaction, &key).await?.ok_or(EngineError::RowNotFound)?;
            mailboxes.number(&row, mailbox::CHANGES)? - CHANGES_KEPT
        };
        if surplus > CHANGES_SLACK {
            self.prune(number, surplus).await?;
        }
        Ok(found)
    }

    /// Forgets the oldest changes of a mailbox.
    async fn prune(&self, number: u32, surplus: i64) -> Result<()> {
        let home = self.enter(number).await?;
        let (sheet, rows_of) = (&home.tables.changes, self.rows_of(&home));
        self.transact(&home, Commit::Lazy, async |transaction| {
            let mut keys = Vec::new();
            let mut rows = sheet.rows(transaction, 0, &[Value::Number(number.into())])?;
            while (keys.len() as i64) < surplus
                && let Some(row) = rows.next().await?
            {
                keys.push(row.key);
            }
            drop(rows);
            for key in &keys {
                sheet.delete(transaction, key).await?;
            }
            let fewer = [(mailbox::CHANGES, -(keys.len() as i64))];
            rows_of.count_mailbox(transaction, number, &fewer).await
        })
        .await
    }
}

/// Whether bytes are what was written.
fn part_is(bytes: &[u8], wanted: plimsoll_workload::mail::Part) -> bool {
    let mut sum = PartSum::default();
    sum.add(bytes);
    sum.part() == wanted
}
