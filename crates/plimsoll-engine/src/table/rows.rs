//! Row operations.

use std::ops::RangeInclusive;

use super::held::{Held, StoredRow};
use super::row_change::{apply_values, whole_or_nothing};
use super::{ColumnValue, OpenTable};
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::transaction::{Counter, Transaction, Work};
use crate::{ColumnId, ColumnType, Record, StoredValue};

/// The numbers that a column of this type holds, if it can be added to.
fn counted(column_type: ColumnType) -> Option<RangeInclusive<i128>> {
    match column_type {
        ColumnType::Long => Some(i32::MIN.into()..=i32::MAX.into()),
        ColumnType::UnsignedLong => Some(0..=u32::MAX.into()),
        ColumnType::LongLong | ColumnType::Currency => Some(i64::MIN.into()..=i64::MAX.into()),
        ColumnType::UnsignedLongLong => Some(0..=u64::MAX.into()),
        _ => None,
    }
}

/// What came of inserting a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Its primary key.
    pub key: Vec<u8>,
    /// The number of its auto-increment column, if the table has one.
    pub number: Option<u64>,
}

impl OpenTable {
    /// Inserts a row. Columns left out have their default value, which is null unless declared.
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`] for the primary key or a unique index, [`EngineError::BadRow`]
    /// for values that do not fit; the transaction is then as before.
    pub async fn insert(
        &self,
        transaction: &Transaction,
        values: &[ColumnValue<'_>],
    ) -> Result<Vec<u8>> {
        Ok(self.insert_numbered(transaction, values).await?.key)
    }

    /// Inserts a row, and tells the number that its auto-increment column was given.
    ///
    /// # Errors
    /// As [`OpenTable::insert`]; [`EngineError::BadRow`] for a value of the auto-increment column,
    /// or when there are no numbers left.
    pub async fn insert_numbered(
        &self,
        transaction: &Transaction,
        values: &[ColumnValue<'_>],
    ) -> Result<Inserted> {
        let work = transaction.work();
        let _changing = self.begin_change(work)?;
        self.check_columns(values)?;
        self.check_numbered(values)?;
        let mut row = self.defaults.clone();
        apply_values(&mut row, values);
        let mut number = None;
        if let Some(column) = self.numbered_column() {
            let (next, bytes) = self.next_number(work, column).await?;
            row.insert(column.id, Held::Bytes(bytes));
            number = Some(next);
        }
        let key = whole_or_nothing(work, self.insert_row(work, row)).await?;
        Ok(Inserted { key, number })
    }

    /// The row with this primary key.
    pub async fn get(&self, transaction: &Transaction, key: &[u8]) -> Result<Option<StoredRow>> {
        let work = transaction.work();
        let _reading = self.begin_read(work)?;
        self.stored_row(work, key).await
    }

    pub(super) async fn stored_row(&self, work: &Work, key: &[u8]) -> Result<Option<StoredRow>> {
        let record = work.get(self.row_tree(), key).await?;
        Ok(record.map(|record| StoredRow { key: key.to_vec(), record }))
    }

    /// Gives columns of a row new values; the others stay. The row may move if key columns change.
    pub async fn update(
        &self,
        transaction: &Transaction,
        key: &[u8],
        values: &[ColumnValue<'_>],
    ) -> Result<()> {
        let work = transaction.work();
        let _changing = self.begin_change(work)?;
        self.check_columns(values)?;
        self.check_numbered(values)?;
        whole_or_nothing(work, self.update_row(work, key, values)).await
    }

    /// Deletes a row with its index entries and long values.
    pub async fn delete(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        let work = transaction.work();
        let _changing = self.begin_change(work)?;
        whole_or_nothing(work, self.delete_row(work, key)).await
    }

    /// Adds to a 4- or 8-byte integer column that belongs to no index and is filled from no
    /// counter. Concurrent transactions may add to one row.
    ///
    /// # Errors
    /// [`EngineError::BadRow`] for another column, for null, and for a sum that the column cannot
    /// hold; [`EngineError::WriteConflict`] where it could not once others have rolled back;
    /// [`EngineError::RowNotFound`], ...
    pub async fn add(
        &self,
        transaction: &Transaction,
        key: &[u8],
        column: ColumnId,
        amount: i64,
    ) -> Result<()> {
        let work = transaction.work();
        let _changing = self.begin_change(work)?;
        let counter = self.counter(column)?;
        let row = self.stored_row(work, key).await?;
        let row = row.ok_or(EngineError::RowNotFound)?;
        match self.parse(&row.record)?.value(column) {
            Ok(StoredValue::Bytes(_)) => work.add(self.row_tree(), key, &counter, amount).await,
            // The record of before the column was added has no place for it.
            Ok(StoredValue::Absent) if self.defaults.contains_key(&column) => {
                let added = async {
                    self.update_row(work, key, &[]).await?;
                    work.add(self.row_tree(), key, &counter, amount).await
                };
                whole_or_nothing(work, added).await
            }
            _ => Err(EngineError::BadRow("a null column cannot be added to".into())),
        }
    }

    /// Where a column that can be added to lies in a record, and what it holds.
    fn counter(&self, column: ColumnId) -> Result<Counter> {
        self.check_columns(&[(column, None)])?;
        self.check_numbered(&[(column, None)])?;
        let refused = |why: &str| Err(EngineError::BadRow(format!("column {column} {why}")));
        if self.is_indexed(column) {
            return refused("belongs to an index: give it a new value instead of adding to it");
        }
        let holds = self.placed.table.column(column).and_then(|found| counted(found.column_type));
        match (holds, self.layout.fixed_range(column)) {
            (Some(holds), Some(range)) => {
                let (at, width) = (range.start as u32, range.len() as u8);
                Ok(Counter { at, width, holds: Some(holds) })
            }
            _ => refused("is no integer of 4 or 8 bytes, and only such a column is added to"),
        }
    }

    /// Refuses values for columns that nobody gives a value, and two values for one.
    pub(super) fn check_columns(&self, values: &[ColumnValue<'_>]) -> Result<()> {
        // What the second takes the place of would be let go of twice.
        let is_given_before = |(at, (id, _)): &(usize, &ColumnValue<'_>)| {
            values[..*at].iter().any(|(before, _)| before == id)
        };
        if let Some((_, (id, _))) = values.iter().enumerate().find(is_given_before) {
            return Err(EngineError::BadRow(format!("column {id} is given two values")));
        }
        let column_of = |id: &ColumnId| self.placed.table.column(*id);
        let mut columns = values.iter().filter_map(|(id, _)| column_of(id));
        match columns.find(|column| column.is_dropped()) {
            Some(column) => Err(EngineError::BadRow(format!("column {} was dropped", column.id))),
            None => Ok(()),
        }
    }

    /// Walks an index in the order of its keys. One that is not there is refused when the first
    /// row is asked for.
    pub fn scan<'t>(
        &'t self,
        transaction: &'t Transaction,
        index: usize,
        range: KeyRange,
        direction: Direction,
    ) -> RowCursor<'t> {
        let work = transaction.work();
        let walk = self.walk(work, index, range, direction);
        RowCursor { table: self, work, index, walk }
    }

    /// Counts the rows that an index holds in a range, up to `limit`, without looking at the rows
    /// themselves.
    pub async fn count(
        &self,
        transaction: &Transaction,
        index: usize,
        range: KeyRange,
        limit: u64,
    ) -> Result<u64> {
        let work = transaction.work();
        let _reading = self.begin_read(work)?;
        self.walk(work, index, range, Direction::Forward)?.count(work, limit).await
    }

    /// The stored form of a column of a row.
    ///
    /// # Errors
    /// [`EngineError::NoSuchObject`] for a column that the table does not have, or not any more.
    pub fn stored<'r>(&'r self, row: &'r StoredRow, column: ColumnId) -> Result<StoredValue<'r>> {
        self.check_known(column)?;
        self.value_in(&self.parse(&row.record)?, column)
    }

    /// Fails for a column that was dropped or never was: nothing would pass for null.
    pub(super) fn check_known(&self, column: ColumnId) -> Result<()> {
        match self.placed.table.column(column) {
            Some(known) if !known.is_dropped() => Ok(()),
            _ => Err(EngineError::no_such_number("column", column)),
        }
    }

    /// What a record holds of a column: its default value where the record does not reach it.
    pub(super) fn value_in<'r>(
        &'r self,
        record: &Record<'r>,
        column: ColumnId,
    ) -> Result<StoredValue<'r>> {
        match record.value(column) {
            Ok(StoredValue::Absent) => Ok(match self.defaults.get(&column) {
                Some(Held::Bytes(default)) => StoredValue::Bytes(default),
                _ => StoredValue::Absent,
            }),
            Ok(value) => Ok(value),
            Err(fault) => Err(EngineError::BadRow(fault.to_string())),
        }
    }
}

/// Rows in the order of an index.
pub struct RowCursor<'t> {
    table: &'t OpenTable,
    work: &'t Work,
    index: usize,
    walk: Result<Walk>,
}

impl RowCursor<'_> {
    /// The next row.
    ///
    /// # Errors
    /// [`EngineError::TransactionBusy`] while the transaction changes something,
    /// [`EngineError::NoSuchObject`] without such an index, damaged pages, ...
    pub async fn next(&mut self) -> Result<Option<StoredRow>> {
        let work = self.work;
        let _reading = self.table.begin_read(work)?;
        let walk = self.walk.as_mut().map_err(|error| error.clone())?;
        let Some((key, data)) = walk.next(work).await? else {
            return Ok(None);
        };
        if self.index == 0 {
            return Ok(Some(StoredRow { key, record: data }));
        }
        let row = self.table.stored_row(work, &data).await?;
        row.map(Some).ok_or_else(|| {
            EngineError::BadRow(format!(
                "index {} names a row that is not in its table",
                self.index
            ))
        })
    }
}
