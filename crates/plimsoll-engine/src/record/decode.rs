//! Reading records. Values are borrowed from the page; damaged offsets give a [`RecordFault`],
//! never a panic, and nothing is allocated.

use super::{
    HEADER_BYTES, INHERITED_VALUE, NO_VARIABLE, NULL_END, RecordLayout, SMALL_HAS_BITS, SMALL_NULL,
    TAG_BYTES, value_bits,
};
use crate::schema::{ColumnStorage, VARIABLE_COLUMN_MIN};
use crate::{Column, ColumnId, PageSize, column_flags};

/// What is wrong inside a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// Shorter than its own header says.
    #[error("the record ends before its {part}")]
    Cut {
        /// What should be there.
        part: &'static str,
    },
    /// The fixed part ends somewhere else than the columns say.
    #[error(
        "the fixed part of the record ends at {found}, not at {expected} where its columns end"
    )]
    FixedEnd {
        /// What the record says.
        found: usize,
        /// What the table's columns give.
        expected: usize,
    },
    /// Ends of values go backwards or outside.
    #[error("the value of column {column} lies outside the record")]
    Outside {
        /// Column number.
        column: ColumnId,
    },
}

/// A value as a record holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredValue<'a> {
    /// The record does not hold the column: it has its default.
    Absent,
    /// Null.
    Null,
    /// The bytes.
    Bytes(&'a [u8]),
    /// The bytes, compressed.
    Compressed(&'a [u8]),
    /// The bytes, encrypted; only Windows has the key.
    Encrypted(&'a [u8]),
    /// The value is in the long-value tree under this number.
    Separated {
        /// Its number there.
        long_value: u64,
    },
    /// Several values.
    Multi(MultiValue<'a>),
}

/// Several values of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiValue<'a> {
    bytes: &'a [u8],
    bits: u8,
    column: ColumnId,
}

/// A record to be read.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    bytes: &'a [u8],
    layout: &'a RecordLayout,
    page_size: PageSize,
    last_fixed: u8,
    last_variable: u8,
    /// Offset of the null bits.
    fixed_end: usize,
    /// Offset of the first variable value.
    variable_start: usize,
    /// Offset of the tags; the end of the record if there are none.
    tagged_start: usize,
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

impl<'a> Record<'a> {
    /// Reads the outline of a record that came from a page of this size.
    ///
    /// # Errors
    /// When its parts do not fit together or do not fit the table.
    pub fn parse(
        bytes: &'a [u8],
        layout: &'a RecordLayout,
        page_size: PageSize,
    ) -> Result<Self, RecordFault> {
        let [last_fixed, last_variable, end_low, end_high] =
            *bytes.first_chunk().ok_or(RecordFault::Cut { part: "header" })?;
        let variable_offsets = usize::from(u16::from_le_bytes([end_low, end_high]));
        let fixed_end = fixed_end(layout, last_fixed, variable_offsets)?;
        let variable_count = usize::from(u16::from(last_variable).saturating_sub(NO_VARIABLE));
        let variable_start = variable_offsets + 2 * variable_count;
        if variable_start > bytes.len() {
            return Err(RecordFault::Cut { part: "list of variable values" });
        }
        let variable_bytes = match variable_count {
            0 => 0,
            count => u16_at(bytes, variable_offsets + 2 * (count - 1)).unwrap_or(0) & !NULL_END,
        };
        let tagged_start = variable_start + usize::from(variable_bytes);
        if tagged_start > bytes.len() {
            return Err(RecordFault::Cut { part: "last variable value" });
        }
        Ok(Self {
            bytes,
            layout,
            page_size,
            last_fixed,
            last_variable,
            fixed_end,
            variable_start,
            tagged_start,
        })
    }

    /// The value of a column.
    ///
    /// # Errors
    /// When its place is outside the record.
    pub fn value(&self, column: ColumnId) -> Result<StoredValue<'a>, RecordFault> {
        match ColumnStorage::of(column) {
            ColumnStorage::Fixed => self.fixed(column),
            ColumnStorage::Variable => self.variable(column),
            ColumnStorage::Tagged => self.tagged(column),
        }
    }

    /// The value of a column of a table that may inherit columns.
    ///
    /// # Errors
    /// When its place is outside the record.
    pub fn value_of(&self, column: &Column) -> Result<StoredValue<'a>, RecordFault> {
        if !self.layout.has_inherited || column.storage() != ColumnStorage::Tagged {
            return self.value(column.id);
        }
        let is_inherited = column.flags & column_flags::INHERITED != 0;
        let count = self.tag_count()?;
        for number in 0..count {
            let outside = RecordFault::Outside { column: column.id };
            let (found, place) = self.tag(number).ok_or(outside)?;
            if found == column.id && (place & INHERITED_VALUE != 0) == is_inherited {
                return self.tagged_value(found, number, place, count);
            }
        }
        Ok(StoredValue::Absent)
    }

    /// Every tagged value that the record lists, of whatever column.
    pub fn tagged_values(&self) -> impl Iterator<Item = Result<StoredValue<'a>, RecordFault>> + '_ {
        let count = self.tag_count().unwrap_or(0);
        (0..count).filter_map(move |number| {
            let (column, place) = self.tag(number)?;
            Some(self.tagged_value(column, number, place, count))
        })
    }

    fn fixed(&self, column: ColumnId) -> Result<StoredValue<'a>, RecordFault> {
        let outside = RecordFault::Outside { column };
        if column == 0 || column > ColumnId::from(self.last_fixed) {
            return Ok(StoredValue::Absent);
        }
        let bit = usize::from(column) - 1;
        let null_bits = self.bytes.get(self.fixed_end + bit / 8).ok_or(outside)?;
        if null_bits >> (bit % 8) & 1 == 1 {
            return Ok(StoredValue::Null);
        }
        let range = self.layout.fixed_range(column).ok_or(outside)?;
        self.bytes.get(range).map(StoredValue::Bytes).ok_or(outside)
    }

    fn variable(&self, column: ColumnId) -> Result<StoredValue<'a>, RecordFault> {
        let outside = RecordFault::Outside { column };
        if column > ColumnId::from(self.last_variable) {
            return Ok(StoredValue::Absent);
        }
        let number = usize::from(column - VARIABLE_COLUMN_MIN);
        let count = usize::from(self.last_variable) - usize::from(NO_VARIABLE);
        let offsets = self.variable_start - 2 * count;
        let end = u16_at(self.bytes, offsets + 2 * number).ok_or(outside)?;
        if end & NULL_END != 0 {
            return Ok(StoredValue::Null);
        }
        let start = match number {
            0 => 0,
            number => u16_at(self.bytes, offsets + 2 * (number - 1)).ok_or(outside)? & !NULL_END,
        };
        let range =
            self.variable_start + usize::from(start)..self.variable_start + usize::from(end);
        let is_inside = range.end <= self.tagged_start;
        let bytes = self.bytes.get(range).filter(|_| is_inside);
        bytes.map(StoredValue::Bytes).ok_or(outside)
    }

    fn tags(&self) -> &'a [u8] {
        &self.bytes[self.tagged_start..]
    }

    /// The mask of the place in a tag.
    fn place_mask(&self) -> u16 {
        if self.page_size.is_large() { 0x7FFF } else { 0x1FFF }
    }

    /// How many tagged values there are.
    fn tag_count(&self) -> Result<usize, RecordFault> {
        let tags = self.tags();
        if tags.is_empty() {
            return Ok(0);
        }
        // The first value begins where the tags end.
        let first = u16_at(tags, 2).ok_or(RecordFault::Cut { part: "first tagged value" })?;
        let list_bytes = usize::from(first & self.place_mask());
        let is_list = list_bytes >= TAG_BYTES
            && list_bytes.is_multiple_of(TAG_BYTES)
            && list_bytes <= tags.len();
        if is_list {
            Ok(list_bytes / TAG_BYTES)
        } else {
            Err(RecordFault::Cut { part: "list of tagged values" })
        }
    }

    fn tag(&self, number: usize) -> Option<(ColumnId, u16)> {
        let tags = self.tags();
        Some((u16_at(tags, number * TAG_BYTES)?, u16_at(tags, number * TAG_BYTES + 2)?))
    }

    fn tagged(&self, column: ColumnId) -> Result<StoredValue<'a>, RecordFault> {
        let count = self.tag_count()?;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            let (found, place) = self.tag(middle).ok_or(RecordFault::Outside { column })?;
            match found.cmp(&column) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return self.tagged_value(column, middle, place, count);
                }
            }
        }
        Ok(StoredValue::Absent)
    }

    fn tagged_value(
        &self,
        column: ColumnId,
        number: usize,
        place: u16,
        count: usize,
    ) -> Result<StoredValue<'a>, RecordFault> {
        let outside = RecordFault::Outside { column };
        let mask = usize::from(self.place_mask());
        let end = if number + 1 < count {
            usize::from(self.tag(number + 1).ok_or(outside)?.1) & mask
        } else {
            self.tags().len()
        };
        let value = self.tags().get(usize::from(place) & mask..end).ok_or(outside)?;
        let is_small = !self.page_size.is_large();
        if is_small && place & SMALL_NULL != 0 {
            return Ok(StoredValue::Null);
        }
        if is_small && place & SMALL_HAS_BITS == 0 {
            return Ok(StoredValue::Bytes(value));
        }
        let (bits, value) = value.split_first().ok_or(outside)?;
        interpret(column, *bits, value)
    }

    /// The numbers of the tagged columns the record lists, for readers of unknown tables.
    pub fn tagged_columns(&self) -> impl Iterator<Item = ColumnId> + '_ {
        let count = self.tag_count().unwrap_or(0);
        (0..count).filter_map(|number| self.tag(number).map(|(column, _)| column))
    }

    /// Bytes in front of the fixed values.
    pub const HEADER_BYTES: usize = HEADER_BYTES;
}

