//! The disk as the queue's engine sees it: the same, but what it calls its first database is the
//! second one of the instance, so that both have figures of their own.

use std::rc::Rc;
use std::task::Waker;

use plimsoll_io::{Buffer, Disk, DiskFacts, Nanos, Operation};

/// See the module text.
pub struct Relabelled(pub Rc<dyn Disk>);

impl Disk for Relabelled {
    fn submit(&self, mut operation: Operation) {
        if operation.context.database > 0 {
            operation.context.database += 1;
        }
        self.0.submit(operation);
    }

    fn reap(&self) -> usize {
        self.0.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.0.wait(deadline);
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.0.facts()
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.0.inside_kernel_ns()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.0.allocate(length_bytes)
    }
}
