//! Verifying files of this machine, without a run around it.

use std::path::PathBuf;

pub use plimsoll_engine::verify::Depth;
use plimsoll_engine::verify::{VerifyOptions, VerifyReport, verify};

use plimsoll_io::StopSignal;

use crate::error::ToolError;
use crate::job::run_until_stop;

/// What to verify.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// The files, one after the other.
    pub paths: Vec<PathBuf>,
    /// How far to go.
    pub depth: Depth,
}

/// Verifies files; blocks the calling thread until it is done or told to stop.
///
/// # Errors
/// When the disk cannot be opened at all, or the stop was wanted. A file that cannot be read has a
/// report that says so.
pub fn verify_live(request: &VerifyRequest, stop: &StopSignal) -> Result<VerifyReport, ToolError> {
    let paths = request.paths.clone();
    let options = VerifyOptions { depth: request.depth, ..VerifyOptions::default() };
    run_until_stop(stop, move |files, handle| async move {
        Ok(verify(&files, &handle, &paths, &options).await)
    })
}
