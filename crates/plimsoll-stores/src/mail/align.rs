//! Making the rows of a mailbox at one place those at another: in batches of bounded size, whatever
//! is there already. What a crash or an interruption left is gone on with, and what changed
//! meanwhile is written anew.

use std::cmp::Ordering;

use plimsoll_engine::ColumnType;
use plimsoll_engine::error::Result;
use plimsoll_engine::table::StoredRow;
use plimsoll_engine::transaction::{Commit, Transaction};

use super::MailStore;
use super::homes::Home;
use super::tally::Tally;
use crate::shop::{Sheet, Value};

/// Bytes of values of one transaction, but for a row that is larger alone.
const BATCH_BYTES: u64 = 256 << 10;
/// Rows that one transaction changes.
pub(super) const BATCH_ROWS: usize = 64;
/// Rows that are compared in one go.
const COMPARED_ROWS: usize = 512;

/// How the rows of a table are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// A row is never changed once it is written.
    Fixed,
    /// Rows change.
    Changing,
}

/// Tables whose rows begin with the mailbox, but for its own row: long values first.
pub(super) fn tables_of(home: &Home) -> [(&Sheet, Rows); 8] {
    let tables = &home.tables;
    [
        (&tables.messages, Rows::Fixed),
        (&tables.attachments, Rows::Fixed),
        (&tables.changes, Rows::Fixed),
        (&tables.views, Rows::Fixed),
        (&tables.events, Rows::Fixed),
        (&tables.properties, Rows::Changing),
        (&tables.contents, Rows::Changing),
        (&tables.folders, Rows::Changing),
    ]
}

/// From where to where a mailbox goes.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub from: &'a Home,
    pub to: &'a Home,
    pub number: u32,
}

/// What is to be done in one transaction.
#[derive(Default)]
struct Batch {
    remove: Vec<Vec<u8>>,
    write: Vec<Copied>,
    /// The last key that was compared.
    last: Option<Vec<u8>>,
    is_over: bool,
}

impl MailStore {
    /// Gives the new place the rows of the old one. `false` when it was told to end.
    pub(super) async fn align(
        &self,
        way: Way<'_>,
        tally: &Tally<'_>,
        may_end: bool,
    ) -> Result<bool> {
        for ((source, rows), (target, _)) in tables_of(way.from).into_iter().zip(tables_of(way.to))
        {
            let mut after = None;
            loop {
                let batch = compare(way, (source, target, rows), after.as_deref(), tally).await?;
                if !batch.remove.is_empty() || !batch.write.is_empty() {
                    self.transact(way.to, Commit::Lazy, async |transaction| {
                        for key in &batch.remove {
                            target.delete(transaction, key).await?;
                        }
                        for copied in &batch.write {
                            copied.write(target, transaction).await?;
                        }
                        Ok(())
                    })
                    .await?;
                    let bytes = batch.write.iter().map(|copied| copied.bytes).sum::<u64>();
                    tally.note(|moved| {
                        moved.rows += batch.write.len() as u64;
                        moved.written_bytes += bytes;
                    });
                }
                if !tally.tell() && may_end {
                    return Ok(false);
                }
                if batch.is_over {
                    break;
                }
                after = batch.last;
                way.from.mail.store().handle.breathe().await;
            }
        }
        Ok(true)
    }
}

/// Compares rows of a table at both places, from a key on.
async fn compare(
    way: Way<'_>,
    (source, target, rows): (&Sheet, &Sheet, Rows),
    after: Option<&[u8]>,
    tally: &Tally<'_>,
) -> Result<Batch> {
    let mut batch = Batch::default();
    let place = [Value::Number(way.number.into())];
    let (reading, there) = (way.from.mail.begin(), way.to.mail.begin());
    let mut old_rows = source.rows_after(&reading, &place, after)?;
    let mut new_rows = target.rows_after(&there, &place, after)?;
    let (mut old, mut new) = (old_rows.next().await?, new_rows.next().await?);
    let (mut bytes, mut compared) = (0, 0);
    while bytes < BATCH_BYTES
        && batch.write.len() + batch.remove.len() < BATCH_ROWS
        && compared < COMPARED_ROWS
    {
        compared += 1;
        let order = match (&old, &new) {
            (None, None) => {
                batch.is_over = true;
                break;
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.key.cmp(&new.key),
        };
        if order.is_le()
            && let Some(row) = &old
            && (order.is_lt() || rows == Rows::Changing)
        {
            let copied = Copied::of(source, &reading, row).await?;
            tally.note(|moved| moved.read_bytes += copied.bytes);
            let same = match &new {
                Some(new) if order.is_eq() => Copied::of(target, &there, new).await? == copied,
                _ => false,
            };
            if !same {
                bytes += copied.bytes;
                batch.write.push(copied);
                // Written anew: it goes first.
                batch.remove.extend(order.is_eq().then(|| row.key.clone()));
            }
        }
        let mut last = None;
        if order.is_ge() {
            if let Some(row) = new.take() {
                batch.remove.extend(order.is_gt().then(|| row.key.clone()));
                last = Some(row.key);
            }
            new = new_rows.next().await?;
        }
        if order.is_le() {
            last = old.take().map(|row| row.key).or(last);
            old = old_rows.next().await?;
        }
        batch.last = last;
    }
    Ok(batch)
}

/// Keys of rows that begin with these values, so many at most.
pub(super) async fn keys_of(
    sheet: &Sheet,
    transaction: &Transaction,
    place: &[Value<'_>],
    most: usize,
) -> Result<Vec<Vec<u8>>> {
    let mut rows = sheet.rows(transaction, 0, place)?;
    let mut keys = Vec::new();
    while keys.len() < most
        && let Some(row) = rows.next().await?
    {
        keys.push(row.key);
    }
    Ok(keys)
}

/// A value of a row that is copied.
#[derive(PartialEq, Eq)]
enum Kept {
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row that is copied as it is.
#[derive(PartialEq, Eq)]
pub(super) struct Copied {
    values: Vec<Kept>,
    /// Bytes of its values.
    pub bytes: u64,
}

impl Copied {
    /// Reads a row.
    pub async fn of(sheet: &Sheet, transaction: &Transaction, row: &StoredRow) -> Result<Copied> {
        let (mut values, mut bytes) = (Vec::new(), 0);
        for (position, kind) in sheet.kinds().enumerate() {
            let value = match kind {
                ColumnType::LongBinary => {
                    Kept::Bytes(sheet.long_value(transaction, row, position).await?)
                }
                ColumnType::Text => Kept::Text(sheet.text(row, position)?.to_owned()),
                _ => Kept::Number(sheet.number(row, position)?),
            };
            bytes += match &value {
                Kept::Bytes(value) => value.len(),
                Kept::Text(value) => value.len(),
                Kept::Number(_) => kind.fixed_bytes().unwrap_or_default(),
            } as u64;
            values.push(value);
        }
        Ok(Copied { values, bytes })
    }

    /// Writes it into a table that has no such row.
    pub async fn write(&self, sheet: &Sheet, transaction: &Transaction) -> Result<()> {
        let value = |value| match value {
            &Kept::Number(number) => Value::Number(number),
            Kept::Text(text) => Value::Text(text),
            Kept::Bytes(bytes) => Value::Bytes(bytes),
        };
        let values: Vec<Value<'_>> = self.values.iter().map(value).collect();
        sheet.insert(transaction, &values).await
    }
}
