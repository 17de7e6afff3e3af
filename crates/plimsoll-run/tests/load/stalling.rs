//! A disk that does nothing for a while: what is submitted meanwhile starts when the stall is over.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_io::{Buffer, Clock, Disk, DiskFacts, Nanos, Operation, Outcome};

pub struct Stalling {
    disk: Rc<dyn Disk>,
    clock: Rc<Clock>,
    from_ns: Nanos,
    until_ns: Nanos,
    held: RefCell<VecDeque<Operation>>,
}

impl Stalling {
    pub fn new(
        disk: Rc<dyn Disk>,
        clock: Rc<Clock>,
        from_ns: Nanos,
        until_ns: Nanos,
    ) -> Rc<Stalling> {
        Rc::new(Stalling { disk, clock, from_ns, until_ns, held: RefCell::default() })
    }
}

impl Disk for Stalling {
    fn submit(&self, operation: Operation) {
        let now = self.clock.now();
        if !(self.from_ns..self.until_ns).contains(&now) {
            return self.disk.submit(operation);
        }
        let completion = operation.completion;
        // Latency counts from when the storage was asked.
        let completion = Box::new(move |outcome: Outcome| {
            completion(Outcome { submitted: now, ..outcome });
        });
        self.held.borrow_mut().push_back(Operation { completion, ..operation });
    }

    fn reap(&self) -> usize {
        if self.clock.now() >= self.until_ns {
            for operation in self.held.take() {
                self.disk.submit(operation);
            }
        }
        self.disk.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(deadline);
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        let held = (!self.held.borrow().is_empty()).then_some(self.until_ns);
        [held, self.disk.next_event()].into_iter().flatten().min()
    }

    fn in_flight(&self) -> usize {
        self.held.borrow().len() + self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}
