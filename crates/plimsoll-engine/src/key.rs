//! Normalised keys: byte strings that compare like the values they were made of.
//!
//! Each key column gives a segment; segments are joined and cut at the index's limit. Whether a row
//! whose key is cut is taken is a flag of the index.
//!
//! ```text
//! segment = 00 (null) | 40 (empty) | 7F value; C0 for null where null sorts high
//! value   = unsigned: big-endian                    bit: 00 or FF
//!           signed: big-endian, sign bit inverted   floating point: big-endian; sign bit inverted, if negative all bits
//!           GUID: bytes 10-15, 8, 9, 6, 7, 4, 5, 0-3 of the stored form
//!           text: upper case, then 00               binary: chunks of 8, zero-filled, each followed by 09,
//!           Unicode text: sort key, then 00         the last by the number of bytes it really holds
//! descending: every byte of the segment inverted
//! ```
//!
//! Source: the public ESE source; keys read from the indexes of a Windows-made database agree
//! (`key_vectors.json`). Unicode text is sorted by rules of our own, see `collation.rs`; text that
//! has no weight there counts as empty.

use crate::collation::{Collation, UnicodeOrder};
use crate::schema::{CODE_PAGE_UNICODE, ColumnStorage, index_flags};
use crate::{Column, ColumnId, ColumnType, Index, KeyOrder, Table};

const NULL: u8 = 0x00;
const NULL_HIGH: u8 = 0xC0;
const EMPTY: u8 = 0x40;
const VALUE: u8 = 0x7F;
const CHUNK_BYTES: usize = 8;
const CHUNK_CONTINUES: u8 = 9;
const GUID_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

/// Why a value has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A fixed-length value has another length.
    #[error("a {column_type:?} key value must have {expected_bytes} bytes, not {found_bytes}")]
    Length {
        /// Type of the column.
        column_type: ColumnType,
        /// Its length.
        expected_bytes: usize,
        /// The value's length.
        found_bytes: usize,
    },
    /// Unicode text with half a character.
    #[error("Unicode text in a key must be whole UTF-16")]
    NotUnicode,
    /// Single-byte text outside ASCII, whose order depends on Windows' tables.
    #[error(
        "single-byte text in a key must be ASCII: make the column one of Unicode text with \
         `Column::unicode`, or of bytes"
    )]
    NotAscii,
    /// Text with a zero byte, which is where text ends in a key: other text would have its key.
    #[error("text in a key must not hold a zero byte; leave it out, or use a binary column")]
    ZeroByte,
    /// The column cannot be part of a key.
    #[error("a {column_type:?} column with code page {code_page} cannot be part of a key")]
    Unsortable {
        /// Type of the column.
        column_type: ColumnType,
        /// Its code page.
        code_page: u16,
    },
    /// The index names a column that the table does not have.
    #[error("the index names column {column}, which the table does not have")]
    NoColumn {
        /// Number of the column.
        column: ColumnId,
    },
}

/// A key, or the part of it that fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The bytes to compare.
    pub bytes: Vec<u8>,
    /// Whether something was cut off, so that different values may have this key.
    pub is_truncated: bool,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    column: ColumnId,
    column_type: ColumnType,
    order: KeyOrder,
    is_unicode: bool,
}

/// How the keys of one index are made.
#[derive(Clone, Debug)]
pub struct KeyShape {
    segments: Vec<Segment>,
    null: u8,
    bytes_max: usize,
    /// For Unicode text, if there is any in the keys.
    collation: Option<Collation>,
}

impl KeyShape {
    /// The keys of an index of a table.
    ///
    /// # Errors
    /// When a key column is missing or cannot be sorted here.
    pub fn of(table: &Table, index: &Index) -> Result<Self, KeyError> {
        let segments = index
            .columns
            .iter()
            .map(|key_column| {
                let id = key_column.column;
                let column = table.column(id).ok_or(KeyError::NoColumn { column: id })?;
                check_sortable(column, index)?;
                Ok(Segment {
                    column: id,
                    column_type: column.column_type,
                    order: key_column.order,
                    is_unicode: column.code_page == CODE_PAGE_UNICODE,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let has_unicode = segments.iter().any(|segment| segment.is_unicode);
        let nulls_high = index.flags & index_flags::NULLS_HIGH != 0;
        Ok(Self {
            segments,
            null: if nulls_high { NULL_HIGH } else { NULL },
            bytes_max: usize::from(index.key_bytes_max),
            collation: has_unicode.then(Collation::root),
        })
    }

    /// The columns of the key in order.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.segments.iter().map(|segment| segment.column)
    }

    /// The columns of text whose end in a key is a zero byte. A new value must not hold one; rows
    /// of earlier versions may.
    pub fn zero_ended(&self) -> impl Iterator<Item = ColumnId> + '_ {
        let is_text = |segment: &&Segment| segment.column_type.is_text() && !segment.is_unicode;
        self.segments.iter().filter(is_text).map(|segment| segment.column)
    }

    /// The key of a row. `value` gives a column's stored bytes, `None` for null; of a long value
    /// the first `key_bytes_max` bytes are enough.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn key<'v>(
        &self,
        mut value: impl FnMut(ColumnId) -> Option<&'v [u8]>,
    ) -> Result<Key, KeyError> {
        let mut key =
            Key { bytes: Vec::with_capacity(self.bytes_max.min(64)), is_truncated: false };
        for segment in &self.segments {
            self.append(&mut key, segment, value(segment.column))?;
        }
        Ok(self.cut(key))
    }

    /// The key of the first `values.len()` columns: a bound for scans over everything that begins
    /// with these values.
    ///
    /// # Errors
    /// When a value does not fit its column.
    pub fn prefix(&self, values: &[Option<&[u8]>]) -> Result<Key, KeyError> {
        let mut key = Key::default();
        for (segment, value) in self.segments.iter().zip(values) {
            self.append(&mut key, segment, *value)?;
        }
        Ok(self.cut(key))
    }

    /// The first column whose value has no key, as the errors of [`KeyShape::key`] do not say.
    pub(crate) fn at_fault<'v>(
        &self,
        mut value: impl FnMut(ColumnId) -> Option<&'v [u8]>,
    ) -> Option<ColumnId> {
        let fails = |segment: &&Segment| {
            self.append(&mut Key::default(), segment, value(segment.column)).is_err()
        };
        self.segments.iter().find(fails).map(|segment| segment.column)
    }

