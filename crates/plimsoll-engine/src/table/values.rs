//! Values of rows: read whole, in part and in pieces; long values written, attached and shared.

use std::ops::Range;

use super::OpenTable;
use super::held::{Held, StoredRow};
use super::long_value::{
    LongValueReader, LongValueWriter, read_long_value_range, share_long_value,
};
use super::row_change::whole_or_nothing;
use crate::error::{EngineError, Result};
use crate::transaction::{Transaction, Work};
use crate::{ColumnId, StoredValue};

impl OpenTable {
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
                let _reading = self.begin_read(work)?;
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
        let _reading = self.begin_read(work)?;
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
                let _reading = self.begin_read(work)?;
                let reader = LongValueReader::open(self, work, long_value as u32);
                reader.await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Begins a long value for a column of a row; [`OpenTable::attach_long_value`] makes it the
    /// column's value. Until then the transaction cannot be committed: a long value that no row
    /// refers to would stay for ever. Where the transaction goes back to a savepoint from before
    /// the last piece, the value cannot be finished. Where it goes back to between the pieces once
    /// the value is attached, it can only be rolled back, wholly or to before the value.
    pub async fn write_long_value<'t>(
        &self,
        transaction: &'t Transaction,
    ) -> Result<LongValueWriter<'t>> {
        let work = transaction.work();
        let _changing = self.begin_change(work)?;
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
        let _changing = self.begin_change(work)?;
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
        let _changing = self.begin_change(work)?;
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
}
