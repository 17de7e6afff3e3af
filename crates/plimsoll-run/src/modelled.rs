//! A run on a modelled array, in virtual time: the engine and the load are the real ones, the
//! storage is not there.
//!
//! Prepared databases are kept sparsely, so that preparing takes no time and a terabyte little
//! memory. The array counts from zero at the beginning of each phase, and what it counted is part
//! of the phase's result. Same spec, same bytes.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_array::spec::TimedFault;
use plimsoll_array::{Array, ArrayReport, ModelledDisk, check};
use plimsoll_io::{Clock, Coding, MemoryDisk, MemoryOptions, Random, StopSignal};

use crate::RunError;
use crate::context::Output;
use crate::family::Families;
use crate::outcome::RunOutcome;
use crate::processors::Processors;
use crate::run::execute_on;
use crate::spec::{ModelledSpec, PhaseAction, RunSpec};
use crate::storage::{PhaseWatch, Storage};

/// The modelled disk, with what breaks once measuring has begun and has not been set going yet.
struct Watched {
    disk: Rc<ModelledDisk<Rc<MemoryDisk>>>,
    faults: RefCell<Vec<TimedFault>>,
}

impl PhaseWatch for Watched {
    fn begin(&self, phase: &PhaseAction) {
        self.disk.reset_counters();
        if phase.is_measured() {
            for timed in self.faults.take() {
                self.disk.break_after(timed.at_ns, timed.fault);
            }
        }
    }

    fn report(&self) -> ArrayReport {
        self.disk.report()
    }
}

/// Carries out a run on its modelled array.
///
/// # Errors
/// When the array cannot be built or carries what it cannot hold. All later errors are part of the
/// outcome.
pub fn execute_modelled(
    families: &Families,
    mut spec: RunSpec,
    modelled: &ModelledSpec,
    output: Output,
    stop: StopSignal,
) -> Result<RunOutcome, RunError> {
    let clock = Rc::new(Clock::simulated());
    let random = Random::from_seed(spec.seed);
    let options = MemoryOptions { coding: Coding::Ahead, ..MemoryOptions::ram() };
    let memory = MemoryDisk::new(clock.clone(), random.child("memory"), options);
    load_databases(families, &memory, &mut spec)?;
    let mut checked = modelled.array.clone();
    checked.faults.extend(&modelled.faults_while_measuring);
    check(&checked).map_err(|errors| RunError::Spec(errors.to_string()))?;
    let array = Array::new(&modelled.array, &random.child("array"))
        .map_err(|errors| RunError::Spec(errors.to_string()))?;
    let places = modelled.places.iter();
    let folders = places.map(|place| (place.directory.clone(), place.volume)).collect();
    let disk = Rc::new(ModelledDisk::new(memory, clock.clone(), array, folders));
    let watched = Watched {
        disk: disk.clone(),
        faults: RefCell::new(modelled.faults_while_measuring.clone()),
    };
    let storage = Storage {
        hold: None,
        ring: None,
        watch: Some(Rc::new(watched)),
        processors: Processors::new(modelled.processor_count, modelled.transaction_processor_ns),
        disk,
    };
    Ok(execute_on(families, spec, clock, storage, output, stop))
}

/// Puts every database of the spec in place as a rule, as if it had been prepared.
fn load_databases(
    families: &Families,
    memory: &MemoryDisk,
    spec: &mut RunSpec,
) -> Result<(), RunError> {
    for instance in &mut spec.instances {
        let family = families.of_instance(instance).map_err(RunError::Spec)?;
        memory.create_directory(&instance.directory);
        memory.create_directory(&instance.log_directory);
        family.load_sparse(memory, instance)?;
    }
    Ok(())
}
