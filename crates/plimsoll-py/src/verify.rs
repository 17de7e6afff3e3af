//! Verifying files without a run: the same checks as the checksum phase, for any file of the format.

use std::path::PathBuf;

use plimsoll_run::{Depth, StopSignal, VerifyRequest, verify_live};
use pyo3::prelude::*;

use crate::errors::{ConfigError, PlimsollError, raise};

/// Checks files, by "pages" or "deep", and returns a report as JSON. Never writes.
///
/// A thread of its own reads; this one looks for signals meanwhile.
#[pyfunction]
pub fn verify(py: Python<'_>, paths: Vec<PathBuf>, depth: &str) -> PyResult<String> {
    let stop = StopSignal::default();
    let depth = match depth {
        "pages" => Depth::Pages,
        "deep" => Depth::Deep,
        other => {
            return Err(ConfigError::new_err(format!(
                "depth is {other}; write pages or deep"
            )));
        }
    };
    let request = VerifyRequest { paths, depth };
    let signal = stop.clone();
    let thread = std::thread::spawn(move || verify_live(&request, &signal));
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(crate::run::WAKE_EVERY));
        if let Err(interrupt) = py.check_signals() {
            stop.stop();
            return Err(interrupt);
        }
    }
    let report = thread
        .join()
        .map_err(|_| PlimsollError::new_err("verification broke down; this is a fault of Plimsoll"))?
        .map_err(|error| raise(&error))?;
    serde_json::to_string(&report).map_err(|error| PlimsollError::new_err(error.to_string()))
}
