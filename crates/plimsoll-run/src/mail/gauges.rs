//! What is under way at this moment: shown as levels in every sample.

use std::cell::Cell;
use std::rc::Rc;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// Tasks.
    Task,
    /// Messages that a server was offered and has not answered.
    Queued,
    /// Commands without an answer.
    Command,
}

/// See the module text.
#[derive(Debug, Default)]
pub struct Gauges([Cell<u64>; 3]);

/// Something under way; it ends when this is dropped, however that comes.
pub struct Entered {
    gauges: Rc<Gauges>,
    gauge: Gauge,
}

impl Gauges {
    /// One more until what is returned is dropped.
    pub fn enter(self: &Rc<Self>, gauge: Gauge) -> Entered {
        self.add(gauge, 1);
        Entered { gauges: self.clone(), gauge }
    }

    /// How many there are.
    pub fn count(&self, gauge: Gauge) -> u64 {
        self.0[gauge as usize].get()
    }

    fn add(&self, gauge: Gauge, more: i64) {
        let cell = &self.0[gauge as usize];
        cell.set(cell.get().saturating_add_signed(more));
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.gauges.add(self.gauge, -1);
    }
}
