//! The tables of a mail store, and of the transport queue before it.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::{Column, ColumnType, Table, TableBuilder};

use crate::shop::Sheet;

type Columns = &'static [(&'static str, ColumnType)];

const MARKER: Columns = &[
    ("id", ColumnType::Long),
    ("seed", ColumnType::LongLong),
    ("mailboxes", ColumnType::LongLong),
    ("messages", ColumnType::LongLong),
    ("runs", ColumnType::LongLong),
];
/// Positions of the columns of the marker.
pub mod marker {
    pub const SEED: usize = 1;
    pub const MAILBOXES: usize = 2;
    pub const MESSAGES: usize = 3;
    pub const RUNS: usize = 4;
}

const MAILBOXES: Columns = &[
    ("mailbox", ColumnType::Long),
    ("used_bytes", ColumnType::LongLong),
    ("received", ColumnType::LongLong),
    ("deleted", ColumnType::LongLong),
    ("total", ColumnType::LongLong),
    ("unread", ColumnType::LongLong),
];
/// Positions of the columns of a mailbox with its inbox.
pub mod mailbox {
    pub const NUMBER: usize = 0;
    pub const USED_BYTES: usize = 1;
    pub const RECEIVED: usize = 2;
    pub const DELETED: usize = 3;
    pub const TOTAL: usize = 4;
    pub const UNREAD: usize = 5;
}

const MESSAGES: Columns = &[
    ("mailbox", ColumnType::Long),
    ("document", ColumnType::LongLong),
    ("received", ColumnType::LongLong),
    ("read", ColumnType::Long),
    ("size_bytes", ColumnType::LongLong),
    ("body", ColumnType::LongBinary),
];
/// Positions of the columns of a message.
pub mod message {
    pub const MAILBOX: usize = 0;
    pub const DOCUMENT: usize = 1;
    pub const READ: usize = 3;
    pub const SIZE_BYTES: usize = 4;
    pub const BODY: usize = 5;
    /// The index by date, newest first.
    pub const BY_DATE: usize = 1;
}

const DELIVERED: Columns = &[("document", ColumnType::LongLong)];

const QUEUE: Columns = &[
    ("document", ColumnType::LongLong),
    ("recipients", ColumnType::LongBinary),
    ("body", ColumnType::LongBinary),
];
/// Positions of the columns of a message that waits.
pub mod queued {
    pub const DOCUMENT: usize = 0;
    pub const RECIPIENTS: usize = 1;
    pub const BODY: usize = 2;
}

/// The tables of a mail store, open.
pub struct Tables {
    pub marker: Sheet,
    pub mailboxes: Sheet,
    pub messages: Sheet,
    pub delivered: Sheet,
    pub queue: Sheet,
}

fn declared(name: &str, columns: Columns) -> TableBuilder {
    let table = Table::builder(name);
    columns.iter().fold(table, |table, (name, kind)| {
        table.column(Column::new(name, *kind))
    })
}

async fn create(instance: &Rc<Instance>, table: TableBuilder) -> Result<(), EngineError> {
    let table = table.build();
    let table = table.map_err(|error| EngineError::BadRow(error.to_string()))?;
    instance.create_table(1, table).await.map(drop)
}

impl Tables {
    /// Makes all of them.
    pub async fn create(mail: &Rc<Instance>, queue: &Rc<Instance>) -> Result<Tables, EngineError> {
        create(queue, declared("Queue", QUEUE).primary("primary", &["document"])).await?;
        for table in [
            declared("Mailbox", MAILBOXES).primary("primary", &["mailbox"]),
            declared("Message", MESSAGES)
                .primary("primary", &["mailbox", "document"])
                .duplicates("by date", &["mailbox", "-received"]),
            declared("Delivered", DELIVERED).primary("primary", &["document"]),
            declared("plimsoll_mail", MARKER).primary("primary", &["id"]),
        ] {
            create(mail, table).await?;
        }
        Tables::open(mail, queue).await
    }

    /// Opens all of them.
    pub async fn open(mail: &Instance, queue: &Instance) -> Result<Tables, EngineError> {
        Ok(Tables {
            marker: Sheet::open(mail, "plimsoll_mail", MARKER).await?,
            mailboxes: Sheet::open(mail, "Mailbox", MAILBOXES).await?,
            messages: Sheet::open(mail, "Message", MESSAGES).await?,
            delivered: Sheet::open(mail, "Delivered", DELIVERED).await?,
            queue: Sheet::open(queue, "Queue", QUEUE).await?,
        })
    }
}