/// Where the fixed values end and the null bits begin, so that the null bits end at
/// `variable_offsets`.
fn fixed_end(
    layout: &RecordLayout,
    last_fixed: u8,
    variable_offsets: usize,
) -> Result<usize, RecordFault> {
    let null_bytes = usize::from(last_fixed).div_ceil(8);
    let known_end = layout.ends.last().copied().unwrap_or(HEADER_BYTES);
    let (expected, is_sound) = match layout.ends.get(usize::from(last_fixed)) {
        Some(end) => (end + null_bytes, variable_offsets == end + null_bytes),
        // The catalog of a later format has fixed columns that we do not know after those we do.
        None => (known_end + null_bytes, variable_offsets >= known_end + null_bytes),
    };
    if is_sound {
        return Ok(variable_offsets - null_bytes);
    }
    Err(RecordFault::FixedEnd { found: variable_offsets, expected })
}

fn interpret(column: ColumnId, bits: u8, value: &[u8]) -> Result<StoredValue<'_>, RecordFault> {
    if bits & value_bits::NULL != 0 {
        return Ok(StoredValue::Null);
    }
    if bits & (value_bits::MULTI | value_bits::TWO) != 0 {
        return Ok(StoredValue::Multi(MultiValue { bytes: value, bits, column }));
    }
    if bits & value_bits::SEPARATED != 0 {
        return separated(column, value);
    }
    Ok(if bits & value_bits::ENCRYPTED != 0 {
        StoredValue::Encrypted(value)
    } else if bits & value_bits::COMPRESSED != 0 {
        StoredValue::Compressed(value)
    } else {
        StoredValue::Bytes(value)
    })
}

