//! A disk that counts what is asked of it by purpose, for nanoseconds per operation: cheaper than a
//! recording disk, which takes times too.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::{Action, Buffer, Disk, DiskFacts, Nanos, Operation, Purpose};

/// Reads and writes counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads of database pages by transactions.
    pub database_reads: u64,
    /// Writes of database pages; neighbours written together are one.
    pub database_writes: u64,
    /// Flushes of the log.
    pub log_writes: u64,
    /// Bytes of them.
    pub log_write_bytes: u64,
}

impl Counts {
    /// Database reads and writes together.
    pub fn database_operations(&self) -> u64 {
        self.database_reads + self.database_writes
    }

    /// What was added since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            database_reads: self.database_reads - before.database_reads,
            database_writes: self.database_writes - before.database_writes,
            log_writes: self.log_writes - before.log_writes,
            log_write_bytes: self.log_write_bytes - before.log_write_bytes,
        }
    }
}

/// See the module text.
pub struct Counted {
    inner: Rc<dyn Disk>,
    counts: Cell<Counts>,
}

impl Counted {
    /// Counts what goes to `inner`.
    pub fn new(inner: Rc<dyn Disk>) -> Rc<Counted> {
        Rc::new(Counted { inner, counts: Cell::default() })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    fn count(&self, operation: &Operation) {
        let mut counts = self.counts.get();
        match (&operation.action, operation.context.purpose) {
            (Action::Read { .. }, Purpose::DatabaseRead) => counts.database_reads += 1,
            (Action::Write { .. }, Purpose::DatabaseWrite) => counts.database_writes += 1,
            (Action::Write { buffer, .. }, Purpose::LogWrite) => {
                counts.log_writes += 1;
                counts.log_write_bytes += buffer.len() as u64;
            }
            _ => return,
        }
        self.counts.set(counts);
    }
}

impl Disk for Counted {
    fn submit(&self, operation: Operation) {
        self.count(&operation);
        self.inner.submit(operation);
    }

    fn reap(&self) -> usize {
        self.inner.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.inner.wait(deadline);
    }

    fn waker(&self) -> std::task::Waker {
        self.inner.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.inner.facts()
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.inner.inside_kernel_ns()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.inner.allocate(length_bytes)
    }
}
