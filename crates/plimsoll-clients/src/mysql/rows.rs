//! Filling a table in statements of many rows.

use std::fmt::Write as _;

use mysql::prelude::Queryable;
use mysql::{Conn, Error};

/// Rows are sent in statements of about this size, which every server takes unless told otherwise.
const PIECE_BYTES: usize = 256 * 1024;

/// Rows of a table on their way.
pub struct Rows {
    table: &'static str,
    text: String,
}

impl Rows {
    pub fn of(table: &'static str) -> Rows {
        Rows { table, text: String::new() }
    }

    pub fn add(&mut self, connection: &mut Conn, row: &str) -> Result<(), Error> {
        let joint = match self.text.is_empty() {
            true => format!("INSERT INTO {} VALUES ", self.table),
            false => ",".to_owned(),
        };
        let _ = write!(self.text, "{joint}{row}");
        match self.text.len() >= PIECE_BYTES {
            true => self.send(connection),
            false => Ok(()),
        }
    }

    /// Each statement is a transaction: locks and undo of a whole store would be many.
    pub fn send(&mut self, connection: &mut Conn) -> Result<(), Error> {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            connection.query_drop(text)?;
            connection.query_drop("COMMIT")?;
        }
        Ok(())
    }
}
