//! Messages coming to mailboxes, leaving them and changing folders: what every transaction of the
//! store is made of. Counters follow the rows here and nowhere else.

use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::table::StoredRow;
use plimsoll_engine::transaction::Transaction;

use super::schema::{Tables, change, contents, folder, mailbox, message};
use super::{Entry, Filling, Layout, SHARED, entry_key, long};
use crate::shop::Value;

/// What a change was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum What {
    /// A message came.
    Came = 1,
    /// It is another one now: read.
    Changed = 2,
    /// It went.
    Went = 3,
}

/// A message that comes to mailboxes.
#[derive(Clone, Copy)]
pub struct New<'a> {
    pub document: i64,
    pub received: i64,
    pub sender: i64,
    pub is_read: bool,
    /// Whether the transport brings it.
    pub is_delivery: bool,
    pub subject: &'a str,
    /// Headers and text.
    pub body: &'a [u8],
    pub attachment: &'a [u8],
}

impl New<'_> {
    pub fn size_bytes(&self) -> i64 {
        (self.body.len() + self.attachment.len()) as i64
    }
}

/// A message that stands in a folder, as its row says.
pub struct Standing {
    pub is_read: bool,
    pub size_bytes: i64,
    pub sender: i64,
    pub subject: String,
}

/// The tables with what decides where a message is kept.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub tables: &'a Tables,
    pub filling: Filling,
}

/// A row that was not there when the transaction began has come from somebody else since, who was
/// first: all of it is done again.
pub fn others_first(error: EngineError) -> EngineError {
    match error {
        EngineError::KeyDuplicate { .. } => EngineError::WriteConflict,
        other => other,
    }
}

/// The place of a message in a kept view: by chance, as names and subjects are.
fn sort_of(document: i64, view: u32) -> i64 {
    let mixed = (document as u64 ^ (u64::from(view) << 56)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 34) as i64
}

