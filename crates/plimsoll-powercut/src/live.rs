//! The work and its survey on the storage of this machine.

use std::rc::Rc;

use plimsoll_io::{
    Caching, Clock, DurableBy, Executor, Files, MethodChoice, RealDisk, RealDiskOptions, StopSignal,
};

use crate::error::PowercutError;
use crate::spec::PowercutSpec;
use crate::survey::{Survey, survey};
use crate::witness::Witness;
use crate::work::PowercutOutcome;
use crate::work::work;

fn real(spec: &PowercutSpec) -> Result<(Executor, Files), PowercutError> {
    let clock = Rc::new(Clock::real());
    // Whether the flag of a write is kept is one of the questions, so it is not exchanged for
    // whatever is faster.
    let options = RealDiskOptions {
        durable_by: DurableBy::Flag,
        method: MethodChoice::named(&spec.io_method).map_err(PowercutError::Spec)?,
        caching: Caching::AllowBuffered,
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone())?;
    Ok((Executor::new(clock, disk.clone()), Files::new(disk)))
}

/// Works until told to stop; blocks the calling thread. The directory is there and holds none of
/// the files.
///
/// # Errors
/// What the storage or the engine reports, or a spec that cannot be carried out.
pub fn powercut_live(
    spec: PowercutSpec,
    witness: Witness,
    stop: StopSignal,
) -> Result<PowercutOutcome, PowercutError> {
    let (executor, files) = real(&spec)?;
    let task = work(files, executor.handle(), spec, witness, stop);
    executor.run(task)?
}

/// Recovers and lists what is there; blocks the calling thread. Recovery writes to the files.
///
/// # Errors
/// When I/O cannot be done at all; whatever is wrong with the files is part of the survey.
pub fn survey_live(spec: PowercutSpec) -> Result<Survey, PowercutError> {
    spec.check()?;
    let (executor, files) = real(&spec)?;
    let task = survey(files, executor.handle(), spec);
    Ok(executor.run(task)?)
}
