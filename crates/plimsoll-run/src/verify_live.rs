//! Verifying files of this machine, without a run around it.

use std::path::PathBuf;
use std::rc::Rc;

pub use plimsoll_engine::verify::Depth;
use plimsoll_engine::verify::{VerifyOptions, VerifyReport, verify};
use plimsoll_io::{Caching, Clock, Executor, Files, NANOS_PER_MILLISECOND, RealDisk, RealDiskOptions};

use crate::RunError;
use crate::setting::StopSignal;

const LOOK_EVERY_NS: u64 = 50 * NANOS_PER_MILLISECOND;

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
/// When the disk cannot be opened at all, or the stop was wanted. A file that cannot be read has a report that says so.
pub fn verify_live(request: &VerifyRequest, stop: &StopSignal) -> Result<VerifyReport, RunError> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        caching: Caching::AllowBuffered,
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone())?;
    let executor = Executor::new(clock, disk.clone());
    let (handle, files) = (executor.handle(), Files::new(disk));
    let (paths, stop) = (request.paths.clone(), stop.clone());
    let options = VerifyOptions {
        depth: request.depth,
        ..VerifyOptions::default()
    };
    executor.run(async move {
        let worker = handle.clone();
        let work = handle.spawn(async move { verify(&files, &worker, &paths, &options).await });
        while !work.is_finished() {
            if stop.is_wanted() {
                return Err(RunError::Stopped);
            }
            handle.sleep(LOOK_EVERY_NS).await;
        }
        Ok(work.await)
    })?
}
