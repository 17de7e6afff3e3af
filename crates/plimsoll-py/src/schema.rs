//! What a run spec may hold, as Python sees it.

use plimsoll_run::{RunSpec, built_in};
use pyo3::prelude::*;

/// The JSON Schema of a run spec, as JSON.
#[pyfunction]
pub fn run_spec_schema() -> String {
    RunSpec::schema(&built_in()).to_string()
}
