//! Reading databases of any origin: their tables as JSON, one table as pieces of text, and mending
//! what can be mended.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;

use plimsoll_io::StopSignal;
use plimsoll_tools::{
    TextCounts, TextFormat, ToolError, WhenDirty, edb_repair_live, edb_tables_live, edb_text_live,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{ConfigError, PlimsollError};
use crate::waiting::wait_for;

/// Pieces that may wait for their reader.
const PIECES_AHEAD: usize = 4;

fn when_dirty(reads_dirty: bool) -> WhenDirty {
    match reads_dirty {
        true => WhenDirty::Read,
        false => WhenDirty::Refuse,
    }
}

fn raised(error: serde_json::Error) -> PyErr {
    PlimsollError::new_err(error.to_string())
}

/// What a database holds, as JSON; with `counts_rows` every row is read for that. Never writes.
#[pyfunction]
pub fn edb_tables(
    py: Python<'_>,
    path: PathBuf,
    reads_dirty: bool,
    counts_rows: bool,
) -> PyResult<String> {
    let stop = StopSignal::default();
    let signal = stop.clone();
    let thread = std::thread::spawn(move || {
        edb_tables_live(&path, when_dirty(reads_dirty), counts_rows, &signal)
    });
    let file = wait_for(py, thread, &stop, "reading the database")?;
    serde_json::to_string(&file).map_err(raised)
}

/// Rewrites the pages in which flipped bits can be put right, in place, and says as JSON what was
/// done.
#[pyfunction]
pub fn edb_repair(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let stop = StopSignal::default();
    let signal = stop.clone();
    let thread = std::thread::spawn(move || edb_repair_live(&path, &signal));
    let report = wait_for(py, thread, &stop, "the repair")?;
    serde_json::to_string(&report).map_err(raised)
}

/// A table as text, taken piece by piece.
#[pyclass(frozen)]
pub struct TableText {
    stop: StopSignal,
    pieces: Mutex<Receiver<Vec<u8>>>,
    thread: Mutex<Option<JoinHandle<Result<TextCounts, ToolError>>>>,
    counts: Mutex<TextCounts>,
}

#[pymethods]
impl TableText {
    /// Begins to read a table; `form` is "csv" or "json".
    #[new]
    fn new(path: PathBuf, table: String, form: &str, reads_dirty: bool) -> PyResult<Self> {
        let format = match form {
            "csv" => TextFormat::Csv,
            "json" => TextFormat::JsonLines,
            other => {
                return Err(ConfigError::new_err(format!("form is {other}; write csv or json")));
            }
        };
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        let stop = StopSignal::default();
        let signal = stop.clone();
        let thread = std::thread::spawn(move || {
            edb_text_live(path, when_dirty(reads_dirty), table, format, sender, &signal)
        });
        Ok(Self {
            stop,
            pieces: Mutex::new(pieces),
            thread: Mutex::new(Some(thread)),
            counts: Mutex::default(),
        })
    }

    /// The next piece, `None` after the last.
    fn next_piece<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        loop {
            let taken = py.detach(|| {
                let pieces = self.pieces.lock().expect("no panic happens under this lock");
                pieces.recv_timeout(crate::run::WAKE_EVERY)
            });
            py.check_signals()?;
            match taken {
                Ok(piece) => return Ok(Some(PyBytes::new(py, &piece))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let mut thread = self.thread.lock().expect("no panic happens under this lock");
                    if let Some(thread) = thread.take() {
                        let counts = wait_for(py, thread, &self.stop, "reading the table")?;
                        *self.counts.lock().expect("no panic happens under this lock") = counts;
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Rows, and values that are encrypted; of everything once `next_piece` has said `None`.
    fn counts(&self) -> (u64, u64) {
        let counts = self.counts.lock().expect("no panic happens under this lock");
        (counts.rows, counts.encrypted_values)
    }
}

impl Drop for TableText {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
