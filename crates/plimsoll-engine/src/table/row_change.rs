//! Changes of rows in all the trees of a table: the record, the entries of its indexes, its long
//! values. Each takes several steps; [`whole_or_nothing`] makes them one.

use super::held::{Held, HeldRow, StoredRow};
use super::index::RowKeys;
use super::long_value::{LongValueWriter, release_long_value};
use super::{ColumnValue, OpenTable};
use crate::error::{EngineError, Result};
use crate::transaction::Work;
use crate::{ColumnId, ColumnStorage, ColumnType, NewValue, StoredValue, encode_record};

/// What the number of a separated value takes in a record at most.
const SEPARATED_BYTES: usize = 12;
/// What a page and a node take besides key and values: tag 0 and a root's space header, the node's
/// own tag and lengths (26 bytes), the record's head and its bits of nulls (20).
const ROW_OVERHEAD_BYTES: usize = 64;

impl OpenTable {
    pub(super) fn is_long(&self, id: ColumnId) -> bool {
        let column = self.placed.table.column(id);
        column.is_some_and(|column| {
            matches!(column.column_type, ColumnType::LongBinary | ColumnType::LongText)
        })
    }

    pub(super) async fn insert_row(&self, work: &Work, mut row: HeldRow) -> Result<Vec<u8>> {
        self.check_new(work, &row, |_| true).await?;
        let keys = self.keys_of(work, &row).await?;
        self.separate(work, &mut row, keys.primary.len()).await?;
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
        let added = work.insert(self.index_tree(index)?, key, data).await;
        added.map_err(|error| self.in_index(index, error))
    }

    pub(super) async fn update_row(
        &self,
        work: &Work,
        key: &[u8],
        values: &[ColumnValue<'_>],
    ) -> Result<()> {
        let stored = self.stored_row(work, key).await?;
        let old_row = self.hold(&stored.ok_or(EngineError::RowNotFound)?)?;
        let mut row = old_row.clone();
        apply_values(&mut row, values);
        let columns: Vec<ColumnId> = values.iter().map(|(column, _)| *column).collect();
        self.change_row(work, key, &old_row, row, &columns).await
    }

    /// Makes a row what it is to be. Only `columns` differ.
    pub(super) async fn change_row(
        &self,
        work: &Work,
        key: &[u8],
        old_row: &HeldRow,
        mut row: HeldRow,
        columns: &[ColumnId],
    ) -> Result<()> {
        self.check_new(work, &row, |column| columns.contains(&column)).await?;
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
        let new_key = keys.as_ref().map_or(key, |(_, keys)| &keys.primary);
        self.separate(work, &mut row, new_key.len()).await?;
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
            let tree = self.index_tree(index)?;
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

    pub(super) async fn delete_row(&self, work: &Work, key: &[u8]) -> Result<()> {
        let stored = self.stored_row(work, key).await?;
        let row = self.hold(&stored.ok_or(EngineError::RowNotFound)?)?;
        let keys = self.keys_of(work, &row).await?;
        for held in row.values() {
            if let Held::Separated(number) = held {
                release_long_value(self, work, *number).await?;
            }
        }
        for (index, key) in keys.entries() {
            work.delete(self.index_tree(index)?, key).await?;
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

    /// Moves long columns that are too long for a record at a key of `key_bytes` to the long-value
    /// tree.
    async fn separate(&self, work: &Work, row: &mut HeldRow, key_bytes: usize) -> Result<()> {
        let mut long: Vec<(usize, ColumnId)> = row
            .iter()
            .filter(|(column, _)| self.is_long(**column))
            .filter_map(|(column, held)| {
                if let Held::Bytes(bytes) = held { Some((bytes.len(), *column)) } else { None }
            })
            .collect();
        if long.is_empty() {
            return Ok(());
        }
        long.sort_unstable_by(|left, right| right.cmp(left));
        // A row of a short key leaves some of its page free.
        let free_bytes = (key_bytes + ROW_OVERHEAD_BYTES).max(600);
        let record_bytes_max = self.size.bytes() - self.size.header_bytes() - free_bytes;
        let mut excess = self.record_bytes(row).saturating_sub(record_bytes_max);
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
            // What it took in the record, less what its number takes there.
            excess = excess.saturating_sub((bytes + 8).saturating_sub(SEPARATED_BYTES));
        }
        Ok(())
    }

    /// Bytes that the record of a row takes at most: its values, and the places of columns that
    /// have none.
    fn record_bytes(&self, row: &HeldRow) -> usize {
        let values = row.values().map(|held| match held {
            Held::Bytes(bytes) => bytes.len() + 8,
            Held::Separated(_) => SEPARATED_BYTES,
        });
        let columns = &self.placed.table.columns;
        // That of a column with a default value has to say that it is null.
        let is_told = |id: &ColumnId| row.contains_key(id) || self.defaults.contains_key(id);
        let last_told = |storage: ColumnStorage| {
            let ids = columns.iter().rev().map(|column| column.id);
            ids.filter(|id| ColumnStorage::of(*id) == storage).find(is_told)
        };
        let (last_fixed, last_variable) =
            (last_told(ColumnStorage::Fixed), last_told(ColumnStorage::Variable));
        let empty = columns.iter().filter(|column| !row.contains_key(&column.id));
        let places = empty.map(|column| match column.storage() {
            ColumnStorage::Fixed if Some(column.id) <= last_fixed => column.fixed_bytes(),
            ColumnStorage::Variable if Some(column.id) <= last_variable => 2,
            ColumnStorage::Tagged if self.defaults.contains_key(&column.id) => 5,
            _ => 0,
        });
        values.sum::<usize>() + places.sum::<usize>()
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

/// Runs an operation of several steps. If it fails, what it did is undone; if it is abandoned,
/// the transaction can only be rolled back.
pub(super) async fn whole_or_nothing<R>(
    work: &Work,
    operation: impl Future<Output = Result<R>>,
) -> Result<R> {
    let savepoint = work.savepoint();
    let steps = work.begin_steps();
    let result = operation.await;
    if result.is_err() {
        work.rollback_to(savepoint).await?;
    }
    work.end_steps(&steps);
    result
}

pub(super) fn apply_values(row: &mut HeldRow, values: &[ColumnValue<'_>]) {
    for (column, value) in values {
        match value {
            Some(bytes) => row.insert(*column, Held::Bytes(bytes.to_vec())),
            None => row.remove(column),
        };
    }
}
