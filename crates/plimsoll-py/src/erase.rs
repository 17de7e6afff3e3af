//! Giving a block device back: the one thing that is deleted without being a file.

use std::path::PathBuf;

use plimsoll_tools::erase_device_live;
use pyo3::prelude::*;

use crate::errors::raise;

/// Blanks the start of a block device that holds a database; refused without the device's serial.
#[pyfunction]
pub fn erase_device(py: Python<'_>, device: PathBuf, destroy_serials: Vec<String>) -> PyResult<()> {
    py.detach(|| erase_device_live(&device, destroy_serials)).map_err(|error| raise(&error))
}
