//! Index entries: which ones a row has, and what changes when the row does.

use std::collections::BTreeMap;

use super::OpenTable;
use super::held::{Held, HeldRow};
use super::long_value::LongValueReader;

use crate::error::{EngineError, Result};
use crate::schema::has_entry;
use crate::transaction::Work;
use crate::{ColumnId, Index, KeyError, KeyShape, Record, index_flags};

/// Of a value no more than this is looked at for a key: more than any index allows a key to have.
const SORTED_BYTES_MAX: usize = u16::MAX as usize + 1;

/// The keys of a row.
pub(super) struct RowKeys {
    pub(super) primary: Vec<u8>,
    /// By secondary index; `None` where the index leaves the row out.
    secondary: Vec<Option<Vec<u8>>>,
}

impl RowKeys {
    /// The entries in secondary indexes, with the numbers of these.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let all = self.secondary.iter().enumerate();
        all.filter_map(|(number, key)| Some((number + 1, key.as_deref()?)))
    }

    /// The entry in a secondary index.
    pub(super) fn entry(&self, index: usize) -> Option<&[u8]> {
        self.secondary[index - 1].as_deref()
    }

    /// Numbers of the secondary indexes.
    pub(super) fn indexes(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.secondary.len()
    }
}

impl OpenTable {
    /// The keys of a row. `value` gives the stored bytes of a column, `None` for null.
    fn keys<'v>(&self, value: impl Fn(ColumnId) -> Option<&'v [u8]>) -> Result<RowKeys> {
        let mut keys = Vec::with_capacity(self.shapes.len());
        let indexes = self.placed.table.indexes.iter().zip(&self.placed.indexes);
        for (shape, (index, at)) in self.shapes.iter().zip(indexes) {
            let is_met =
                |(column, must_be_null): &(_, _)| value(*column).is_none() == *must_be_null;
            keys.push(match at.traits.conditions.iter().all(is_met) {
                true => self.key_in(shape, index, &value)?,
                false => None,
            });
        }
        let mut keys = keys.into_iter();
        let primary = keys.next().flatten();
        Ok(RowKeys {
            primary: primary
                .ok_or_else(|| EngineError::BadRow("its primary key is null".into()))?,
            secondary: keys.collect(),
        })
    }

    fn key_in<'v>(
        &self,
        shape: &KeyShape,
        index: &Index,
        value: &impl Fn(ColumnId) -> Option<&'v [u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let nulls: Vec<bool> = shape.columns().map(|column| value(column).is_none()).collect();
        if index.flags & index_flags::NO_NULLS != 0 && nulls.contains(&true) {
            let name = &index.name;
            let why = format!("a key column of index {name} is null, and the index takes no nulls");
            return Err(EngineError::BadRow(why));
        }
        if !index.is_primary() && !has_entry(index.flags, &nulls) {
            return Ok(None);
        }
        let key = shape.key(value);
        let key = key.map_err(|error| self.bad_key(index, shape.at_fault(value), error))?;
        if key.is_truncated && self.refuses_truncation(index) {
            let (name, bytes) = (&index.name, index.key_bytes_max);
            return Err(EngineError::BadRow(format!(
                "its key in index {name} is longer than the {bytes} bytes the index allows, and is \
                 not cut, as the primary key in it tells rows apart: make the index with \
                 `NewIndex::key_bytes_max`, or index shorter values"
            )));
        }
        Ok(Some(key.bytes))
    }

    /// A value that has no key in an index.
    pub(super) fn bad_key(
        &self,
        index: &Index,
        column: Option<ColumnId>,
        error: KeyError,
    ) -> EngineError {
        let column = column.and_then(|column| self.placed.table.column(column));
        let column = column.map_or("", |column| &column.name);
        EngineError::BadRow(format!("column {column} in index {}: {error}", index.name))
    }

    /// Whether a key that is too long for the index is refused, and not cut.
    fn refuses_truncation(&self, index: &Index) -> bool {
        let primary = &self.placed.table.indexes[0];
        let has =
            |column: ColumnId| index.columns.iter().any(|key_column| key_column.column == column);
        // Cut short of the primary key, the keys of two rows could be one although neither is a
        // duplicate of the other.
        let is_told_apart =
            !index.is_primary() && primary.columns.iter().all(|key_column| has(key_column.column));
        is_told_apart || index.flags & index_flags::REFUSE_TRUNCATION != 0
    }

    /// The keys of a row. Of an indexed column whose value lies apart, as much is read as a key can
    /// tell.
    pub(super) async fn keys_of(&self, work: &Work, row: &HeldRow) -> Result<RowKeys> {
        let mut apart = BTreeMap::new();
        for column in self.shapes.iter().flat_map(KeyShape::columns) {
            if let Some(Held::Separated(number)) = row.get(&column) {
                let reader = LongValueReader::open(self, work, *number).await?;
                apart.insert(column, reader.read_start(SORTED_BYTES_MAX).await?);
            }
        }
        self.keys(|column| match row.get(&column) {
            Some(Held::Bytes(bytes)) => Some(&bytes[..]),
            // Of a column that is in no key it matters only that there is a value.
            Some(Held::Separated(_)) => Some(apart.get(&column).map_or(&[], Vec::as_slice)),
            None => None,
        })
    }

    /// Refuses new values of text that would have the key of other text.
    pub(super) async fn check_new(
        &self,
        work: &Work,
        row: &HeldRow,
        is_new: impl Fn(ColumnId) -> bool,
    ) -> Result<()> {
        let shapes = self.placed.table.indexes.iter().zip(&self.shapes);
        let zero_ended =
            shapes.flat_map(|(index, shape)| shape.zero_ended().map(move |column| (index, column)));
        for (index, column) in zero_ended {
            let has_zero = match row.get(&column).filter(|_| is_new(column)) {
                None => false,
                Some(Held::Bytes(bytes)) => bytes.contains(&0),
                Some(Held::Separated(number)) => {
                    let reader = LongValueReader::open(self, work, *number).await?;
                    reader.read_start(SORTED_BYTES_MAX).await?.contains(&0)
                }
            };
            if has_zero {
                return Err(self.bad_key(index, Some(column), KeyError::ZeroByte));
            }
        }
        Ok(())
    }

    /// Whether a column is part of any key, or says whether a row has one.
    pub(super) fn is_indexed(&self, column: ColumnId) -> bool {
        let mut indexed = self.shapes.iter().flat_map(KeyShape::columns);
        let mut conditions = self.placed.indexes.iter().flat_map(|at| &at.traits.conditions);
        indexed.any(|key_column| key_column == column)
            || conditions.any(|(of_condition, _)| *of_condition == column)
    }

    /// An error of an insert into an index, with the name of the index.
    pub(super) fn in_index(&self, index: usize, error: EngineError) -> EngineError {
        match error {
            EngineError::KeyDuplicate { .. } => EngineError::KeyDuplicate {
                index: Some(self.placed.table.indexes[index].name.clone()),
            },
            other => other,
        }
    }

    pub(super) fn parse<'r>(&'r self, record: &'r [u8]) -> Result<Record<'r>> {
        Record::parse(record, &self.layout, self.size).map_err(|fault| {
            EngineError::BadRow(format!(
                "a stored record of {} is damaged: {fault}",
                self.placed.table.name
            ))
        })
    }
}
