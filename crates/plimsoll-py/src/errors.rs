//! The exceptions, drawn as a tree:
//!
//! ```text
//! PlimsollError
//! ├── ConfigError       what was asked for is wrong
//! ├── DiskError         the storage reported an error
//! └── CorruptionError   what is on the storage is not what was written
//! ```

use std::fmt::Display;

use plimsoll_powercut::PowercutError;
use plimsoll_run::RunError;
use plimsoll_tools::ToolError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    plimsoll._native,
    PlimsollError,
    PyException,
    "Anything that went wrong below the door."
);
pyo3::create_exception!(
    plimsoll._native,
    ConfigError,
    PlimsollError,
    "What was asked for is wrong."
);
pyo3::create_exception!(
    plimsoll._native,
    DiskError,
    PlimsollError,
    "The storage reported an error."
);
pyo3::create_exception!(
    plimsoll._native,
    CorruptionError,
    PlimsollError,
    "What is on the storage is not what was written."
);

/// An error that says which family it belongs to.
pub trait Failure: Display {
    /// "config", "disk", "corruption", "stopped" or "other".
    fn family(&self) -> &'static str;
}

impl Failure for RunError {
    fn family(&self) -> &'static str {
        self.family()
    }
}

impl Failure for PowercutError {
    fn family(&self) -> &'static str {
        self.family()
    }
}

impl Failure for ToolError {
    fn family(&self) -> &'static str {
        self.family()
    }
}

/// The exception for an error of the Rust side.
pub fn raise(error: &impl Failure) -> PyErr {
    let text = error.to_string();
    match error.family() {
        "config" => ConfigError::new_err(text),
        "disk" => DiskError::new_err(text),
        "corruption" => CorruptionError::new_err(text),
        _ => PlimsollError::new_err(text),
    }
}

/// Adds the exceptions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("PlimsollError", py.get_type::<PlimsollError>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("DiskError", py.get_type::<DiskError>())?;
    module.add("CorruptionError", py.get_type::<CorruptionError>())
}
