//! Waiting for a thread that works below the door: the interpreter is free meanwhile, and Ctrl-C is
//! noticed.

use std::thread::JoinHandle;

use plimsoll_io::StopSignal;
use plimsoll_tools::ToolError;
use pyo3::prelude::*;

use crate::errors::{PlimsollError, raise};

/// What the thread returned. A signal stops it and is raised.
pub fn wait_for<T>(
    py: Python<'_>,
    thread: JoinHandle<Result<T, ToolError>>,
    stop: &StopSignal,
    what: &str,
) -> PyResult<T> {
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(crate::run::WAKE_EVERY));
        if let Err(interrupt) = py.check_signals() {
            stop.stop();
            return Err(interrupt);
        }
    }
    let broken =
        |_| PlimsollError::new_err(format!("{what} broke down; this is a fault of Plimsoll"));
    thread.join().map_err(broken)?.map_err(|error| raise(&error))
}
