//! What can be known of a path before anything is written there.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::{DiskError, PlimsollError};

/// Everything that is known about a path, as JSON. Never writes.
#[pyfunction]
pub fn probe(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let found = py.detach(|| plimsoll_io::probe(&path));
    let found = found.map_err(|error| DiskError::new_err(error.to_string()))?;
    serde_json::to_string(&found).map_err(|error| PlimsollError::new_err(error.to_string()))
}
