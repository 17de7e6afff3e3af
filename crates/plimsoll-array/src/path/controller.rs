//! The controllers of one box: processor time for each request, ownership of volumes, failure of
//! one of them.

use plimsoll_io::Nanos;

use crate::spec::MemberSpec;

struct Controller {
    is_alive: bool,
    free_at: Vec<Nanos>,
}

/// All controllers of a box.
pub(crate) struct Controllers {
    controllers: Vec<Controller>,
    processor_ns: Nanos,
    /// Until when requests stand still because a partner takes over.
    paused_until: Nanos,
    failover_ns: Nanos,
    pub(crate) busy_ns: Nanos,
    /// The part of it for other hosts.
    pub(crate) neighbour_busy_ns: Nanos,
}

impl Controllers {
    pub(crate) fn new(spec: &MemberSpec) -> Self {
        let controllers = (0..spec.controller_count).map(|_| Controller {
            is_alive: true,
            free_at: vec![0; spec.processor_count as usize],
        });
        Self {
            controllers: controllers.collect(),
            processor_ns: spec.processor_ns,
            paused_until: 0,
            failover_ns: spec.failover_ns,
            busy_ns: 0,
            neighbour_busy_ns: 0,
        }
    }

    /// When the controller that owns a volume has looked at a request that arrives now; `None` when
    /// all are gone.
    pub(crate) fn accept(&mut self, now: Nanos, volume: u32, is_neighbours: bool) -> Option<Nanos> {
        let count = self.controllers.len();
        let owner = volume as usize % count;
        let alive = (0..count)
            .map(|step| (owner + step) % count)
            .find(|index| self.controllers[*index].is_alive)?;
        let start = now.max(self.paused_until);
        if self.processor_ns == 0 {
            return Some(start);
        }
        let processors = &mut self.controllers[alive].free_at;
        let free_at = processors.iter_mut().min().expect("a controller has a processor");
        *free_at = start.max(*free_at) + self.processor_ns;
        self.busy_ns += self.processor_ns;
        self.neighbour_busy_ns += if is_neighbours { self.processor_ns } else { 0 };
        Some(*free_at)
    }

    /// One controller fails.
    pub(crate) fn fail(&mut self, now: Nanos, controller: u32) {
        self.controllers[controller as usize].is_alive = false;
        self.paused_until = now + self.failover_ns;
    }

    /// Processors that are left.
    pub(crate) fn processor_count(&self) -> usize {
        let alive = self.controllers.iter().filter(|controller| controller.is_alive);
        alive.map(|controller| controller.free_at.len()).sum()
    }
}
