//! The modelled array: a description in, what host and array would count out.

use plimsoll_array::source::{SimulationSpec, simulate as simulate_array};
use pyo3::prelude::*;

use crate::errors::{ConfigError, PlimsollError};

/// Simulates a workload on a modelled array, both described in JSON; the outcome is JSON too.
/// Touches no disk.
///
/// The interpreter is free meanwhile, so several simulations run in parallel threads.
#[pyfunction]
pub fn simulate(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: SimulationSpec =
        serde_json::from_str(spec_json).map_err(|error| ConfigError::new_err(error.to_string()))?;
    let outcome = py.detach(|| simulate_array(&spec));
    let outcome = outcome.map_err(|errors| ConfigError::new_err(errors.to_string()))?;
    serde_json::to_string(&outcome).map_err(|error| PlimsollError::new_err(error.to_string()))
}
