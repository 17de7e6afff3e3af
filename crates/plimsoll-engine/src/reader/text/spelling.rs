//! How names and values are spelt in CSV and in JSON, and how the bytes of long values become
//! characters piece by piece.
//!
//! A list of values in CSV is JSON inside a quoted cell. JSON has no numbers for what is not
//! finite: such numbers are text there.

use std::io::Write;

// Circle: how values are spelled is a part of writing them as text, in a file of its own.
use super::TextFormat;
use crate::Column;
use crate::reader::Value;
use crate::reader::value::western;
use crate::schema::{CODE_PAGE_UNICODE, CODE_PAGE_WESTERN};

/// Text under way.
pub(super) struct Spelling {
    pub(super) text: Vec<u8>,
    format: TextFormat,
    in_list: bool,
}

impl Spelling {
    pub(super) fn new(format: TextFormat) -> Self {
        Self { text: Vec::new(), format, in_list: false }
    }

    fn is_json(&self) -> bool {
        self.format == TextFormat::JsonLines
    }

    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// The names of the columns, in CSV.
    pub(super) fn heading<'c>(&mut self, columns: impl Iterator<Item = &'c Column>) {
        if self.is_json() {
            return;
        }
        for (number, column) in columns.enumerate() {
            self.raw(if number > 0 { "," } else { "" });
            self.text_of(&column.name);
        }
        self.raw("\n");
    }

    pub(super) fn begin_row(&mut self) {
        self.raw(if self.is_json() { "{" } else { "" });
    }

    /// What stands before the value of column number `number`.
    pub(super) fn begin_value(&mut self, number: usize, name: &str) {
        self.raw(if number > 0 { "," } else { "" });
        if self.is_json() {
            self.text_of(name);
            self.raw(":");
        }
    }

    pub(super) fn end_row(&mut self) {
        self.raw(if self.is_json() { "}\n" } else { "\n" });
    }

    pub(super) fn begin_list(&mut self) {
        self.raw(if self.is_json() { "[" } else { "\"[" });
        self.in_list = true;
    }

    pub(super) fn separate_in_list(&mut self, number: usize) {
        self.raw(if number > 0 { "," } else { "" });
    }

    pub(super) fn end_list(&mut self) {
        self.in_list = false;
        self.raw(if self.is_json() { "]" } else { "]\"" });
    }

    pub(super) fn begin_text(&mut self) {
        self.raw(if self.in_list && !self.is_json() { "\"\"" } else { "\"" });
    }

    pub(super) fn end_text(&mut self) {
        self.begin_text();
    }

    /// A character of a text that was begun.
    pub(super) fn character(&mut self, character: char) {
        let escapes = self.is_json() || self.in_list;
        match character {
            '"' if self.is_json() => self.raw("\\\""),
            '"' if self.in_list => self.raw("\\\"\""),
            '"' => self.raw("\"\""),
            '\\' if escapes => self.raw("\\\\"),
            control if escapes && u32::from(control) < 0x20 => {
                let escaped = format!("\\u{:04x}", u32::from(control));
                self.raw(&escaped);
            }
            plain => self.raw(plain.encode_utf8(&mut [0; 4])),
        }
    }

    fn text_of(&mut self, text: &str) {
        self.begin_text();
        text.chars().for_each(|character| self.character(character));
        self.end_text();
    }

    pub(super) fn value(&mut self, value: &Value) {
        let is_null_spelt = self.is_json() || self.in_list;
        match value {
            Value::Null => self.raw(if is_null_spelt { "null" } else { "" }),
            Value::Bit(bit) => self.raw(if *bit { "true" } else { "false" }),
            Value::Signed(number) => self.number(number),
            Value::Unsigned(number) => self.number(number),
            // With an exponent where it is large, and so short.
            Value::Float(number) if number.is_finite() => self.number(format_args!("{number:?}")),
            Value::Float(number) => self.text_of(&number.to_string()),
            Value::Text(text) => self.text_of(text),
        }
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        write!(self.text, "{number}").expect("memory takes everything");
    }
}

/// Turns the bytes of one long value into characters.
pub(super) enum Decoder {
    Hexadecimal,
    Western,
    Unicode { byte: Option<u8>, high: Option<u16> },
}

impl Decoder {
    /// The decoder for a value of this column and size; what cannot be text of its kind comes out
    /// in hexadecimal, as short values do.
    pub(super) fn of(column: &Column, size_bytes: u64) -> Self {
        match column.code_page {
            _ if !column.column_type.is_text() => Self::Hexadecimal,
            CODE_PAGE_WESTERN => Self::Western,
            CODE_PAGE_UNICODE if size_bytes.is_multiple_of(2) => {
                Self::Unicode { byte: None, high: None }
            }
            _ => Self::Hexadecimal,
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8], mut put: impl FnMut(char)) {
        match self {
            Self::Hexadecimal => {
                let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).for_each(put);
            }
            Self::Western => bytes.iter().for_each(|byte| put(western(*byte))),
            Self::Unicode { byte, high } => {
                for next in bytes {
                    match byte.take() {
                        None => *byte = Some(*next),
                        Some(low) => put_unit(u16::from_le_bytes([low, *next]), high, &mut put),
                    }
                }
            }
        }
    }

    /// A half character at the end is none.
    pub(super) fn finish(self, mut put: impl FnMut(char)) {
        if let Self::Unicode { high: Some(_), .. } = self {
            put(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// One UTF-16 unit; `high` is the first half of a pair that waits for its second.
fn put_unit(unit: u16, high: &mut Option<u16>, put: &mut impl FnMut(char)) {
    let is_high = (0xD800..0xDC00).contains(&unit);
    let units: Vec<u16> = high.take().into_iter().chain((!is_high).then_some(unit)).collect();
    for decoded in char::decode_utf16(units) {
        put(decoded.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    *high = is_high.then_some(unit);
}
