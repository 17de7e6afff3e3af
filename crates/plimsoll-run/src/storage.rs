//! What a run works on: a disk, and what a modelled one can say of itself.

use std::rc::Rc;

use plimsoll_array::ArrayReport;
use plimsoll_io::{Disk, RealDisk, WriteHold};

use crate::processors::Processors;
use crate::spec::PhaseAction;

/// What a run works on.
pub struct Storage {
    /// The disk.
    pub disk: Rc<dyn Disk>,
    /// The same, where sockets can be watched by its ring.
    pub ring: Option<Rc<RealDisk>>,
    /// Counts by phase, if the storage is modelled.
    pub watch: Option<Rc<dyn PhaseWatch>>,
    /// What may hold its writes, if anything may.
    pub hold: Option<WriteHold>,
    /// What the host charges for transactions.
    pub processors: Processors,
}

impl Storage {
    /// A disk that cannot watch sockets and that nobody models.
    pub fn of(disk: Rc<dyn Disk>) -> Storage {
        let processors = Processors::new(1, 0);
        Storage { disk, ring: None, watch: None, hold: None, processors }
    }

    /// A disk of this machine, whose ring watches sockets too.
    pub fn on_ring(disk: Rc<RealDisk>) -> Storage {
        Storage { ring: Some(disk.clone()), ..Storage::of(disk) }
    }
}

/// Storage that counts what it did in a phase.
pub trait PhaseWatch {
    /// A phase begins: count from zero.
    fn begin(&self, phase: &PhaseAction);
    /// What was counted since.
    fn report(&self) -> ArrayReport;
}
