//! The disk as a further engine of a store sees it: the same, but what it calls its first database
//! is another one of the instance, so that all have figures of their own.

use std::rc::Rc;
use std::task::Waker;

use plimsoll_io::{Buffer, Disk, DiskFacts, Nanos, Operation};

/// See the module text.
pub struct Relabelled {
    /// The disk.
    pub disk: Rc<dyn Disk>,
    /// How many databases of the instance come before those of the engine.
    pub before: u8,
}

impl Disk for Relabelled {
    fn submit(&self, mut operation: Operation) {
        if operation.context.database > 0 {
            operation.context.database += self.before;
        }
        self.disk.submit(operation);
    }

    fn reap(&self) -> usize {
        self.disk.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(deadline);
    }

    fn waker(&self) -> Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.disk.next_event()
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.disk.inside_kernel_ns()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}
