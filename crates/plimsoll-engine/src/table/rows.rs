//! Row operations.

use std::collections::BTreeMap;

use super::long_value::{LongValueReader, LongValueWriter, delete_long_value};
use super::{ColumnValue, OpenTable};
use crate::cursor::{Cursor, Direction, KeyRange};
use crate::error::{EngineError, Result};
use crate::transaction::Transaction;
use crate::{ColumnId, ColumnType, NewValue, StoredValue, encode_record};

/// A row as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Its primary key.
    pub key: Vec<u8>,
    /// Its record.
    pub record: Vec<u8>,
}

/// A value on its way into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Bytes(Vec<u8>),
    Separated(u32),
}

type HeldRow = BTreeMap<ColumnId, Held>;

impl OpenTable {
    /// Inserts a row. Columns left out are null.
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`] for the primary key or a unique index, [`EngineError::BadRow`] for values that do not fit; the transaction is then as before.
    pub async fn insert(&self, transaction: &Transaction, values: &[ColumnValue<'_>]) -> Result<Vec<u8>> {
        let mut row = HeldRow::new();
        apply_values(&mut row, values);
        self.whole_or_nothing(transaction, self.insert_row(transaction, row))
            .await
    }

    /// The row with this primary key.
    pub async fn get(&self, transaction: &Transaction, key: &[u8]) -> Result<Option<StoredRow>> {
        let record = transaction.get(self.row_tree(), key).await?;
        Ok(record.map(|record| StoredRow {
            key: key.to_vec(),
            record,
        }))
    }

    /// Gives columns of a row new values; the others stay. The row may move if key columns change.
    pub async fn update(
        &self,
        transaction: &Transaction,
        key: &[u8],
        values: &[ColumnValue<'_>],
    ) -> Result<()> {
        self.whole_or_nothing(transaction, self.update_row(transaction, key, values))
            .await
    }

    /// Deletes a row with its index entries and long values.
    pub async fn delete(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        self.whole_or_nothing(transaction, self.delete_row(transaction, key))
            .await
    }

    /// Adds to a 4- or 8-byte integer column that belongs to no index. Concurrent transactions may add to one row.
    pub async fn add(
        &self,
        transaction: &Transaction,
        key: &[u8],
        column: ColumnId,
        amount: i64,
    ) -> Result<()> {
        let range = self
            .layout
            .fixed_range(column)
            .filter(|range| matches!(range.len(), 4 | 8));
        let range =
            range.ok_or_else(|| EngineError::BadRow("only 4- and 8-byte columns can be added to".into()))?;
        if self
            .shapes
            .iter()
            .any(|shape| shape.columns().any(|indexed| indexed == column))
        {
            return Err(EngineError::BadRow("an indexed column cannot be added to".into()));
        }
        let row = self
            .get(transaction, key)
            .await?
            .ok_or(EngineError::RowNotFound)?;
        if !matches!(self.parse(&row.record)?.value(column), Ok(StoredValue::Bytes(_))) {
            return Err(EngineError::BadRow("a null column cannot be added to".into()));
        }
        transaction
            .add(
                self.row_tree(),
                key,
                range.start as u32,
                range.len() as u8,
                amount,
            )
            .await
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
                let reader = LongValueReader::open(self, transaction, long_value as u32).await?;
                reader.read_all().await.map(Some)
            }
            StoredValue::Absent | StoredValue::Null => Ok(None),
            other => Err(EngineError::BadRow(format!(
                "column {column} holds {other:?}, which this engine does not write"
            ))),
        }
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
                LongValueReader::open(self, transaction, long_value as u32)
                    .await
                    .map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Begins a long value for a column of a row; [`OpenTable::attach_long_value`] makes it the column's value. Until then the transaction
    /// cannot be committed: a long value that no row refers to would stay for ever.
    pub async fn write_long_value<'t>(&self, transaction: &'t Transaction) -> Result<LongValueWriter<'t>> {
        LongValueWriter::start(self, transaction).await
    }

    /// Writes what is left of a long value and makes it the value of a column, in place of the one before.
    ///
    /// # Errors
    /// [`EngineError::RowNotFound`], [`EngineError::BadRow`] for a column that can hold no long value, ...: the value stays unattached, and the
    /// transaction can only be rolled back, wholly or to a savepoint before it.
    pub async fn attach_long_value(
        &self,
        transaction: &Transaction,
        key: &[u8],
        column: ColumnId,
        value: LongValueWriter<'_>,
    ) -> Result<()> {
        if !self.is_long(column) {
            return Err(EngineError::BadRow(format!(
                "column {column} can hold no long value"
            )));
        }
        let stored = self
            .get(transaction, key)
            .await?
            .ok_or(EngineError::RowNotFound)?;
        let mut row = self.hold(&stored)?;
        let finished = value.finish().await?;
        let old = row.insert(column, Held::Separated(finished.number));
        self.whole_or_nothing(transaction, async {
            if let Some(Held::Separated(old)) = old {
                delete_long_value(self, transaction, old).await?;
            }
            let record = self.encode(&row)?;
            transaction.replace(self.row_tree(), key, &record).await
        })
        .await?;
        transaction.end_steps(finished.before);
        Ok(())
    }

    fn is_long(&self, id: ColumnId) -> bool {
        let column = self.placed.table.column(id);
        column
            .is_some_and(|column| matches!(column.column_type, ColumnType::LongBinary | ColumnType::LongText))
    }

    /// Walks an index in the order of its keys.
    pub fn scan<'t>(
        &'t self,
        transaction: &'t Transaction,
        index: usize,
        range: KeyRange,
        direction: Direction,
    ) -> RowCursor<'t> {
        let cursor = Cursor::new(transaction, self.index_tree(index), range, direction);
        RowCursor {
            table: self,
            transaction,
            index,
            cursor,
        }
    }

    /// The stored form of a column of a row.
    pub fn stored<'r>(&'r self, row: &'r StoredRow, column: ColumnId) -> Result<StoredValue<'r>> {
        self.parse(&row.record)?
            .value(column)
            .map_err(|fault| EngineError::BadRow(fault.to_string()))
    }

    /// Runs an operation of several steps. If it fails, what it did is taken back; if it is abandoned, the transaction can only be rolled back.
    async fn whole_or_nothing<R>(
        &self,
        transaction: &Transaction,
        operation: impl Future<Output = Result<R>>,
    ) -> Result<R> {
        let savepoint = transaction.savepoint();
        let before = transaction.begin_steps();
        let result = operation.await;
        if result.is_err() {
            transaction.rollback_to(savepoint).await?;
        }
        transaction.end_steps(before);
        result
    }

    async fn insert_row(&self, transaction: &Transaction, mut row: HeldRow) -> Result<Vec<u8>> {
        let keys = self.keys(|column| plain(&row, column))?;
        self.separate(transaction, &mut row).await?;
        let record = self.encode(&row)?;
        transaction.insert(self.row_tree(), &keys[0], &record).await?;
        for (index, key) in keys.iter().enumerate().skip(1) {
            transaction.insert(self.index_tree(index), key, &keys[0]).await?;
        }
        keys.into_iter().next().ok_or(EngineError::RowNotFound)
    }

    async fn update_row(
        &self,
        transaction: &Transaction,
        key: &[u8],
        values: &[ColumnValue<'_>],
    ) -> Result<()> {
        let stored = self
            .get(transaction, key)
            .await?
            .ok_or(EngineError::RowNotFound)?;
        let old_row = self.hold(&stored)?;
        let mut row = old_row.clone();
        apply_values(&mut row, values);
        let old_keys = self.keys_of_record(&self.parse(&stored.record)?)?;
        let keys = self.keys(|column| plain(&row, column))?;
        for (column, _) in values {
            if let Some(Held::Separated(number)) = old_row.get(column) {
                delete_long_value(self, transaction, *number).await?;
            }
        }
        self.separate(transaction, &mut row).await?;
        let record = self.encode(&row)?;
        if keys[0] == old_keys[0] {
            transaction.replace(self.row_tree(), key, &record).await?;
        } else {
            transaction.delete(self.row_tree(), key).await?;
            transaction.insert(self.row_tree(), &keys[0], &record).await?;
        }
        for index in 1..keys.len() {
            let tree = self.index_tree(index);
            if keys[index] != old_keys[index] {
                transaction.delete(tree, &old_keys[index]).await?;
                transaction.insert(tree, &keys[index], &keys[0]).await?;
            } else if keys[0] != old_keys[0] {
                transaction.replace(tree, &keys[index], &keys[0]).await?;
            }
        }
        Ok(())
    }

    async fn delete_row(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        let stored = self
            .get(transaction, key)
            .await?
            .ok_or(EngineError::RowNotFound)?;
        let keys = self.keys_of_record(&self.parse(&stored.record)?)?;
        for held in self.hold(&stored)?.values() {
            if let Held::Separated(number) = held {
                delete_long_value(self, transaction, *number).await?;
            }
        }
        for (index, key) in keys.iter().enumerate().skip(1) {
            transaction.delete(self.index_tree(index), key).await?;
        }
        transaction.delete(self.row_tree(), key).await
    }

    /// The values of a stored row.
    fn hold(&self, row: &StoredRow) -> Result<HeldRow> {
        let record = self.parse(&row.record)?;
        let mut held = HeldRow::new();
        for column in &self.placed.table.columns {
            match record
                .value(column.id)
                .map_err(|fault| EngineError::BadRow(fault.to_string()))?
            {
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
    async fn separate(&self, transaction: &Transaction, row: &mut HeldRow) -> Result<()> {
        let total: usize = row
            .values()
            .map(|held| {
                if let Held::Bytes(bytes) = held {
                    bytes.len() + 8
                } else {
                    12
                }
            })
            .sum();
        let record_bytes_max = self.size.bytes() - self.size.header_bytes() - 600;
        let mut excess = total.saturating_sub(record_bytes_max);
        let mut long: Vec<(usize, ColumnId)> = row
            .iter()
            .filter(|(column, _)| self.is_long(**column))
            .filter_map(|(column, held)| {
                if let Held::Bytes(bytes) = held {
                    Some((bytes.len(), *column))
                } else {
                    None
                }
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
            let mut writer = LongValueWriter::start(self, transaction).await?;
            writer.write(&value).await?;
            let finished = writer.finish().await?;
            transaction.end_steps(finished.before);
            row.insert(column, Held::Separated(finished.number));
            excess = excess.saturating_sub(bytes);
        }
        Ok(())
    }

    fn encode(&self, row: &HeldRow) -> Result<Vec<u8>> {
        let values: Vec<(ColumnId, NewValue<'_>)> = row
            .iter()
            .map(|(column, held)| match held {
                Held::Bytes(bytes) => (*column, NewValue::Bytes(bytes)),
                Held::Separated(number) => (*column, NewValue::Separated { long_value: *number }),
            })
            .collect();
        let mut record = Vec::new();
        encode_record(&self.placed.table, &self.layout, self.size, &values, &mut record)
            .map_err(|error| EngineError::BadRow(error.to_string()))?;
        Ok(record)
    }
}

fn apply_values(row: &mut HeldRow, values: &[ColumnValue<'_>]) {
    for (column, value) in values {
        match value {
            Some(bytes) => row.insert(*column, Held::Bytes(bytes.to_vec())),
            None => row.remove(column),
        };
    }
}

fn plain(row: &HeldRow, column: ColumnId) -> Option<&[u8]> {
    match row.get(&column) {
        Some(Held::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

/// Rows in the order of an index.
pub struct RowCursor<'t> {
    table: &'t OpenTable,
    transaction: &'t Transaction,
    index: usize,
    cursor: Cursor<'t>,
}

impl RowCursor<'_> {
    /// The next row.
    pub async fn next(&mut self) -> Result<Option<StoredRow>> {
        let Some((key, data)) = self.cursor.next().await? else {
            return Ok(None);
        };
        if self.index == 0 {
            return Ok(Some(StoredRow { key, record: data }));
        }
        let row = self.table.get(self.transaction, &data).await?;
        row.map(Some).ok_or_else(|| {
            EngineError::BadRow(format!(
                "index {} names a row that is not in its table",
                self.index
            ))
        })
    }
}
