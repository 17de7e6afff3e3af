//! Databases of any origin on this machine: which tables they have, a table as text, and mending
//! pages with flipped bits. Only the last locks the file and writes to it.
//!
//! Everything about the file is untrusted: memory stays bounded by a few pages and pieces of text
//! besides the catalog, and damage is an error that names its place.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use plimsoll_engine::catalog::PlacedTable;
use plimsoll_engine::reader::{DatabaseReader, ReadError, write_table};
pub use plimsoll_engine::reader::{TextCounts, TextFormat, WhenDirty};
use plimsoll_engine::repair::{RepairReport, repair};
use plimsoll_io::StopSignal;
use serde::Serialize;

use crate::error::ToolError;
use crate::job::run_until_stop;

/// Flag of the tables that every database has.
const SYSTEM_TABLE: u32 = 0x8000_0000;

/// What a database holds.
#[derive(Clone, Debug, Serialize)]
pub struct EdbFile {
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Pages after the headers.
    pub pages: u32,
    /// Pages that the database owns and the file is too short for.
    pub pages_missing: u64,
    /// Whether more may be missing: what says how far the database reaches is among them.
    pub is_more_missing: bool,
    /// Whether it was shut down cleanly.
    pub is_clean: bool,
    /// Version and update of its format.
    pub format: (u32, u32),
    /// Pages in which a flipped bit was put right in memory on the way.
    pub pages_corrected: u64,
    /// Every table, the system's included.
    pub tables: Vec<EdbTable>,
}

/// A table of a database.
#[derive(Clone, Debug, Serialize)]
pub struct EdbTable {
    /// Name.
    pub name: String,
    /// Object number.
    pub object: u32,
    /// Its root page.
    pub root_page: u32,
    /// Whether every database has it.
    pub is_system: bool,
    /// The table whose columns it inherits.
    pub template: Option<String>,
    /// Whether that table is not there, so that the rows cannot be read.
    pub lacks_template: bool,
    /// Number, name and type of each column, the inherited first.
    pub columns: Vec<(u16, String, &'static str)>,
    /// Names of its indexes, the primary first.
    pub indexes: Vec<String>,
    /// Whether it has a tree of long values.
    pub has_long_values: bool,
    /// Rows, where they were counted.
    pub rows: Option<u64>,
    /// What damage kept them from being counted.
    pub damage: Option<String>,
}

impl EdbTable {
    fn of(placed: &PlacedTable) -> Self {
        let table = &placed.table;
        Self {
            name: table.name.clone(),
            object: placed.place.object,
            root_page: placed.place.root,
            is_system: placed.flags & SYSTEM_TABLE != 0,
            template: placed.template.clone(),
            lacks_template: placed.lacks_template(),
            columns: placed
                .row_columns()
                .map(|column| (column.id, column.name.clone(), column.column_type.name()))
                .collect(),
            indexes: table.indexes.iter().map(|index| index.name.clone()).collect(),
            has_long_values: placed.long_values.is_some(),
            rows: None,
            damage: None,
        }
    }
}

/// The tables of a database; with `counts_rows` every row is read for that.
///
/// # Errors
/// When the file cannot be read, is no database or is damaged, or the stop was wanted.
pub fn edb_tables_live(
    path: &Path,
    when_dirty: WhenDirty,
    counts_rows: bool,
    stop: &StopSignal,
) -> Result<EdbFile, ToolError> {
    let path = path.to_owned();
    run_until_stop(stop, move |files, handle| async move {
        let reader = DatabaseReader::open(&files, &handle, path, when_dirty).await?;
        let mut tables = Vec::new();
        for placed in reader.tables() {
            let mut table = EdbTable::of(placed);
            if counts_rows {
                match count_rows(&reader, placed).await {
                    Ok(rows) => table.rows = Some(rows),
                    Err(error @ (ReadError::Format { .. } | ReadError::Disk(_))) => {
                        table.damage = Some(error.to_string())
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            tables.push(table);
        }
        let header = reader.header();
        // What cannot be read is no reason not to list what was.
        let (pages_missing, is_more_missing) = reader.pages_missing().await.unwrap_or_default();
        Ok(EdbFile {
            page_bytes: reader.page_size().bytes(),
            pages: reader.page_max(),
            pages_missing,
            is_more_missing,
            is_clean: header.state == plimsoll_engine::DatabaseState::Clean,
            format: (header.version, header.update),
            pages_corrected: reader.corrected(),
            tables,
        })
    })
}

async fn count_rows(reader: &DatabaseReader, placed: &PlacedTable) -> Result<u64, ReadError> {
    let (mut rows, mut count) = (reader.rows(placed), 0);
    while rows.next().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Sends a table as text, piece by piece; whoever takes the pieces sets the pace. Ends early when
/// nobody takes them any more.
///
/// # Errors
/// When the file cannot be read, is no database or is damaged, has no such table, or the stop was
/// wanted. What was read before is sent.
pub fn edb_text_live(
    path: PathBuf,
    when_dirty: WhenDirty,
    table: String,
    format: TextFormat,
    pieces: SyncSender<Vec<u8>>,
    stop: &StopSignal,
) -> Result<TextCounts, ToolError> {
    let stopped = stop.clone();
    run_until_stop(stop, move |files, handle| async move {
        let reader = DatabaseReader::open(&files, &handle, path, when_dirty).await?;
        let Some(placed) = reader.table(&table) else {
            return Err(ToolError::NoSuchTable { table });
        };
        let mut sink = |piece| match pieces.send(piece) {
            Ok(()) if !stopped.is_wanted() => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let written = write_table(&reader, placed, format, &mut sink).await?;
        written.ok_or(ToolError::Stopped)
    })
}

/// Rewrites, in place, the pages in which flipped bits can be put right.
///
/// # Errors
/// When the file cannot be read or written, is in use, is no database, was not shut down cleanly,
/// or the stop was wanted.
pub fn edb_repair_live(path: &Path, stop: &StopSignal) -> Result<RepairReport, ToolError> {
    let path = path.to_owned();
    run_until_stop(
        stop,
        move |files, handle| async move { Ok(repair(&files, &handle, &path).await?) },
    )
}
