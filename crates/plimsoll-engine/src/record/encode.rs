//! Packing rows into records.

use super::{
    HEADER_BYTES, NO_VARIABLE, NULL_END, NULL_FILL, RecordLayout, SMALL_HAS_BITS, TAG_BYTES,
    value_bits,
};
use crate::schema::{ColumnStorage, TAGGED_COLUMN_MIN, VARIABLE_COLUMN_MIN};
use crate::{ColumnId, PageSize, Table};

/// A value to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewValue<'a> {
    /// Null, also where the column has a default.
    Null,
    /// The bytes, in the record.
    Bytes(&'a [u8]),
    /// The number of the long value that holds the bytes.
    Separated {
        /// Its number.
        long_value: u32,
    },
    /// Several values, all in the record.
    Multi(&'a [&'a [u8]]),
}

/// Why values cannot be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The table has no such column.
    #[error("the table has no column {column}")]
    NoColumn {
        /// Its number.
        column: ColumnId,
    },
    /// Values must come in ascending order of their columns.
    #[error("the value of column {column} comes after one with a higher or equal number")]
    Order {
        /// Its number.
        column: ColumnId,
    },
    /// A fixed-length value has another length, or a value is longer than its column allows.
    #[error(
        "a value of {found_bytes} bytes does not fit column {column}, which takes {allowed_bytes}"
    )]
    Length {
        /// Column number.
        column: ColumnId,
        /// Length of the value.
        found_bytes: usize,
        /// Length it must or may have.
        allowed_bytes: usize,
    },
    /// Only tagged columns hold separated or several values.
    #[error("column {column} is not tagged and holds only plain bytes")]
    NotTagged {
        /// Its number.
        column: ColumnId,
    },
    /// A list of values without any.
    #[error("the list of values of column {column} is empty; store null instead")]
    NoValues {
        /// Its number.
        column: ColumnId,
    },
    /// The record is longer than its offsets can say.
    #[error("the record would have {bytes} bytes, more than a page holds")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

