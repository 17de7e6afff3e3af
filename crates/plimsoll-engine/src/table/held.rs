//! A row as it is stored, and its values while it is changed: those that its record will hold, and
//! the numbers of those that lie apart.

use std::collections::BTreeMap;

use crate::ColumnId;

/// A row as stored, in the transaction that found it. Its record calls long values by number. An
/// instance gives each number out once, and the next goes on behind the highest that is there: who
/// keeps a row over a restart may find another row's value under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Its primary key.
    pub key: Vec<u8>,
    /// Its record.
    pub record: Vec<u8>,
}

/// A value on its way into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Bytes(Vec<u8>),
    Separated(u32),
}

/// The values of a row that are not null.
pub(super) type HeldRow = BTreeMap<ColumnId, Held>;
