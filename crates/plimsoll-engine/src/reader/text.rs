//! A table as text: CSV with a heading, or one JSON object a line.
//!
//! The text leaves in pieces while the table is read. Long values are passed on chunk by chunk, so
//! that memory does not grow with the length of a value, a row or the table. Every value of a
//! multi-valued column is written, as a JSON array in both formats. What a value looks like is the
//! reader's [`Value`]; nothing is left out: an encrypted value, for which only Windows has the key,
//! is `encrypted:` and its bytes.

mod spelling;

use std::ops::ControlFlow;

use super::{DatabaseReader, ReadError, Row, Value};
use crate::catalog::PlacedTable;
use crate::{Column, RecordFault, StoredValue};
use spelling::{Decoder, Spelling};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// A heading, then a line per row; text in quotation marks, null empty.
    Csv,
    /// A JSON object per line, by column name.
    JsonLines,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// Rows.
    pub rows: u64,
    /// Values that could not be read because they are encrypted.
    pub encrypted_values: u64,
}

/// Text is handed over when there is this much of it.
const PIECE_BYTES: usize = 128 * 1024;

/// Takes the text piece by piece, and says whether more is wanted.
pub type Sink<'s> = &'s mut dyn FnMut(Vec<u8>) -> ControlFlow<()>;

/// Nobody wants more, or the database is damaged.
enum End {
    Unwanted,
    Read(ReadError),
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        End::Read(error)
    }
}

/// Writes a table to `sink`, and says what was written; `None` when the sink wanted no more.
///
/// # Errors
/// When a page or a record is damaged; the sink has then been given everything before it. A table
/// that inherits columns from a template that is not there is refused at once: its own would be
/// looked for in the wrong place.
pub async fn write_table(
    reader: &DatabaseReader,
    placed: &PlacedTable,
    format: TextFormat,
    sink: Sink<'_>,
) -> Result<Option<TextCounts>, ReadError> {
    if let Some(template) = placed.template.as_ref().filter(|_| placed.lacks_template()) {
        return Err(ReadError::Inherits {
            path: reader.shared.file.path().to_owned(),
            table: placed.table.name.clone(),
            template: template.clone(),
        });
    }
    let mut writer =
        Writer { spelling: Spelling::new(format), sink, counts: TextCounts::default() };
    let written = writer.table(reader, placed).await;
    // What was read before the damage is given away all the same.
    let rest = writer.give(1);
    match (written, rest) {
        (Err(End::Read(error)), _) => Err(error),
        (Err(End::Unwanted), _) | (_, Err(_)) => Ok(None),
        (Ok(()), Ok(())) => Ok(Some(writer.counts)),
    }
}

struct Writer<'s> {
    spelling: Spelling,
    sink: Sink<'s>,
    counts: TextCounts,
}

impl Writer<'_> {
    /// Hands the text over if there is enough of it.
    fn give(&mut self, enough_bytes: usize) -> Result<(), End> {
        if self.spelling.text.len() < enough_bytes {
            return Ok(());
        }
        match (self.sink)(std::mem::take(&mut self.spelling.text)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(End::Unwanted),
        }
    }

    async fn table(&mut self, reader: &DatabaseReader, placed: &PlacedTable) -> Result<(), End> {
        self.spelling.heading(placed.row_columns());
        let mut rows = reader.rows(placed);
        while let Some(row) = rows.next().await? {
            self.spelling.begin_row();
            for (number, column) in placed.row_columns().enumerate() {
                self.spelling.begin_value(number, &column.name);
                self.value(&row, column).await?;
            }
            self.spelling.end_row();
            self.counts.rows += 1;
            self.give(PIECE_BYTES)?;
        }
        Ok(())
    }

    async fn value<'r>(&mut self, row: &Row<'r>, column: &'r Column) -> Result<(), End> {
        let values = match row.stored(column)? {
            StoredValue::Multi(values) => values,
            single => return self.single(row, column, single).await,
        };
        self.spelling.begin_list();
        let count = values.count().map_err(|fault| row.fault(fault))?;
        for number in 0..count {
            self.spelling.separate_in_list(number);
            let value = values.value(number).map_err(|fault| row.fault(fault))?;
            self.single(row, column, value).await?;
        }
        self.spelling.end_list();
        Ok(())
    }

    async fn single<'r>(
        &mut self,
        row: &Row<'r>,
        column: &'r Column,
        stored: StoredValue<'r>,
    ) -> Result<(), End> {
        match stored {
            StoredValue::Separated { long_value } => {
                let mut scan = row.long_value(column, long_value).await?;
                let mut decoder = Decoder::of(column, scan.size_bytes());
                self.spelling.begin_text();
                while let Some(chunk) = scan.next_chunk().await? {
                    decoder.take(&chunk, |character| self.spelling.character(character));
                    self.give(PIECE_BYTES)?;
                }
                decoder.finish(|character| self.spelling.character(character));
                self.spelling.end_text();
            }
            StoredValue::Encrypted(bytes) => {
                self.counts.encrypted_values += 1;
                self.spelling.begin_text();
                "encrypted:".chars().for_each(|character| self.spelling.character(character));
                Decoder::Hexadecimal.take(bytes, |character| self.spelling.character(character));
                self.spelling.end_text();
            }
            StoredValue::Multi(_) => {
                return Err(row.fault(RecordFault::Outside { column: column.id }).into());
            }
            plain => {
                let bytes = row.resolve(column, plain).await?;
                let value = bytes.map_or(Value::Null, |bytes| Value::of(column, &bytes));
                self.spelling.value(&value);
            }
        }
        Ok(())
    }
}