type Values<'a> = &'a [(ColumnId, NewValue<'a>)];

/// Appends the record of a row to `record`. `values` are in ascending order of their columns;
/// columns left out are absent where the format allows and null elsewhere. A null of a column that
/// has a default value is written down.
///
/// # Errors
/// See [`RecordError`]; `record` is then left with part of the row.
pub fn encode_record(
    table: &Table,
    layout: &RecordLayout,
    page_size: PageSize,
    values: Values<'_>,
    record: &mut Vec<u8>,
) -> Result<(), RecordError> {
    if let Some(pair) = values.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        return Err(RecordError::Order { column: pair[1].0 });
    }
    let variable_from = values.partition_point(|(column, _)| *column < VARIABLE_COLUMN_MIN);
    let tagged_from = values.partition_point(|(column, _)| *column < TAGGED_COLUMN_MIN);
    let start = record.len();
    record.extend([0; HEADER_BYTES]);
    let last_fixed = append_fixed(table, layout, &values[..variable_from], record)?;
    let fixed_end = record.len() - start;
    let last_variable = append_variable(table, &values[variable_from..tagged_from], record)?;
    append_tagged(table, page_size, &values[tagged_from..], record)?;
    let bytes = record.len() - start;
    if bytes > page_size.bytes() {
        return Err(RecordError::TooLong { bytes });
    }
    let [end_low, end_high] = (fixed_end as u16).to_le_bytes();
    record[start..start + HEADER_BYTES].copy_from_slice(&[
        last_fixed,
        last_variable,
        end_low,
        end_high,
    ]);
    Ok(())
}

/// Whether a record has to say so: a null only where absence would mean a default value.
fn is_written(table: &Table, column: ColumnId, value: &NewValue<'_>) -> bool {
    *value != NewValue::Null
        || table.column(column).is_some_and(|definition| definition.default.is_some())
}

fn last_written(table: &Table, values: Values<'_>) -> Option<ColumnId> {
    let written = values.iter().rev().find(|(column, value)| is_written(table, *column, value));
    written.map(|(column, _)| *column)
}

/// Fixed values and their null bits; returns the last column stored.
fn append_fixed(
    table: &Table,
    layout: &RecordLayout,
    values: Values<'_>,
    record: &mut Vec<u8>,
) -> Result<u8, RecordError> {
    let last = last_written(table, values).unwrap_or(0);
    let missing = values.iter().find(|(column, _)| layout.fixed_range(*column).is_none());
    if let Some((column, _)) = missing {
        return Err(RecordError::NoColumn { column: *column });
    }
    let mut null_bits = [0xFFu8; 16];
    let mut given = values.iter().peekable();
    for column in 1..=last {
        let length = layout.fixed_range(column).map_or(0, |range| range.len());
        match given.next_if(|(next, _)| *next == column).map(|(_, value)| value) {
            None | Some(NewValue::Null) => record.extend(std::iter::repeat_n(NULL_FILL, length)),
            Some(NewValue::Bytes(bytes)) if bytes.len() == length => {
                record.extend_from_slice(bytes);
                let bit = usize::from(column) - 1;
                null_bits[bit / 8] &= !(1 << (bit % 8));
            }
            Some(NewValue::Bytes(bytes)) => {
                return Err(RecordError::Length {
                    column,
                    found_bytes: bytes.len(),
                    allowed_bytes: length,
                });
            }
            Some(_) => return Err(RecordError::NotTagged { column }),
        }
    }
    record.extend_from_slice(&null_bits[..usize::from(last).div_ceil(8)]);
    Ok(last as u8)
}

/// The list of variable values and the values; returns the last column stored.
fn append_variable(
    table: &Table,
    values: Values<'_>,
    record: &mut Vec<u8>,
) -> Result<u8, RecordError> {
    let last = last_written(table, values).unwrap_or(NO_VARIABLE);
    let list = record.len();
    let count = usize::from(last - NO_VARIABLE);
    record.resize(list + 2 * count, 0);
    let first_value = record.len();
    let mut given = values.iter().peekable();
    for column in VARIABLE_COLUMN_MIN..=last {
        let is_null = match given.next_if(|(next, _)| *next == column).map(|(_, value)| value) {
            None | Some(NewValue::Null) => true,
            Some(NewValue::Bytes(bytes)) => {
                check_length(table, column, bytes)?;
                record.extend_from_slice(bytes);
                false
            }
            Some(_) => return Err(RecordError::NotTagged { column }),
        };
        let end = (record.len() - first_value) as u16 | if is_null { NULL_END } else { 0 };
        let at = list + 2 * usize::from(column - VARIABLE_COLUMN_MIN);
        record[at..at + 2].copy_from_slice(&end.to_le_bytes());
    }
    Ok(last as u8)
}

fn check_length(table: &Table, column: ColumnId, bytes: &[u8]) -> Result<(), RecordError> {
    let definition = table.column(column).ok_or(RecordError::NoColumn { column })?;
    let allowed_bytes = definition.bytes_max as usize;
    let must_be_exact = definition.column_type.fixed_bytes().is_some();
    let fits = allowed_bytes == 0
        || bytes.len() == allowed_bytes
        || (bytes.len() < allowed_bytes && !must_be_exact);
    if fits {
        return Ok(());
    }
    Err(RecordError::Length { column, found_bytes: bytes.len(), allowed_bytes })
}

fn append_tagged(
    table: &Table,
    page_size: PageSize,
    values: Values<'_>,
    record: &mut Vec<u8>,
) -> Result<(), RecordError> {
    let list = record.len();
    let count = values.iter().filter(|(column, value)| is_written(table, *column, value)).count();
    record.resize(list + TAG_BYTES * count, 0);
    let written = values.iter().filter(|(column, value)| is_written(table, *column, value));
    for (number, (column, value)) in written.enumerate() {
        let place = record.len() - list;
        let has_bits = append_tagged_value(table, page_size, *column, value, record)?;
        if record.len() - list > page_size.bytes() {
            return Err(RecordError::TooLong { bytes: record.len() });
        }
        let flag = if has_bits && !page_size.is_large() { SMALL_HAS_BITS } else { 0 };
        let at = list + TAG_BYTES * number;
        record[at..at + 2].copy_from_slice(&column.to_le_bytes());
        record[at + 2..at + 4].copy_from_slice(&(place as u16 | flag).to_le_bytes());
    }
    Ok(())
}

/// Appends a value, with its bits in front where they are needed; tells whether they are there.
fn append_tagged_value(
    table: &Table,
    page_size: PageSize,
    column: ColumnId,
    value: &NewValue<'_>,
    record: &mut Vec<u8>,
) -> Result<bool, RecordError> {
    let definition = table.column(column).ok_or(RecordError::NoColumn { column })?;
    if ColumnStorage::of(column) != ColumnStorage::Tagged {
        return Err(RecordError::NotTagged { column });
    }
    let long = if definition.column_type.is_long() { value_bits::LONG } else { 0 };
    let bits = match value {
        NewValue::Null => value_bits::NULL,
        NewValue::Bytes(bytes) => {
            check_length(table, column, bytes)?;
            long
        }
        NewValue::Separated { .. } => value_bits::LONG | value_bits::SEPARATED,
        NewValue::Multi(_) => long | value_bits::MULTI,
    };
    let has_bits = bits != 0 || page_size.is_large();
    if has_bits {
        record.push(bits);
    }
    match value {
        NewValue::Null => {}
        NewValue::Bytes(bytes) => record.extend_from_slice(bytes),
        NewValue::Separated { long_value } => record.extend_from_slice(&long_value.to_le_bytes()),
        NewValue::Multi(values) => append_multi(table, column, values, record)?,
    }
    Ok(has_bits)
}

fn append_multi(
    table: &Table,
    column: ColumnId,
    values: &[&[u8]],
    record: &mut Vec<u8>,
) -> Result<(), RecordError> {
    if values.is_empty() {
        return Err(RecordError::NoValues { column });
    }
    let mut end = 2 * values.len();
    for value in values {
        check_length(table, column, value)?;
        record.extend_from_slice(&(end as u16).to_le_bytes());
        end += value.len();
    }
    if end >= usize::from(NULL_END) {
        return Err(RecordError::TooLong { bytes: end });
    }
    values.iter().for_each(|value| record.extend_from_slice(value));
    Ok(())
}
