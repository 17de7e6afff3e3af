//! One point of a sweep over real storage, for a calibration.

use plimsoll_run::{StopSignal, SweepPoint, sweep_live};
use pyo3::prelude::*;

use crate::errors::{ConfigError, PlimsollError, raise};

/// Measures one point described in JSON and returns its figures as JSON. Writes to the file it is given.
///
/// A thread of its own measures; this one looks for signals meanwhile.
#[pyfunction]
pub fn sweep(py: Python<'_>, point_json: &str) -> PyResult<String> {
    let point: SweepPoint =
        serde_json::from_str(point_json).map_err(|error| ConfigError::new_err(error.to_string()))?;
    let stop = StopSignal::default();
    let signal = stop.clone();
    let thread = std::thread::spawn(move || sweep_live(&point, &signal));
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(crate::run::WAKE_EVERY));
        if let Err(interrupt) = py.check_signals() {
            stop.stop();
            return Err(interrupt);
        }
    }
    let figures = thread
        .join()
        .map_err(|_| PlimsollError::new_err("the sweep broke down; this is a fault of Plimsoll"))?
        .map_err(|error| raise(&error))?;
    serde_json::to_string(&figures).map_err(|error| PlimsollError::new_err(error.to_string()))
}
