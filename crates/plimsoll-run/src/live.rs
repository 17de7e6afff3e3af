//! A run on the disks of this machine, in real time, on one thread or several; or on a modelled
//! array, if the spec describes one.

use std::rc::Rc;

use plimsoll_io::{
    Caching, Clock, DurableBy, MethodChoice, RealDisk, RealDiskOptions, StopSignal, WriteHold,
};

use crate::RunError;
use crate::context::Output;
use crate::families::built_in;
use crate::modelled::execute_modelled;
use crate::outcome::RunOutcome;
use crate::run::execute_on;
use crate::shards::execute_on_threads;
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

/// Carries out a run on real storage, or on the array the spec describes; blocks the calling thread
/// until it is over.
///
/// # Errors
/// When the way of doing I/O that was asked for does not exist here. All later errors are part of
/// the outcome.
pub fn execute_live(
    spec: RunSpec,
    output: Output,
    stop: StopSignal,
) -> Result<RunOutcome, RunError> {
    execute_held(spec, output, stop, WriteHold::default())
}

/// The same with a hold on all writes, where the spec says that they can be held.
///
/// # Errors
/// As [`execute_live`].
pub fn execute_held(
    mut spec: RunSpec,
    output: Output,
    stop: StopSignal,
    hold: WriteHold,
) -> Result<RunOutcome, RunError> {
    if let Some(modelled) = spec.modelled.take() {
        if spec.can_hold_writes == Some(true) {
            return Err(RunError::Spec("a modelled array has no writes to hold".into()));
        }
        return execute_modelled(&built_in(), spec, &modelled, output, stop);
    }
    let options = RealDiskOptions {
        method: MethodChoice::named(&spec.io_method).map_err(RunError::Spec)?,
        // Where a file system refuses direct I/O it is done buffered, with a remark: a result that
        // says so is worth more than none.
        caching: Caching::AllowBuffered,
        durable_by: durable_by(spec.durable_writes.as_deref())?,
        destroy_serials: spec.destroy_serials.clone(),
        ..RealDiskOptions::default()
    };
    let hold = spec.can_hold_writes.unwrap_or(false).then_some(hold);
    let open = move |_: usize, clock: Rc<Clock>| -> Result<Storage, RunError> {
        let disk = RealDisk::open(options.clone(), clock)?;
        Ok(Storage { hold: hold.clone(), ..Storage::on_ring(disk) })
    };
    if spec.threads_count() > 1 {
        return execute_on_threads(built_in, spec, open, output, &stop);
    }
    let clock = Rc::new(Clock::real());
    let storage = open(0, clock.clone())?;
    Ok(execute_on(&built_in(), spec, clock, storage, output, stop))
}
