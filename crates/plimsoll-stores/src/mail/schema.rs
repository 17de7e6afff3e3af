//! The tables of a mail store, and of the transport queue before it.
//!
//! Keys begin with the mailbox, so that a mailbox lies together. What a folder shows lies in
//! `Contents`, newest first; what is read lies in `Message` and `Attachment`, for each mailbox or,
//! where an edition keeps one copy of a message for all its recipients, under one owner.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::{Column, ColumnType, Table, TableBuilder};

use crate::shop::Sheet;

type Columns = &'static [(&'static str, ColumnType)];
/// Name, columns and key.
type Declared = (&'static str, Columns, &'static [&'static str]);

/// Declares the columns of a table and their positions.
macro_rules! table {
    ($module:ident, $name:ident = $table:literal,
     [$($constant:ident = $column:literal: $kind:ident),* $(,)?]) => {
        pub const $name: &str = $table;
        pub mod $module {
            use plimsoll_engine::ColumnType;

            pub const COLUMNS: &[(&str, ColumnType)] =
                &[$(($column, ColumnType::$kind)),*];

            #[allow(clippy::upper_case_acronyms, reason = "only its numbers are used")]
            #[allow(non_camel_case_types, reason = "they become constants")]
            enum Position { $($constant),* }

            $(#[allow(dead_code, reason = "not every column is read by name")]
            pub const $constant: usize = Position::$constant as usize;)*
        }
    };
}

table!(marker, MARKER = "plimsoll_mail", [
    ID = "id": Long, SEED = "seed": LongLong, SIZES = "sizes": LongLong,
    MAILBOXES = "mailboxes": LongLong, FOLDERS = "folders": LongLong,
    PER_FOLDER = "messages_per_folder": LongLong, INBOX = "inbox": LongLong,
    LAYOUT = "layout": LongLong, VIEWS = "views": LongLong, INDEXED = "indexed": LongLong,
    RUNS = "runs": LongLong,
]);
table!(mailbox, MAILBOX = "Mailbox", [
    NUMBER = "mailbox": Long, USED_BYTES = "used_bytes": LongLong,
    RECEIVED = "received": LongLong, DELIVERED = "delivered": LongLong,
    DELETED = "deleted": LongLong, CHANGES = "changes": LongLong,
]);
table!(folder, FOLDER = "Folder", [
    MAILBOX = "mailbox": Long, NUMBER = "folder": Long, KIND = "kind": Long,
    TOTAL = "total": LongLong, UNREAD = "unread": LongLong,
]);
table!(message, MESSAGE = "Message", [
    OWNER = "owner": Long, DOCUMENT = "document": LongLong, SIZE_BYTES = "size_bytes": LongLong,
    REFERENCES = "references": LongLong, BODY = "body": LongBinary,
]);
table!(attachment, ATTACHMENT = "Attachment", [
    OWNER = "owner": Long, DOCUMENT = "document": LongLong, NUMBER = "number": Long,
    CONTENT = "content": LongBinary,
]);
table!(contents, CONTENTS = "Contents", [
    MAILBOX = "mailbox": Long, FOLDER = "folder": Long, RECEIVED = "received": LongLong,
    DOCUMENT = "document": LongLong, READ = "read": Long, SIZE_BYTES = "size_bytes": LongLong,
    SENDER = "sender": LongLong, SUBJECT = "subject": Text,
]);
table!(view, VIEW = "View", [
    MAILBOX = "mailbox": Long, FOLDER = "folder": Long, VIEW = "view": Long, SORT = "sort": Long,
    DOCUMENT = "document": LongLong,
]);
table!(change, CHANGE = "Change", [
    MAILBOX = "mailbox": Long, NUMBER = "change": LongLong, FOLDER = "folder": Long,
    RECEIVED = "received": LongLong, DOCUMENT = "document": LongLong, WHAT = "what": Long,
]);
table!(event, EVENT = "Event", [
    MAILBOX = "mailbox": Long, START = "start": LongLong, DOCUMENT = "document": LongLong,
    END = "end": LongLong, TEXT = "text": LongBinary,
]);
table!(word, WORD = "Word", [
    MAILBOX = "mailbox": Long, WORD = "word": Text, DOCUMENT = "document": LongLong,
]);
table!(pending, PENDING = "Pending", [
    MAILBOX = "mailbox": Long, FOLDER = "folder": Long, RECEIVED = "received": LongLong,
    DOCUMENT = "document": LongLong,
]);
table!(property, PROPERTY = "Property", [
    MAILBOX = "mailbox": Long, KIND = "kind": Long, NUMBER = "number": Long,
    CONTENT = "content": LongBinary,
]);
table!(delivered, DELIVERED = "Delivered", [DOCUMENT = "document": LongLong]);
table!(queued, QUEUE = "Queue", [
    DOCUMENT = "document": LongLong, SENDER = "sender": LongLong, ACCEPTED = "accepted": LongLong,
    RECIPIENTS = "recipients": LongBinary, BODY = "body": LongBinary,
    ATTACHMENT = "attachment": LongBinary,
]);
table!(accepted, ACCEPTED = "Accepted", [
    ID = "id": Long, MESSAGES = "messages": LongLong, RECIPIENTS = "recipients": LongLong,
]);

table!(moving, MOVING = "Moving", [MAILBOX = "mailbox": Long, KIND = "kind": Long]);

/// The tables of a mail store and its queue, open.
pub struct Tables {
    pub marker: Sheet,
    pub mailboxes: Sheet,
    pub folders: Sheet,
    pub messages: Sheet,
    pub attachments: Sheet,
    pub contents: Sheet,
    pub views: Sheet,
    pub changes: Sheet,
    pub events: Sheet,
    pub words: Sheet,
    pub pending: Sheet,
    pub properties: Sheet,
    pub delivered: Sheet,
    pub queue: Sheet,
    pub accepted: Sheet,
}

fn declared(name: &str, columns: Columns, key: &[&str]) -> Result<Table, EngineError> {
    let table = columns.iter().fold(Table::builder(name), |table: TableBuilder, (name, kind)| {
        table.column(Column::new(name, *kind))
    });
    let built = table.primary("primary", key).build();
    built.map_err(|error| EngineError::BadRow(error.to_string()))
}

/// The tables of the queue with their keys.
const OF_QUEUE: &[Declared] =
    &[(QUEUE, queued::COLUMNS, &["document"]), (ACCEPTED, accepted::COLUMNS, &["id"])];
/// Those of the store; the marker is the last one.
const OF_MAIL: &[Declared] = &[
    (MAILBOX, mailbox::COLUMNS, &["mailbox"]),
    (FOLDER, folder::COLUMNS, &["mailbox", "folder"]),
    (MESSAGE, message::COLUMNS, &["owner", "document"]),
    (ATTACHMENT, attachment::COLUMNS, &["owner", "document", "number"]),
    (CONTENTS, contents::COLUMNS, &["mailbox", "folder", "-received", "document"]),
    (VIEW, view::COLUMNS, &["mailbox", "folder", "view", "sort", "document"]),
    (CHANGE, change::COLUMNS, &["mailbox", "change"]),
    (EVENT, event::COLUMNS, &["mailbox", "start", "document"]),
    (WORD, word::COLUMNS, &["mailbox", "word", "document"]),
    (PENDING, pending::COLUMNS, &["document", "mailbox"]),
    (PROPERTY, property::COLUMNS, &["mailbox", "kind", "number"]),
    (DELIVERED, delivered::COLUMNS, &["document"]),
    (MARKER, marker::COLUMNS, &["id"]),
];

/// What both databases of mailboxes have where there are two: marks of moves that have begun.
const OF_MOVES: &[Declared] = &[(MOVING, moving::COLUMNS, &["mailbox"])];

/// Whether a table of this name is one of a mail store or its queue.
pub fn is_table(name: &str) -> bool {
    OF_MAIL.iter().chain(OF_QUEUE).chain(OF_MOVES).any(|(known, _, _)| *known == name)
}

impl Tables {
    /// Makes all of them.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn create(mail: &Rc<Instance>, queue: &Rc<Instance>) -> Result<Tables, EngineError> {
        for (instance, tables) in [(queue, OF_QUEUE), (mail, OF_MAIL)] {
            for (name, columns, key) in tables {
                instance.create_table(1, declared(name, columns, key)?).await?;
            }
        }
        Tables::open(mail, queue).await
    }

    /// Makes those tables of two databases of mailboxes that are not there yet, and opens the marks
    /// of both.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn create_for_moves(
        mail: &Rc<Instance>,
        further: &Rc<Instance>,
    ) -> Result<[Sheet; 2], EngineError> {
        let marks = async |instance: &Rc<Instance>, tables: &[&[Declared]]| {
            let there = instance.tables(1).await?;
            for (name, columns, key) in tables.concat() {
                if !there.iter().any(|placed| placed.table.name == name) {
                    instance.create_table(1, declared(name, columns, key)?).await?;
                }
            }
            Tables::open_marks(instance).await
        };
        Ok([marks(mail, &[OF_MOVES]).await?, marks(further, &[OF_MAIL, OF_MOVES]).await?])
    }

    /// Opens the marks of moves of a database.
    ///
    /// # Errors
    /// When they are not there.
    pub async fn open_marks(mail: &Instance) -> Result<Sheet, EngineError> {
        Sheet::open(mail, MOVING, moving::COLUMNS).await
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// When one is not there.
    pub async fn open(mail: &Instance, queue: &Instance) -> Result<Tables, EngineError> {
        let open = async |name, columns| Sheet::open(mail, name, columns).await;
        Ok(Tables {
            marker: open(MARKER, marker::COLUMNS).await?,
            mailboxes: open(MAILBOX, mailbox::COLUMNS).await?,
            folders: open(FOLDER, folder::COLUMNS).await?,
            messages: open(MESSAGE, message::COLUMNS).await?,
            attachments: open(ATTACHMENT, attachment::COLUMNS).await?,
            contents: open(CONTENTS, contents::COLUMNS).await?,
            views: open(VIEW, view::COLUMNS).await?,
            changes: open(CHANGE, change::COLUMNS).await?,
            events: open(EVENT, event::COLUMNS).await?,
            words: open(WORD, word::COLUMNS).await?,
            pending: open(PENDING, pending::COLUMNS).await?,
            properties: open(PROPERTY, property::COLUMNS).await?,
            delivered: open(DELIVERED, delivered::COLUMNS).await?,
            queue: Sheet::open(queue, QUEUE, queued::COLUMNS).await?,
            accepted: Sheet::open(queue, ACCEPTED, accepted::COLUMNS).await?,
        })
    }
}
