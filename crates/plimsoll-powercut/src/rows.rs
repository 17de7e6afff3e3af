//! The two tables: `Commits` with a body that follows from the row's number, and `Twins`, in
//! another tree and another order, written by the same transaction.

use std::rc::Rc;

use plimsoll_engine::cursor::{Direction, KeyRange};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::{OpenTable, StoredRow};
use plimsoll_engine::transaction::Transaction;
use plimsoll_engine::{Column, ColumnType, Table};
use plimsoll_io::Random;

use crate::spec::PowercutSpec;

const COMMITS: &str = "Commits";
const TWINS: &str = "Twins";
/// Other readers take values that begin lower for compressed ones.
const BODY_FIRST_BYTE: u8 = 0x41;

type Result<T> = std::result::Result<T, EngineError>;

/// What one transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose.
    pub session: u32,
    /// Its place in the session's ring.
    pub slot: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// Acknowledgements when it was begun.
    pub started: u64,
}

/// Both tables, open.
pub struct Tables {
    commits: OpenTable,
    twins: OpenTable,
}

fn declared(name: &str) -> Result<Table> {
    let columns = Table::builder(name)
        .column(Column::new("id", ColumnType::LongLong))
        .column(Column::new("sequence", ColumnType::LongLong))
        .column(Column::new("started", ColumnType::LongLong))
        .column(Column::new("body", ColumnType::LongBinary))
        .primary("primary", &["id"])
        .duplicates("by sequence", &["sequence"]);
    columns.build().map_err(|error| EngineError::BadRow(error.to_string()))
}

impl Tables {
    /// Makes both.
    pub async fn create(instance: &Rc<Instance>) -> Result<Tables> {
        Ok(Tables {
            commits: instance.create_table(1, declared(COMMITS)?).await?,
            twins: instance.create_table(1, declared(TWINS)?).await?,
        })
    }

    /// Opens both.
    pub async fn open(instance: &Instance) -> Result<Tables> {
        Ok(Tables {
            commits: instance.open_table(1, COMMITS).await?,
            twins: instance.open_table(1, TWINS).await?,
        })
    }

    /// Writes a row and its twin; the first round of a ring inserts, every further one replaces.
    pub async fn write(
        &self,
        transaction: &Transaction,
        spec: &PowercutSpec,
        row: Row,
    ) -> Result<()> {
        let is_new = row.sequence <= spec.rows;
        let body = body_of(spec, row);
        write_one(&self.commits, transaction, commit_id(row), row, Some(&body), is_new).await?;
        write_one(&self.twins, transaction, twin_id(row), row, None, is_new).await
    }

    /// Every row of `Commits` with whether its body is what was written.
    pub async fn commits(
        &self,
        transaction: &Transaction,
        spec: &PowercutSpec,
    ) -> Result<Vec<(Row, bool)>> {
        let mut found = Vec::new();
        let mut cursor = self.commits.scan(transaction, 0, KeyRange::all(), Direction::Forward);
        while let Some(stored) = cursor.next().await? {
            let id = number(&self.commits, transaction, &stored, "id").await?;
            let row = Row {
                session: (id >> 32) as u32,
                slot: id & u64::from(u32::MAX),
                sequence: number(&self.commits, transaction, &stored, "sequence").await?,
                started: number(&self.commits, transaction, &stored, "started").await?,
            };
            let column = self.commits.column("body")?;
            let body = self.commits.value(transaction, &stored, column).await?;
            found.push((row, body.as_deref() == Some(&body_of(spec, row)[..])));
        }
        Ok(found)
    }

    /// Every row of `Twins`.
    pub async fn twins(&self, transaction: &Transaction) -> Result<Vec<Row>> {
        let mut found = Vec::new();
        let mut cursor = self.twins.scan(transaction, 0, KeyRange::all(), Direction::Forward);
        while let Some(stored) = cursor.next().await? {
            let id = number(&self.twins, transaction, &stored, "id").await?;
            found.push(Row {
                session: (id & u64::from(u32::MAX)) as u32,
                slot: id >> 32,
                sequence: number(&self.twins, transaction, &stored, "sequence").await?,
                started: number(&self.twins, transaction, &stored, "started").await?,
            });
        }
        Ok(found)
    }
}

/// Rows of a session lie together ...
fn commit_id(row: Row) -> u64 {
    u64::from(row.session) << 32 | row.slot
}

/// ... and their twins apart.
fn twin_id(row: Row) -> u64 {
    row.slot << 32 | u64::from(row.session)
}

fn body_of(spec: &PowercutSpec, row: Row) -> Vec<u8> {
    let seed = spec.run ^ row.sequence.rotate_left(24) ^ u64::from(row.session);
    let mut body = vec![0; spec.row_bytes as usize];
    Random::from_seed(seed).fill(&mut body);
    body[0] = BODY_FIRST_BYTE;
    body
}

async fn write_one(
    table: &OpenTable,
    transaction: &Transaction,
    id: u64,
    row: Row,
    body: Option<&[u8]>,
    is_new: bool,
) -> Result<()> {
    let (id, sequence, started) =
        (id.to_le_bytes(), row.sequence.to_le_bytes(), row.started.to_le_bytes());
    let mut values = vec![
        (table.column("sequence")?, Some(&sequence[..])),
        (table.column("started")?, Some(&started[..])),
        (table.column("body")?, body),
    ];
    if is_new {
        values.push((table.column("id")?, Some(&id[..])));
        table.insert(transaction, &values).await.map(drop)
    } else {
        let key = table.key(&[Some(&id)])?;
        table.update(transaction, &key, &values).await
    }
}

async fn number(
    table: &OpenTable,
    transaction: &Transaction,
    row: &StoredRow,
    column: &str,
) -> Result<u64> {
    let bytes = table.value(transaction, row, table.column(column)?).await?;
    let bytes: Option<[u8; 8]> = bytes.and_then(|bytes| bytes.try_into().ok());
    let missing = || EngineError::BadRow(format!("a row has no {column}"));
    bytes.map(u64::from_le_bytes).ok_or_else(missing)
}
