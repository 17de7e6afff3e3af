//! One point of a sweep over real storage, for a calibration.

use plimsoll_io::StopSignal;
use plimsoll_tools::{SweepPoint, sweep_live};
use pyo3::prelude::*;

use crate::errors::{ConfigError, PlimsollError};
use crate::waiting::wait_for;

/// Measures one point described in JSON and returns its figures as JSON. Writes to the file it is
/// given.
///
/// A thread of its own measures; this one looks for signals meanwhile.
#[pyfunction]
pub fn sweep(py: Python<'_>, point_json: &str) -> PyResult<String> {
    let point: SweepPoint = serde_json::from_str(point_json)
        .map_err(|error| ConfigError::new_err(error.to_string()))?;
    let stop = StopSignal::default();
    let signal = stop.clone();
    let thread = std::thread::spawn(move || sweep_live(&point, &signal));
    let figures = wait_for(py, thread, &stop, "the sweep")?;
    serde_json::to_string(&figures).map_err(|error| PlimsollError::new_err(error.to_string()))
}
