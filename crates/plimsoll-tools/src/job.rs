//! A job on the disks of this machine that ends early when a stop is asked for.

use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{
    Caching, Clock, Executor, Files, Handle, NANOS_PER_MILLISECOND, Nanos, RealDisk,
    RealDiskOptions, StopSignal,
};

use crate::error::ToolError;

const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// Runs `work` on the disks of this machine, buffered where they take nothing else; blocks the
/// calling thread.
///
/// # Errors
/// What the work meets, a disk that cannot be opened at all, or [`ToolError::Stopped`].
pub fn run_until_stop<T: 'static, F: Future<Output = Result<T, ToolError>> + 'static>(
    stop: &StopSignal,
    work: impl FnOnce(Files, Handle) -> F + 'static,
) -> Result<T, ToolError> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone())?;
    let executor = Executor::new(clock, disk.clone());
    let (handle, files, stop) = (executor.handle(), Files::new(disk), stop.clone());
    executor.run(async move {
        let task = handle.spawn(work(files, handle.clone()));
        while !task.is_finished() {
            if stop.is_wanted() {
                return Err(ToolError::Stopped);
            }
            handle.sleep(LOOK_EVERY_NS).await;
        }
        task.await
    })?
}
