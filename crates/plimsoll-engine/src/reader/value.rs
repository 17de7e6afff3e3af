//! Values as people and other programs read them: numbers, text, or bytes in hexadecimal.

use serde::Serialize;

use crate::schema::{CODE_PAGE_UNICODE, CODE_PAGE_WESTERN, ColumnStorage};
use crate::{Column, ColumnType};

/// A value of a row. In JSON it is plain: a number, a string, true, false or null; bytes are
/// hexadecimal strings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Null.
    Null,
    /// A bit.
    Bit(bool),
    /// A signed number; currency in ten-thousandths.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A floating-point number, also a date in days since 1899-12-30.
    Float(f64),
    /// Text, or bytes and GUIDs in hexadecimal.
    Text(String),
}

/// What code page 1252 has at 0x80 to 0x9F, where Latin-1 has control characters.
const WESTERN_HIGH: [u16; 32] = [
    0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
];

impl Value {
    /// The value that these stored bytes are in this column. Bytes that do not fit the column's
    /// type come out in hexadecimal.
    pub fn of(column: &Column, bytes: &[u8]) -> Value {
        let hexadecimal = || Value::Text(hexadecimal(bytes));
        if column.column_type.fixed_bytes().is_some_and(|length| length != bytes.len()) {
            return hexadecimal();
        }
        let mut word = [0; 8];
        word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let unsigned = u64::from_le_bytes(word);
        match column.column_type {
            ColumnType::Bit => Value::Bit(unsigned != 0),
            ColumnType::UnsignedByte
            | ColumnType::UnsignedShort
            | ColumnType::UnsignedLong
            | ColumnType::UnsignedLongLong => Value::Unsigned(unsigned),
            ColumnType::Short => Value::Signed(i64::from(unsigned as i16)),
            ColumnType::Long => Value::Signed(i64::from(unsigned as i32)),
            ColumnType::Currency | ColumnType::LongLong => Value::Signed(unsigned as i64),
            ColumnType::Single => Value::Float(f64::from(f32::from_bits(unsigned as u32))),
            ColumnType::Double | ColumnType::DateTime => Value::Float(f64::from_bits(unsigned)),
            ColumnType::Text | ColumnType::LongText => {
                text(column.code_page, without_filler(column, bytes))
                    .map_or_else(hexadecimal, Value::Text)
            }
            ColumnType::Binary
            | ColumnType::LongBinary
            | ColumnType::Guid
            | ColumnType::Other(_) => hexadecimal(),
        }
    }
}

/// The whole characters of Unicode text in a fixed column of odd size, whose last byte belongs to
/// none.
fn without_filler<'b>(column: &Column, bytes: &'b [u8]) -> &'b [u8] {
    let is_odd = column.code_page == CODE_PAGE_UNICODE && bytes.len() % 2 == 1;
    match bytes.split_last() {
        Some((0 | b' ', whole)) if is_odd && column.storage() == ColumnStorage::Fixed => whole,
        _ => bytes,
    }
}

fn text(code_page: u16, bytes: &[u8]) -> Option<String> {
    match code_page {
        CODE_PAGE_UNICODE if bytes.len().is_multiple_of(2) => {
            let units: Vec<u16> =
                bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
            Some(String::from_utf16_lossy(&units))
        }
        CODE_PAGE_WESTERN => Some(bytes.iter().map(|byte| western(*byte)).collect()),
        _ => None,
    }
}

pub(super) fn western(byte: u8) -> char {
    let high = byte.checked_sub(0x80).and_then(|high| WESTERN_HIGH.get(usize::from(high)));
    let code = high.copied().unwrap_or(u16::from(byte));
    char::from_u32(u32::from(code)).expect("the table has no surrogates")
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
