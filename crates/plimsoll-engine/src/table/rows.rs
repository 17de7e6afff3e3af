//! Row operations.

use std::ops::Range;

use super::held::{Held, HeldRow};
use super::index::RowKeys;
use super::long_value::{
    LongValueReader, LongValueWriter, read_long_value_range, release_long_value, share_long_value,
};
use super::{ColumnValue, OpenTable};
use crate::cursor::{Direction, KeyRange, Walk};
use crate::error::{EngineError, Result};
use crate::transaction::{Transaction, Work};
use crate::{ColumnId, ColumnType, NewValue, Record, StoredValue, encode_record};

/// What came of inserting a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Its primary key.
    pub key: Vec<u8>,
    /// The number of its auto-increment column, if the table has one.
    pub number: Option<u64>,
}

/// A row as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Its primary key.
    pub key: Vec<u8>,
    /// Its record.
    pub record: Vec<u8>,
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
        let _changing = work.begin_change()?;
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
        let _reading = work.begin_read()?;
        self.stored_row(work, key).await
    }

    async fn stored_row(&self, work: &Work, key: &[u8]) -> Result<Option<StoredRow>> {
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
        let _changing = work.begin_change()?;
        self.check_columns(values)?;
        self.check_numbered(values)?;
        whole_or_nothing(work, self.update_row(work, key, values)).await
    }

    /// Deletes a row with its index entries and long values.
    pub async fn delete(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        let work = transaction.work();
        let _changing = work.begin_change()?;
        whole_or_nothing(work, self.delete_row(work, key)).await
    }

    /// Adds to a 4- or 8-byte integer column that belongs to no index. Concurrent transactions may
    /// add to one row.
    pub async fn add(
        &self,
        transaction: &Transaction,
        key: &[u8],
        column: ColumnId,
        amount: i64,
    ) -> Result<()> {
        let range = self.layout.fixed_range(column).filter(|range| matches!(range.len(), 4 | 8));
        let range = range.ok_or_else(|| {
            EngineError::BadRow("only 4- and 8-byte columns can be added to".into())
        })?;
        if self.is_indexed(column) {
            return Err(EngineError::BadRow("an indexed column cannot be added to".into()));
        }
        let work = transaction.work();
        let _changing = work.begin_change()?;
        let row = self.stored_row(work, key).await?;
        let row = row.ok_or(EngineError::RowNotFound)?;
        let (at, width) = (range.start as u32, range.len() as u8);
        match self.parse(&row.record)?.value(column) {
            Ok(StoredValue::Bytes(_)) => work.add(self.row_tree(), key, at, width, amount).await,
            // The record of before the column was added has no place for it.
            Ok(StoredValue::Absent) if self.defaults.contains_key(&column) => {
                let added = async {
                    self.update_row(work, key, &[]).await?;
                    work.add(self.row_tree(), key, at, width, amount).await
                };
                whole_or_nothing(work, added).await
            }
            _ => Err(EngineError::BadRow("a null column cannot be added to".into())),
        }
    }

    /// The bytes of a column of a stored row, long values included; `None` is null.
    pub async fn value(
        &self,
        transaction: &Transaction,
        row: &StoredRow,
        column: ColumnId,
    ) -> Result<Option<Vec<u8>>> {
        match self.stored(row, column)? {
            StoredValue::Bytes(bytes) => Ok(Some(bytes.to_vec())),
            StoredValue::Separated { long_value, .. } => {
                let work = transaction.work();
                let _reading = work.begin_read()?;
                let reader = LongValueReader::open(self, work, long_value as u32).await?;
                reader.read_all().await.map(Some)
            }
            StoredValue::Absent | StoredValue::Null => Ok(None),
            other => Err(EngineError::BadRow(format!(
                "column {column} holds {other:?}, which this engine does not write"
            ))),
        }
    }

    /// Some of the bytes of a column of a stored row: of a long value no more than these is read.
    /// What lies behind its end is left out; `None` is null.
    pub async fn value_range(
        &self,
        transaction: &Transaction,
        row: &StoredRow,
        column: ColumnId,
        range: Range<u32>,
    ) -> Result<Option<Vec<u8>>> {
        let StoredValue::Separated { long_value, .. } = self.stored(row, column)? else {
            let value = self.value(transaction, row, column).await?;
            return Ok(value.map(|value| {
                let end = value.len().min(range.end as usize);
                let start = end.min(range.start as usize);
                value[start..end].to_vec()
            }));
        };
        let work = transaction.work();
        let _reading = work.begin_read()?;
        let read = read_long_value_range(self, work, long_value as u32, range);
        read.await.map(Some)
    }

    /// A long column of a stored row in pieces; `None` if it is null or in the record.
    pub async fn long_value<'t>(
        &self,
        transaction: &'t Transaction,
        row: &StoredRow,
        column: ColumnId,
    ) -> Result<Option<LongValueReader<'t>>> {
        match self.stored(row, column)? {
            StoredValue::Separated { long_value, .. } => {
                let work = transaction.work();
                let _reading = work.begin_read()?;
                let reader = LongValueReader::open(self, work, long_value as u32);
                reader.await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Begins a long value for a column of a row; [`OpenTable::attach_long_value`] makes it the
    /// column's value. Until then the transaction cannot be committed: a long value that no row
    /// refers to would stay for ever.
    pub async fn write_long_value<'t>(
        &self,
        transaction: &'t Transaction,
    ) -> Result<LongValueWriter<'t>> {
        let work = transaction.work();
        let _changing = work.begin_change()?;
        LongValueWriter::start(self, work).await
    }

    /// Writes what is left of a long value and makes it the value of a column, in place of the one
    /// before.
    ///
    /// # Errors
    /// [`EngineError::RowNotFound`], [`EngineError::BadRow`] for a column that can hold no long
    /// value, ...: the value stays unattached, and the transaction can only be rolled back, wholly
    /// or to a savepoint before it.
    pub async fn attach_long_value(
        &self,
        transaction: &Transaction,
        key: &[u8],
        column: ColumnId,
        value: LongValueWriter<'_>,
    ) -> Result<()> {
        if !self.is_long(column) {
            return Err(EngineError::BadRow(format!("column {column} can hold no long value")));
        }
        let work = transaction.work();
        let _changing = work.begin_change()?;
        value.check_belongs(self, work)?;
        let stored = self.stored_row(work, key).await?;
        let stored = stored.ok_or(EngineError::RowNotFound)?;
        let finished = value.finish().await?;
        let mut row = self.hold(&stored)?;
        let old_row = row.clone();
        row.insert(column, Held::Separated(finished.number));
        whole_or_nothing(work, self.change_row(work, key, &old_row, row, &[column])).await?;
        work.end_steps(&finished.steps);
        Ok(())
    }

    /// Gives a column of a row the value that a column of another row has. A long value is not
    /// copied: both refer to it, and it goes with the last of them. `of` must be as it is in the
    /// transaction now.
    ///
    /// # Errors
    /// [`EngineError::RowNotFound`] for either row, [`EngineError::WriteConflict`] where another
    /// transaction shares or releases the value, [`EngineError::BadRow`] for a column that can hold
    /// no long value, ...
    pub async fn share_value(
        &self,
        transaction: &Transaction,
        of: (&StoredRow, ColumnId),
        key: &[u8],
        column: ColumnId,
    ) -> Result<()> {
        let work = transaction.work();
        let _changing = work.begin_change()?;
        let shared = match self.stored(of.0, of.1)? {
            StoredValue::Separated { long_value, .. } => Some(long_value as u32),
            StoredValue::Bytes(bytes) => {
                let values = [(column, Some(bytes))];
                self.check_columns(&values)?;
                self.check_numbered(&values)?;
                return whole_or_nothing(work, self.update_row(work, key, &values)).await;
            }
            _ => None,
        };
        if !self.is_long(column) {
            let why = format!("column {column} can hold no long value");
            return Err(EngineError::BadRow(why));
        }
        if let Some(number) = shared {
            self.check_refers(work, of, number).await?;
        }
        whole_or_nothing(work, self.refer(work, key, column, shared)).await
    }

    /// Fails where a row is not there with this long value: numbers of other tables, or of values
    /// that went, lead to another value or to none.
    async fn check_refers(
        &self,
        work: &Work,
        (row, column): (&StoredRow, ColumnId),
        number: u32,
    ) -> Result<()> {
        let now = self.stored_row(work, &row.key).await?.ok_or(EngineError::RowNotFound)?;
        match self.stored(&now, column)? {
            StoredValue::Separated { long_value } if long_value == u64::from(number) => Ok(()),
            _ => Err(EngineError::BadRow(
                "the row whose value is to be shared has another one by now: read it again".into(),
            )),
        }
    }

    /// Makes a column refer to a long value that is there, or null.
    async fn refer(
        &self,
        work: &Work,
        key: &[u8],
        column: ColumnId,
        number: Option<u32>,
    ) -> Result<()> {
        let stored = self.stored_row(work, key).await?;
        let old_row = self.hold(&stored.ok_or(EngineError::RowNotFound)?)?;
        let mut row = old_row.clone();
        match number {
            Some(number) => {
                share_long_value(self, work, number).await?;
                row.insert(column, Held::Separated(number));
            }
            None => {
                row.remove(&column);
            }
        }
        self.change_row(work, key, &old_row, row, &[column]).await
    }

    /// Refuses values for columns that nobody gives a value, and two values for one.
    fn check_columns(&self, values: &[ColumnValue<'_>]) -> Result<()> {
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

    fn is_long(&self, id: ColumnId) -> bool {
        let column = self.placed.table.column(id);
        column.is_some_and(|column| {
            matches!(column.column_type, ColumnType::LongBinary | ColumnType::LongText)
        })
    }

    /// Walks an index in the order of its keys.
    pub fn scan<'t>(
        &'t self,
        transaction: &'t Transaction,
        index: usize,
        range: KeyRange,
        direction: Direction,
    ) -> RowCursor<'t> {
        let work = transaction.work();
        RowCursor {
            table: self,
            work,
            index,
            walk: Walk::new(work, self.index_tree(index), range, direction),
        }
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
        let _reading = work.begin_read()?;
        let walk = Walk::new(work, self.index_tree(index), range, Direction::Forward);
        walk.count(work, limit).await
    }

    /// The stored form of a column of a row.
    pub fn stored<'r>(&'r self, row: &'r StoredRow, column: ColumnId) -> Result<StoredValue<'r>> {
        self.value_in(&self.parse(&row.record)?, column)
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

    async fn insert_row(&self, work: &Work, mut row: HeldRow) -> Result<Vec<u8>> {
        let keys = self.keys_of(work, &row).await?;
        self.separate(work, &mut row).await?;
        let record = self.encode(&row)?;
        self.add_entry(work, 0, &keys.primary, &record).await?;
        for (index, key) in keys.entries() {
            self.add_entry(work, index, key, &keys.primary).await?;
        }
        Ok(keys.primary)
    }

    /// Adds a row, or an entry of a secondary index.
    pub(super) async fn add_entry(
        &self,
        work: &Work,
        index: usize,
        key: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let added = work.insert(self.index_tree(index), key, data).await;
        added.map_err(|error| self.in_index(index, error))
    }

    async fn update_row(&self, work: &Work, key: &[u8], values: &[ColumnValue<'_>]) -> Result<()> {
        let stored = self.stored_row(work, key).await?;
        let old_row = self.hold(&stored.ok_or(EngineError::RowNotFound)?)?;
        let mut row = old_row.clone();
        apply_values(&mut row, values);
        let columns: Vec<ColumnId> = values.iter().map(|(column, _)| *column).collect();
        self.change_row(work, key, &old_row, row, &columns).await
    }

    /// Makes a row what it is to be. Only `columns` differ.
    async fn change_row(
        &self,
        work: &Work,
        key: &[u8],
        old_row: &HeldRow,
        mut row: HeldRow,
        columns: &[ColumnId],
    ) -> Result<()> {
        // Keys are made before long values go: they may be made of them.
        let keys = if columns.iter().any(|column| self.is_indexed(*column)) {
            Some((self.keys_of(work, old_row).await?, self.keys_of(work, &row).await?))
        } else {
            None
        };
        for column in columns {
            if let Some(Held::Separated(number)) = old_row.get(column) {
                release_long_value(self, work, *number).await?;
            }
        }
        self.separate(work, &mut row).await?;
        let record = self.encode(&row)?;
        match keys {
            Some((old_keys, keys)) => self.move_row(work, &old_keys, &keys, &record).await,
            None => work.replace(self.row_tree(), key, &record).await,
        }
    }

    /// Puts a row and its index entries where its keys say.
    async fn move_row(
        &self,
        work: &Work,
        old: &RowKeys,
        new: &RowKeys,
        record: &[u8],
    ) -> Result<()> {
        let is_moved = new.primary != old.primary;
        if is_moved {
            work.delete(self.row_tree(), &old.primary).await?;
            self.add_entry(work, 0, &new.primary, record).await?;
        } else {
            work.replace(self.row_tree(), &new.primary, record).await?;
        }
        for index in new.indexes() {
            let tree = self.index_tree(index);
            let (before, after) = (old.entry(index), new.entry(index));
            if before == after {
                if let Some(key) = after.filter(|_| is_moved) {
                    work.replace(tree, key, &new.primary).await?;
                }
                continue;
            }
            if let Some(key) = before {
                work.delete(tree, key).await?;
            }
            if let Some(key) = after {
                self.add_entry(work, index, key, &new.primary).await?;
            }
        }
        Ok(())
    }

    async fn delete_row(&self, work: &Work, key: &[u8]) -> Result<()> {
        let stored = self.stored_row(work, key).await?;
        let row = self.hold(&stored.ok_or(EngineError::RowNotFound)?)?;
        let keys = self.keys_of(work, &row).await?;
        for held in row.values() {
            if let Held::Separated(number) = held {
                release_long_value(self, work, *number).await?;
            }
        }
        for (index, key) in keys.entries() {
            work.delete(self.index_tree(index), key).await?;
        }
        work.delete(self.row_tree(), key).await
    }

    /// The values of a stored row.
    pub(super) fn hold(&self, row: &StoredRow) -> Result<HeldRow> {
        let record = self.parse(&row.record)?;
        let mut held = HeldRow::new();
        for column in &self.placed.table.columns {
            match self.value_in(&record, column.id)? {
                StoredValue::Bytes(bytes) => held.insert(column.id, Held::Bytes(bytes.to_vec())),
                StoredValue::Separated { long_value, .. } => {
                    held.insert(column.id, Held::Separated(long_value as u32))
                }
                StoredValue::Absent | StoredValue::Null => None,
                other => {
                    return Err(EngineError::BadRow(format!(
                        "column {} holds {other:?}",
                        column.name
                    )));
                }
            };
        }
        Ok(held)
    }

    /// Moves long columns that are too long for the record to the long-value tree.
    async fn separate(&self, work: &Work, row: &mut HeldRow) -> Result<()> {
        let total: usize = row
            .values()
            .map(|held| if let Held::Bytes(bytes) = held { bytes.len() + 8 } else { 12 })
            .sum();
        let record_bytes_max = self.size.bytes() - self.size.header_bytes() - 600;
        let mut excess = total.saturating_sub(record_bytes_max);
        let mut long: Vec<(usize, ColumnId)> = row
            .iter()
            .filter(|(column, _)| self.is_long(**column))
            .filter_map(|(column, held)| {
                if let Held::Bytes(bytes) = held { Some((bytes.len(), *column)) } else { None }
            })
            .collect();
        long.sort_unstable_by(|left, right| right.cmp(left));
        for (bytes, column) in long {
            if bytes <= self.intrinsic_bytes_max.get() && (excess == 0 || bytes < 64) {
                continue;
            }
            let Some(Held::Bytes(value)) = row.remove(&column) else {
                continue;
            };
            let mut writer = LongValueWriter::start(self, work).await?;
            writer.write_on(&value).await?;
            let finished = writer.finish().await?;
            work.end_steps(&finished.steps);
            row.insert(column, Held::Separated(finished.number));
            excess = excess.saturating_sub(bytes);
        }
        Ok(())
    }

    fn encode(&self, row: &HeldRow) -> Result<Vec<u8>> {
        if let Some(missing) = self.required.iter().find(|column| !row.contains_key(column)) {
            let column = self.placed.table.column(*missing);
            let name = column.map_or("", |column| &column.name);
            return Err(EngineError::BadRow(format!("column {name} must have a value")));
        }
        let mut values: Vec<(ColumnId, NewValue<'_>)> = row
            .iter()
            .map(|(column, held)| match held {
                Held::Bytes(bytes) => (*column, NewValue::Bytes(bytes)),
                Held::Separated(number) => (*column, NewValue::Separated { long_value: *number }),
            })
            .collect();
        let nulls = self.defaults.keys().filter(|column| !row.contains_key(column));
        let given = values.len();
        values.extend(nulls.map(|column| (*column, NewValue::Null)));
        if values.len() > given {
            values.sort_unstable_by_key(|(column, _)| *column);
        }
        let mut record = Vec::new();
        encode_record(&self.placed.table, &self.layout, self.size, &values, &mut record)
            .map_err(|error| EngineError::BadRow(error.to_string()))?;
        Ok(record)
    }
}

/// Runs an operation of several steps. If it fails, what it did is taken back; if it is abandoned,
/// the transaction can only be rolled back.
async fn whole_or_nothing<R>(work: &Work, operation: impl Future<Output = Result<R>>) -> Result<R> {
    let savepoint = work.savepoint();
    let steps = work.begin_steps();
    let result = operation.await;
    if result.is_err() {
        work.rollback_to(savepoint).await?;
    }
    work.end_steps(&steps);
    result
}

fn apply_values(row: &mut HeldRow, values: &[ColumnValue<'_>]) {
    for (column, value) in values {
        match value {
            Some(bytes) => row.insert(*column, Held::Bytes(bytes.to_vec())),
            None => row.remove(column),
        };
    }
}

/// Rows in the order of an index.
pub struct RowCursor<'t> {
    table: &'t OpenTable,
    work: &'t Work,
    index: usize,
    walk: Walk,
}

impl RowCursor<'_> {
    /// The next row.
    ///
    /// # Errors
    /// [`EngineError::TransactionBusy`] while the transaction changes something, damaged pages, ...
    pub async fn next(&mut self) -> Result<Option<StoredRow>> {
        let work = self.work;
        let _reading = work.begin_read()?;
        let Some((key, data)) = self.walk.next(work).await? else {
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