impl Rows<'_> {
    /// Whose row holds the content of a message: owner and number. A copy of what was sent has the
    /// odd number next to that of the message.
    pub fn content_of(&self, mailbox: u32, document: i64) -> [Value<'static>; 2] {
        let (owner, number) = match self.filling.layout {
            Layout::PerMailbox => (mailbox.into(), document),
            // Prepared messages are in one mailbox only and have numbers that others have, too.
            Layout::Shared if document >> super::RUN_BITS == 0 => (mailbox.into(), document),
            Layout::Shared => (SHARED, document & !1),
        };
        [owner, number].map(Value::Number)
    }

    /// Lays a message into mailboxes, each time into the folder that is named with it.
    pub async fn lay(
        &self,
        transaction: &Transaction,
        places: &[(u32, i32)],
        new: &New<'_>,
        changes: i64,
    ) -> Result<()> {
        for ((number, folder), change) in places.iter().zip(changes..) {
            self.add_content(transaction, *number, new).await?;
            let entry = Entry { folder: *folder, received: new.received, document: new.document };
            let standing = Standing {
                is_read: new.is_read,
                size_bytes: new.size_bytes(),
                sender: new.sender,
                subject: new.subject.to_owned(),
            };
            self.show(transaction, *number, entry, &standing).await?;
            self.note(transaction, *number, entry, What::Came, change).await?;
            let delivered = i64::from(new.is_delivery);
            self.count_mailbox(
                transaction,
                *number,
                &[
                    (mailbox::USED_BYTES, standing.size_bytes),
                    (mailbox::RECEIVED, 1),
                    (mailbox::DELIVERED, delivered),
                ],
            )
            .await?;
        }
        Ok(())
    }

    /// The content, or one reference more where it is kept once.
    async fn add_content(
        &self,
        transaction: &Transaction,
        number: u32,
        new: &New<'_>,
    ) -> Result<()> {
        let sheet = &self.tables.messages;
        let [owner, document] = self.content_of(number, new.document);
        let key = sheet.prefix(0, &[owner, document])?;
        if self.filling.layout == Layout::Shared && sheet.get(transaction, &key).await?.is_some() {
            return sheet.add(transaction, &key, message::REFERENCES, 1).await;
        }
        let body = long(new.body);
        let values = [
            owner,
            document,
            Value::Number(new.size_bytes()),
            Value::Number(1),
            Value::Bytes(&body),
        ];
        sheet.insert(transaction, &values).await.map_err(others_first)?;
        if new.attachment.is_empty() {
            return Ok(());
        }
        let content = long(new.attachment);
        let values = [owner, document, Value::Number(1), Value::Bytes(&content)];
        self.tables.attachments.insert(transaction, &values).await
    }

    /// Takes a message from a mailbox for good.
    pub async fn remove(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
        change: i64,
    ) -> Result<bool> {
        let Some(standing) = self.hide(transaction, number, entry).await? else {
            return Ok(false);
        };
        self.note(transaction, number, entry, What::Went, change).await?;
        self.count_mailbox(
            transaction,
            number,
            &[(mailbox::USED_BYTES, -standing.size_bytes), (mailbox::DELETED, 1)],
        )
        .await?;
        let sheet = &self.tables.messages;
        let content = self.content_of(number, entry.document);
        let key = sheet.prefix(0, &content)?;
        let row = sheet.get(transaction, &key).await?.ok_or(EngineError::RowNotFound)?;
        // Read and written, so that two who take the last references meet.
        let references = sheet.number(&row, message::REFERENCES)?;
        if references > 1 {
            let fewer = [(message::REFERENCES, references - 1)];
            sheet.set(transaction, &key, &fewer).await?;
            return Ok(true);
        }
        sheet.delete(transaction, &key).await?;
        let [owner, document] = content;
        let sheet = &self.tables.attachments;
        let key = sheet.prefix(0, &[owner, document, Value::Number(1)])?;
        if sheet.get(transaction, &key).await?.is_some() {
            sheet.delete(transaction, &key).await?;
        }
        Ok(true)
    }

    /// Lets a message stand in another folder of its mailbox; `None` when it is not there.
    pub async fn shift(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
        into: i32,
        changes: i64,
    ) -> Result<Option<Entry>> {
        let Some(standing) = self.hide(transaction, number, entry).await? else {
            return Ok(None);
        };
        let moved = Entry { folder: into, ..entry };
        self.show(transaction, number, moved, &standing).await?;
        self.note(transaction, number, entry, What::Went, changes).await?;
        self.note(transaction, number, moved, What::Came, changes + 1).await?;
        Ok(Some(moved))
    }

    /// Marks a message as read; `false` when it is read or not there.
    pub async fn mark_read(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
        change: i64,
    ) -> Result<bool> {
        let sheet = &self.tables.contents;
        let key = entry_key(sheet, number, entry)?;
        let Some(row) = sheet.get(transaction, &key).await? else {
            return Ok(false);
        };
        if sheet.number(&row, contents::READ)? == 1 {
            return Ok(false);
        }
        sheet.set(transaction, &key, &[(contents::READ, 1)]).await?;
        self.count_folder(transaction, number, entry.folder, 0, -1).await?;
        self.note(transaction, number, entry, What::Changed, change).await?;
        Ok(true)
    }

    /// What the row of a message in a folder says.
    pub fn standing(&self, row: &StoredRow) -> Result<Standing> {
        let sheet = &self.tables.contents;
        Ok(Standing {
            is_read: sheet.number(row, contents::READ)? == 1,
            size_bytes: sheet.number(row, contents::SIZE_BYTES)?,
            sender: sheet.number(row, contents::SENDER)?,
            subject: sheet.text(row, contents::SUBJECT)?.to_owned(),
        })
    }

    async fn show(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
        standing: &Standing,
    ) -> Result<()> {
        let values = [
            Value::Number(number.into()),
            Value::Number(entry.folder.into()),
            Value::Number(entry.received),
            Value::Number(entry.document),
            Value::Number(standing.is_read.into()),
            Value::Number(standing.size_bytes),
            Value::Number(standing.sender),
            Value::Text(&standing.subject),
        ];
        self.tables.contents.insert(transaction, &values).await?;
        for view in 0..self.filling.views {
            self.tables.views.insert(transaction, &view_key(number, entry, view)).await?;
        }
        let unread = i64::from(!standing.is_read);
        self.count_folder(transaction, number, entry.folder, 1, unread).await
    }

    async fn hide(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
    ) -> Result<Option<Standing>> {
        let sheet = &self.tables.contents;
        let key = entry_key(sheet, number, entry)?;
        let Some(row) = sheet.get(transaction, &key).await? else {
            return Ok(None);
        };
        let standing = self.standing(&row)?;
        sheet.delete(transaction, &key).await?;
        for view in 0..self.filling.views {
            let key = self.tables.views.prefix(0, &view_key(number, entry, view))?;
            self.tables.views.delete(transaction, &key).await?;
        }
        let unread = i64::from(!standing.is_read);
        self.count_folder(transaction, number, entry.folder, -1, -unread).await?;
        Ok(Some(standing))
    }

    async fn note(
        &self,
        transaction: &Transaction,
        number: u32,
        entry: Entry,
        what: What,
        change: i64,
    ) -> Result<()> {
        let mut values = [Value::Null; 6];
        for (position, value) in [
            (change::MAILBOX, number.into()),
            (change::NUMBER, change),
            (change::FOLDER, entry.folder.into()),
            (change::RECEIVED, entry.received),
            (change::DOCUMENT, entry.document),
            (change::WHAT, what as i64),
        ] {
            values[position] = Value::Number(value);
        }
        self.tables.changes.insert(transaction, &values).await?;
        self.count_mailbox(transaction, number, &[(mailbox::CHANGES, 1)]).await
    }

    /// Adds to the counters of a mailbox.
    pub async fn count_mailbox(
        &self,
        transaction: &Transaction,
        number: u32,
        amounts: &[(usize, i64)],
    ) -> Result<()> {
        let sheet = &self.tables.mailboxes;
        let key = sheet.key_of_number(number.into())?;
        for (position, amount) in amounts.iter().filter(|(_, amount)| *amount != 0) {
            sheet.add(transaction, &key, *position, *amount).await?;
        }
        Ok(())
    }

    async fn count_folder(
        &self,
        transaction: &Transaction,
        number: u32,
        into: i32,
        total: i64,
        unread: i64,
    ) -> Result<()> {
        let sheet = &self.tables.folders;
        let key = sheet.prefix(0, &[Value::Number(number.into()), Value::Number(into.into())])?;
        for (position, amount) in [(folder::TOTAL, total), (folder::UNREAD, unread)] {
            if amount != 0 {
                sheet.add(transaction, &key, position, amount).await?;
            }
        }
        Ok(())
    }
}

/// The row of a message in a kept view.
pub fn view_key(number: u32, entry: Entry, view: u32) -> [Value<'static>; 5] {
    [number.into(), entry.folder.into(), view.into(), sort_of(entry.document, view), entry.document]
        .map(Value::Number)
}
