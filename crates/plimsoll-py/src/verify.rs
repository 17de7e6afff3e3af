//! Verifying files without a run: the same checks as the checksum phase, for any file of the
//! format.

use std::path::PathBuf;

use plimsoll_io::StopSignal;
use plimsoll_tools::{Depth, VerifyRequest, verify_live};
use pyo3::prelude::*;

use crate::errors::{ConfigError, PlimsollError};
use crate::waiting::wait_for;

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
            return Err(ConfigError::new_err(format!("depth is {other}; write pages or deep")));
        }
    };
    let request = VerifyRequest { paths, depth };
    let signal = stop.clone();
    let thread = std::thread::spawn(move || verify_live(&request, &signal));
    let report = wait_for(py, thread, &stop, "verification")?;
    serde_json::to_string(&report).map_err(|error| PlimsollError::new_err(error.to_string()))
}
