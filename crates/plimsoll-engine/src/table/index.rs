//! Index entries: which ones a row has, and what changes when the row does.

use super::OpenTable;
use crate::error::{EngineError, Result};
use crate::{ColumnId, Record, StoredValue};

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

    /// The keys of a stored row.
    pub(super) fn keys_of_record(&self, record: &Record<'_>) -> Result<Vec<Vec<u8>>> {
        self.keys(|column| match record.value(column) {
            Ok(StoredValue::Bytes(bytes)) => Some(bytes),
            _ => None,
        })
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
