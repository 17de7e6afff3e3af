//! A run on the disks of this machine, in real time; or on a modelled array, if the spec describes one.

use std::rc::Rc;

use plimsoll_io::{Caching, Clock, DurableBy, MethodChoice, RealDisk, RealDiskOptions, StopSignal};

use crate::RunError;
use crate::context::Output;
use crate::families::built_in;
use crate::modelled::execute_modelled;
use crate::outcome::RunOutcome;
use crate::processors::Processors;
use crate::run::execute_on;
use crate::spec::RunSpec;
use crate::storage::Storage;

/// How writes are made durable, by the name a spec gives it.
fn durable_by(name: Option<&str>) -> Result<DurableBy, RunError> {
    match name {
        None | Some("faster") => Ok(DurableBy::Faster),
        Some("dsync") => Ok(DurableBy::Flag),
        Some("fdatasync") => Ok(DurableBy::WriteThenSync),
        Some(other) => Err(RunError::Spec(format!(
            "durable_writes is {other}; write faster, dsync or fdatasync"
        ))),
    }
}

/// Carries out a run on real storage, or on the array the spec describes; blocks the calling thread until it is over.
///
/// # Errors
/// When the way of doing I/O that was asked for does not exist here. All later errors are part of the outcome.
pub fn execute_live(mut spec: RunSpec, output: Output, stop: StopSignal) -> Result<RunOutcome, RunError> {
    if let Some(modelled) = spec.modelled.take() {
        return execute_modelled(&built_in(), spec, &modelled, output, stop);
    }
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        method: MethodChoice::named(&spec.io_method).map_err(RunError::Spec)?,
        // Where a file system refuses direct I/O it is done buffered, with a remark: a result that says so is worth more than none.
        caching: Caching::AllowBuffered,
        durable_by: durable_by(spec.durable_writes.as_deref())?,
        destroy_serials: spec.destroy_serials.clone(),
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone())?;
    let storage = Storage {
        disk: disk.clone(),
        ring: Some(disk),
        watch: None,
        processors: Processors::new(1, 0),
    };
    Ok(execute_on(&built_in(), spec, clock, storage, output, stop))
}
