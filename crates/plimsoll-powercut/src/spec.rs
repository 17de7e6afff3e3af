//! What work for a power cut is to be done, and where.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::PowercutError;

const DATABASE_FILE: &str = "database001.edb";
const MARKS_FILE: &str = "marks.dat";
/// Base name of log and checkpoint files.
pub const LOG_BASE: &str = "E00";
/// Smallest page of the format; a row must fit one of any size.
const ROW_BYTES_MAX: u32 = 1000;
/// How many blocks a ring may have.
const SLOTS_MAX: u64 = 1 << 16;

/// What is to be done, and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowercutSpec {
    /// Where the files lie; theirs alone.
    pub directory: PathBuf,
    /// Tells this run from every other: part of all content.
    pub run: u64,
    /// Page size of the database.
    pub page_bytes: u32,
    /// Sessions that commit.
    pub sessions: u32,
    /// Rows of each session, written round and round.
    pub rows: u64,
    /// Bytes of a row's body.
    pub row_bytes: u32,
    /// Lanes that write marks.
    pub lanes: u32,
    /// Blocks of each lane, written round and round.
    pub slots: u64,
    /// Cache of the engine; smaller than the database, so that pages are written.
    pub cache_bytes: u64,
    /// How many acknowledgements may be under way to the witness.
    pub unwitnessed_max: u64,
    /// How I/O is done, as in a run.
    pub io_method: String,
    /// Ends by itself after this time; never if left out.
    pub seconds: Option<f64>,
}

impl PowercutSpec {
    /// Checks what cannot be worked with.
    ///
    /// # Errors
    /// [`PowercutError::Spec`] with the reason.
    pub fn check(&self) -> Result<(), PowercutError> {
        let wrong = [
            (self.sessions == 0 || self.sessions > 1000, "sessions must be 1 to 1000"),
            (self.lanes > 64, "lanes must be at most 64"),
            (self.rows < 2, "rows must be at least 2"),
            // A whole ring is read at once.
            (self.slots < 2 || self.slots > SLOTS_MAX, "slots must be 2 to 65536"),
            (self.row_bytes < 16 || self.row_bytes > ROW_BYTES_MAX, "row_bytes must be 16 to 1000"),
            (self.unwitnessed_max == 0, "unwitnessed_max must be above zero"),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(PowercutError::Spec((*why).into())),
            None => Ok(()),
        }
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.directory.join(DATABASE_FILE)
    }

    /// The file of the marks.
    pub fn marks(&self) -> PathBuf {
        self.directory.join(MARKS_FILE)
    }

    /// Where the files lie.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}