    fn cut(&self, mut key: Key) -> Key {
        key.is_truncated |= key.bytes.len() > self.bytes_max;
        key.bytes.truncate(self.bytes_max);
        key
    }

    fn append(
        &self,
        Key { bytes: key, is_truncated }: &mut Key,
        segment: &Segment,
        value: Option<&[u8]>,
    ) -> Result<(), KeyError> {
        let start = key.len();
        match value {
            None => key.push(self.null),
            Some([]) if segment.column_type.fixed_bytes().is_none() => key.push(EMPTY),
            Some(value)
                if let Some(collation) = self.collation.as_ref().filter(|_| segment.is_unicode) =>
            {
                let sort_key = collation.sort_key(value).ok_or(KeyError::NotUnicode)?;
                *is_truncated |= sort_key.is_truncated;
                append_sort_key(key, &sort_key.bytes);
            }
            Some(value) => {
                key.push(VALUE);
                // One byte past the limit is enough to know that the key was cut.
                append_value(key, segment.column_type, value, self.bytes_max + 1)?;
            }
        }
        if segment.order == KeyOrder::Descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }
}

fn append_sort_key(key: &mut Vec<u8>, sort_key: &[u8]) {
    if sort_key.is_empty() {
        key.push(EMPTY);
        return;
    }
    key.push(VALUE);
    key.extend(sort_key);
    key.push(0);
}

fn check_sortable(column: &Column, index: &Index) -> Result<(), KeyError> {
    let is_fixed_string =
        column.storage() == ColumnStorage::Fixed && column.column_type.fixed_bytes().is_none();
    let is_unknown = matches!(column.column_type, ColumnType::Other(_));
    let is_of_unknown_order =
        column.code_page == CODE_PAGE_UNICODE && index.unicode_order == UnicodeOrder::Unknown;
    if is_of_unknown_order || is_fixed_string || is_unknown {
        return Err(KeyError::Unsortable {
            column_type: column.column_type,
            code_page: column.code_page,
        });
    }
    Ok(())
}

fn append_value(
    key: &mut Vec<u8>,
    column_type: ColumnType,
    value: &[u8],
    bytes_max: usize,
) -> Result<(), KeyError> {
    if let Some(expected_bytes) = column_type.fixed_bytes()
        && value.len() != expected_bytes
    {
        return Err(KeyError::Length { column_type, expected_bytes, found_bytes: value.len() });
    }
    let start = key.len();
    match column_type {
        ColumnType::Bit => key.push(if value[0] == 0 { 0x00 } else { 0xFF }),
        ColumnType::UnsignedByte
        | ColumnType::UnsignedShort
        | ColumnType::UnsignedLong
        | ColumnType::UnsignedLongLong => key.extend(value.iter().rev()),
        ColumnType::Short | ColumnType::Long | ColumnType::Currency | ColumnType::LongLong => {
            key.extend(value.iter().rev());
            key[start] ^= 0x80;
        }
        ColumnType::Single | ColumnType::Double | ColumnType::DateTime => {
            key.extend(value.iter().rev());
            if key[start] & 0x80 == 0 {
                key[start] ^= 0x80;
            } else {
                key[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        ColumnType::Guid => key.extend(GUID_ORDER.iter().map(|at| value[*at])),
        ColumnType::Text | ColumnType::LongText => append_text(key, value, bytes_max)?,
        ColumnType::Binary | ColumnType::LongBinary => append_binary(key, value, bytes_max),
        ColumnType::Other(_) => {
            return Err(KeyError::Unsortable { column_type, code_page: 0 });
        }
    }
    Ok(())
}

fn append_text(key: &mut Vec<u8>, text: &[u8], bytes_max: usize) -> Result<(), KeyError> {
    let text = &text[..text.len().min(bytes_max)];
    if !text.is_ascii() {
        return Err(KeyError::NotAscii);
    }
    key.extend(text.iter().map(u8::to_ascii_uppercase));
    key.push(0);
    Ok(())
}

fn append_binary(key: &mut Vec<u8>, value: &[u8], bytes_max: usize) {
    let value = &value[..value.len().min(bytes_max)];
    let mut chunks = value.chunks(CHUNK_BYTES).peekable();
    while let Some(chunk) = chunks.next() {
        key.extend_from_slice(chunk);
        key.resize(key.len() + CHUNK_BYTES - chunk.len(), 0);
        key.push(if chunks.peek().is_some() { CHUNK_CONTINUES } else { chunk.len() as u8 });
    }
}
