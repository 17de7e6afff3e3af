//! Records: the values of one row, packed.
//!
//! ```text
//! u8 last fixed column (0 none) | u8 last variable column (127 none) | u16 end of the fixed part
//! fixed values in order of their numbers, no padding | null bits, one per fixed column, 1 = null, unused bits 1
//! one u16 per variable column: end of its value, counted from the first; 0x8000 = null | variable values
//! one {u16 column, u16 place} per tagged value, by column; places count from the first of these | tagged values
//! ```
//!
//! A tagged value may begin with a byte of [`value_bits`]: always on large pages, on small ones
//! when its place has bit 0x4000. A column that a record does not reach, or a tagged column that it
//! does not list, is *absent*: it has its default value, which is null unless declared. A record
//! must fit one node.

mod decode;
mod encode;

pub use decode::{MultiValue, Record, RecordFault, StoredValue};
pub use encode::{NewValue, RecordError, encode_record};

use crate::catalog::PlacedTable;
use crate::schema::{ColumnStorage, VARIABLE_COLUMN_MIN};
use crate::{Column, ColumnId, Table, column_flags};

/// Bits of the byte that a tagged value may begin with.
pub mod value_bits {
    /// A long column.
    pub const LONG: u8 = 0x01;
    /// Compressed.
    pub const COMPRESSED: u8 = 0x02;
    /// The value is elsewhere; here is its number.
    pub const SEPARATED: u8 = 0x04;
    /// Several values with a list of their ends.
    pub const MULTI: u8 = 0x08;
    /// Two values; the first byte is the length of the first.
    pub const TWO: u8 = 0x10;
    /// Null.
    pub const NULL: u8 = 0x20;
    /// Encrypted.
    pub const ENCRYPTED: u8 = 0x40;
}

const HEADER_BYTES: usize = 4;
const TAG_BYTES: usize = 4;
const NO_VARIABLE: ColumnId = VARIABLE_COLUMN_MIN - 1;
const NULL_END: u16 = 0x8000;
/// What null fixed values are filled with.
const NULL_FILL: u8 = 0x2A;
const SMALL_HAS_BITS: u16 = 0x4000;
const SMALL_NULL: u16 = 0x2000;
/// The value belongs to a column that the table inherits.
const INHERITED_VALUE: u16 = 0x8000;

/// Where the fixed columns of a table lie in its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// End of each fixed column, counted from the start of the record; entry 0 is where the first
    /// begins.
    ends: Vec<usize>,
    /// Whether tagged values of inherited columns are told from the table's own by a bit: both are
    /// numbered from the same number on.
    has_inherited: bool,
}

impl RecordLayout {
    /// The layout of a table's records. Fixed columns are packed in the order of their numbers.
    pub fn of(table: &Table) -> Self {
        Self::of_columns(&table.columns)
    }

    /// The layout of the records of a table that may inherit columns: their fixed values come
    /// first, and the table's own numbers go on from theirs.
    pub fn of_placed(placed: &PlacedTable) -> Self {
        Self::of_columns(placed.row_columns())
    }

    fn of_columns<'c>(columns: impl IntoIterator<Item = &'c Column>) -> Self {
        let mut ends = vec![HEADER_BYTES];
        let mut end = HEADER_BYTES;
        let mut has_inherited = false;
        for column in columns {
            has_inherited |= column.flags & column_flags::INHERITED != 0;
            if column.storage() != ColumnStorage::Fixed || column.id == 0 {
                continue;
            }
            // A number that is missing in a damaged catalog takes no space.
            ends.resize(usize::from(column.id), end);
            end += column.fixed_bytes();
            ends.push(end);
        }
        Self { ends, has_inherited }
    }

    /// Byte range of a fixed column in every record that reaches it.
    pub fn fixed_range(&self, column: ColumnId) -> Option<std::ops::Range<usize>> {
        let before = usize::from(column).checked_sub(1)?;
        Some(*self.ends.get(before)?..*self.ends.get(before + 1)?)
    }
}
