//! A run on the disks of this machine, in real time; or on a modelled array, if the spec describes one.

use std::rc::Rc;

use plimsoll_io::{Caching, Clock, DurableBy, Method, MethodChoice, RealDisk, RealDiskOptions};

use crate::RunError;
use crate::modelled::execute_modelled;
use crate::outcome::RunOutcome;
use crate::run::execute;
use crate::setting::{Output, StopSignal};
use crate::spec::RunSpec;

/// The ways of doing I/O that a spec can name, beside "auto".
const METHODS: [Method; 3] = [Method::IoUring, Method::Libaio, Method::Threads];

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

/// How a named method is opened. Buffered I/O takes the place of direct I/O where the file system refuses it, with a remark:
/// a result that says so is worth more than none.
pub(crate) fn options_for(name: &str, destroy_serials: &[String]) -> Result<RealDiskOptions, RunError> {
    let method = match name {
        "auto" => MethodChoice::Auto,
        _ => {
            let found = METHODS.into_iter().find(|method| method.name() == name);
            let known: Vec<&str> = METHODS.iter().map(|method| method.name()).collect();
            MethodChoice::Only(found.ok_or_else(|| {
                RunError::Spec(format!(
                    "io_method is {name}; write auto or one of {}",
                    known.join(", ")
                ))
            })?)
        }
    };
    Ok(RealDiskOptions {
        method,
        caching: Caching::AllowBuffered,
        destroy_serials: destroy_serials.to_vec(),
        ..RealDiskOptions::default()
    })
}

/// Carries out a run on real storage, or on the array the spec describes; blocks the calling thread until it is over.
///
/// # Errors
/// When the way of doing I/O that was asked for does not exist here. All later errors are part of the outcome.
pub fn execute_live(mut spec: RunSpec, output: Output, stop: StopSignal) -> Result<RunOutcome, RunError> {
    if let Some(modelled) = spec.modelled.take() {
        return execute_modelled(spec, &modelled, output, stop);
    }
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        durable_by: durable_by(spec.durable_writes.as_deref())?,
        ..options_for(&spec.io_method, &spec.destroy_serials)?
    };
    let disk = RealDisk::open(options, clock.clone())?;
    Ok(execute(spec, clock, disk, output, stop))
}
