//! The exceptions, drawn as a tree:
//!
//! ```text
//! PlimsollError
//! ├── ConfigError       what was asked for is wrong
//! ├── DiskError         the storage reported an error
//! └── CorruptionError   what is on the storage is not what was written
//! ```

use plimsoll_run::RunError;
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

/// The exception for an error of a run.
pub fn raise(error: &RunError) -> PyErr {
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
