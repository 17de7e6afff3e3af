//! The values of a row while it is changed: those that its record will hold, and the numbers of
//! those that lie apart.

use std::collections::BTreeMap;

use crate::ColumnId;

/// A value on its way into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Bytes(Vec<u8>),
    Separated(u32),
}

/// The values of a row that are not null.
pub(super) type HeldRow = BTreeMap<ColumnId, Held>;
