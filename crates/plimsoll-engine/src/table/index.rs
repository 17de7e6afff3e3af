//! Index entries: which ones a row has, and what changes when the row does.

use std::collections::BTreeMap;

use super::OpenTable;
use super::long_value::LongValueReader;
use super::rows::{Held, HeldRow};
use crate::error::{EngineError, Result};
use crate::transaction::Work;
use crate::{ColumnId, KeyShape, Record};

/// Of a value no more than this is looked at for a key: more than any index allows a key to have.
const SORTED_BYTES_MAX: usize = u16::MAX as usize + 1;

impl OpenTable {
    /// The keys of a row in every index, the primary first. `value` gives the stored bytes of a column, `None` for null.
    pub(super) fn keys<'v>(&self, value: impl Fn(ColumnId) -> Option<&'v [u8]>) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::with_capacity(self.shapes.len());
        for shape in &self.shapes {
            let key = shape
                .key(&value)
                .map_err(|error| EngineError::BadRow(error.to_string()))?;
            if key.is_truncated {
                return Err(EngineError::BadRow(
                    "a key is longer than its index allows".into(),
                ));
            }
            keys.push(key.bytes);
        }
        Ok(keys)
    }

    /// The keys of a row. Of an indexed column whose value lies apart, as much is read as a key can tell.
    pub(super) async fn keys_of(&self, work: &Work, row: &HeldRow) -> Result<Vec<Vec<u8>>> {
        let mut apart = BTreeMap::new();
        for column in self.shapes.iter().flat_map(KeyShape::columns) {
            if let Some(Held::Separated(number)) = row.get(&column) {
                let reader = LongValueReader::open(self, work, *number).await?;
                apart.insert(column, reader.read_start(SORTED_BYTES_MAX).await?);
            }
        }
        self.keys(|column| match row.get(&column) {
            Some(Held::Bytes(bytes)) => Some(&bytes[..]),
            Some(Held::Separated(_)) => apart.get(&column).map(Vec::as_slice),
            None => None,
        })
    }

    /// Whether a column is part of any key.
    pub(super) fn is_indexed(&self, column: ColumnId) -> bool {
        let mut indexed = self.shapes.iter().flat_map(KeyShape::columns);
        indexed.any(|key_column| key_column == column)
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