/// Long values are numbered with four bytes, in newer formats than ours with eight.
fn separated(column: ColumnId, value: &[u8]) -> Result<StoredValue<'_>, RecordFault> {
    let long_value = match *value {
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return Err(RecordFault::Outside { column }),
    };
    Ok(StoredValue::Separated { long_value })
}

impl<'a> MultiValue<'a> {
    /// How many values.
    ///
    /// # Errors
    /// When the list of values is cut off.
    pub fn count(&self) -> Result<usize, RecordFault> {
        if self.bits & value_bits::TWO != 0 {
            return Ok(2);
        }
        let outside = RecordFault::Outside { column: self.column };
        let list_bytes = usize::from(u16_at(self.bytes, 0).ok_or(outside)? & !NULL_END);
        let is_list =
            list_bytes >= 2 && list_bytes.is_multiple_of(2) && list_bytes <= self.bytes.len();
        if is_list { Ok(list_bytes / 2) } else { Err(outside) }
    }

    /// One value, counted from 0; never [`StoredValue::Multi`].
    ///
    /// # Errors
    /// When there is no such value, or it lies outside.
    pub fn value(&self, number: usize) -> Result<StoredValue<'a>, RecordFault> {
        let outside = RecordFault::Outside { column: self.column };
        if number >= self.count()? {
            return Err(outside);
        }
        if self.bits & value_bits::TWO != 0 {
            let (first_bytes, values) = self.bytes.split_first().ok_or(outside)?;
            let parts = values.split_at_checked(usize::from(*first_bytes)).ok_or(outside)?;
            let value = if number == 0 { parts.0 } else { parts.1 };
            return Ok(self.plain(number, value));
        }
        let start = u16_at(self.bytes, 2 * number).ok_or(outside)?;
        let end = if number + 1 < self.count()? {
            usize::from(u16_at(self.bytes, 2 * number + 2).ok_or(outside)? & !NULL_END)
        } else {
            self.bytes.len()
        };
        let value = self.bytes.get(usize::from(start & !NULL_END)..end).ok_or(outside)?;
        // The top bit, which means null elsewhere, marks a separated value here.
        if start & NULL_END != 0 {
            return separated(self.column, value);
        }
        Ok(self.plain(number, value))
    }

    /// Only the first of several values is ever compressed.
    fn plain(&self, number: usize, value: &'a [u8]) -> StoredValue<'a> {
        if self.bits & value_bits::ENCRYPTED != 0 {
            StoredValue::Encrypted(value)
        } else if self.bits & value_bits::COMPRESSED != 0 && number == 0 {
            StoredValue::Compressed(value)
        } else {
            StoredValue::Bytes(value)
        }
    }
}
