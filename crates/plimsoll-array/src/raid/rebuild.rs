//! Filling a spare: surviving drives are read in order, the lost element is computed and written.
//!
//! One stretch of rows is on its way at a time; the next starts when the one before is written and
//! the rebuild rate allows it. Hosts go on meanwhile: rows below the frontier are whole again.

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

/// Bytes of each drive rebuilt in one stretch.
const STRETCH_BYTES: u64 = 512 * 1024;

/// How far a rebuild is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    /// When the drive failed.
    pub started: Nanos,
    /// When the set was whole again, if it is.
    pub finished: Option<Nanos>,
    /// Rows rebuilt.
    pub row_count: u64,
}

/// The rebuild of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rebuild {
    pub(crate) slot: u32,
    pub(crate) next_row: u64,
    pub(crate) rows_end: u64,
    pub(crate) rows_per_stretch: u64,
    pub(crate) stretch_ns: Nanos,
    pub(crate) stretch_started: Nanos,
    /// Reads of the stretch on their way; then the write.
    pub(crate) left: u32,
    pub(crate) writing: bool,
    pub(crate) progress: RebuildProgress,
}

impl Rebuild {
    pub(crate) fn new(
        slot: u32,
        rows_end: u64,
        element_bytes: u64,
        bytes_per_second: f64,
        now: Nanos,
    ) -> Self {
        let rows_per_stretch = (STRETCH_BYTES / element_bytes).max(1);
        let stretch_bytes = (rows_per_stretch * element_bytes) as f64;
        Self {
            slot,
            next_row: 0,
            rows_end,
            rows_per_stretch,
            stretch_ns: (stretch_bytes / bytes_per_second * NANOS_PER_SECOND as f64) as Nanos,
            stretch_started: now,
            left: 0,
            writing: false,
            progress: RebuildProgress { started: now, finished: None, row_count: 0 },
        }
    }

    /// Rows of the stretch at work.
    pub(crate) fn stretch_rows(&self) -> u64 {
        self.rows_per_stretch.min(self.rows_end - self.next_row)
    }
}
