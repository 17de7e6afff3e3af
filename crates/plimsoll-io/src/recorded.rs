//! A decorator that measures: every completed operation is counted by instance, database, purpose
//! and kind, with its latency and its response time, and shown to an observer. Disk latency is
//! measured here and nowhere else.
//!
//! *Latency* runs from submission to completion as the disk below reports them, *response* from the
//! intended start. Both are kept for successful operations only; failures are counted. What has
//! been submitted and not completed is kept too, so that an operation that never completes is
//! reported long before it could be measured.
//!
//! Cost: one boxed completion per operation, two clock readings of the disk's kind, and counters;
//! tables grow to the depth of the queue and the number of kinds in use, and then no more.

mod ledger;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

pub use ledger::{CompletedIo, Interval, PendingIo, Series, SeriesKey, TracedIo};

use crate::{
    Action, Answer, Buffer, Clock, Disk, DiskFacts, FileId, Nanos, Operation, OperationKind,
    Outcome,
};
use ledger::{Ledger, Started};

/// Sees every completed operation. Called from [`Disk::reap`] before the operation's own
/// completion; must be quick.
pub trait Observer {
    /// An operation has completed.
    fn completed(&self, io: &CompletedIo<'_>);
}

/// A disk and the record of what it did.
pub struct Recorded<D> {
    disk: D,
    clock: Rc<Clock>,
    record: Rc<Record>,
}

struct Record {
    ledger: RefCell<Ledger>,
    observer: Option<Rc<dyn Observer>>,
}

impl<D: Disk> Recorded<D> {
    /// Records what `disk` does. `clock` is the one the disk stamps with.
    pub fn new(disk: D, clock: Rc<Clock>) -> Self {
        Self::build(disk, clock, None)
    }

    /// Records, and shows every completion to `observer`.
    pub fn observed(disk: D, clock: Rc<Clock>, observer: Rc<dyn Observer>) -> Self {
        Self::build(disk, clock, Some(observer))
    }

    fn build(disk: D, clock: Rc<Clock>, observer: Option<Rc<dyn Observer>>) -> Self {
        let ledger = RefCell::new(Ledger::new(clock.now()));
        Self { disk, clock, record: Rc::new(Record { ledger, observer }) }
    }

    /// The disk below.
    pub fn inner(&self) -> &D {
        &self.disk
    }

    /// Everything counted since the last call (or since the start).
    pub fn take_interval(&self) -> Interval {
        self.record.ledger.borrow_mut().take_interval(self.clock.now())
    }

    /// What was submitted at least `age_ns` ago and has not completed, oldest first.
    pub fn in_flight_longer_than(&self, age_ns: Nanos) -> Vec<PendingIo> {
        let before = self.clock.now().checked_sub(age_ns);
        before.map_or(Vec::new(), |before| self.record.ledger.borrow().pending(before))
    }

    /// Keeps a trace of the next completions, at most `capacity` between two calls of
    /// [`Recorded::take_trace`]. Zero ends it.
    pub fn trace(&self, capacity: usize) {
        self.record.ledger.borrow_mut().trace(capacity);
    }

    /// The trace since the last call, and how many completions did not fit into it.
    pub fn take_trace(&self) -> (Vec<TracedIo>, u64) {
        self.record.ledger.borrow_mut().take_trace()
    }
}

impl Record {
    fn complete(&self, slot: u32, outcome: &Outcome) {
        let mut ledger = self.ledger.borrow_mut();
        let started = ledger.finish(slot);
        let traced = ledger.count(&started, outcome);
        let path = ledger.path_of(&started);
        match &outcome.result {
            Ok(Answer::Opened(opened)) => ledger.name_file(opened.file, path.clone()),
            Ok(_) if started.kind == OperationKind::Close => ledger.forget_file(started.file),
            _ => {}
        }
        drop(ledger);
        if let Some(observer) = &self.observer {
            observer.completed(&CompletedIo {
                io: &traced,
                path: path.as_deref(),
                error: outcome.result.as_ref().err(),
            });
        }
    }
}

/// File, offset and length of an action, as far as it has them.
fn place_of(action: &Action) -> (Option<FileId>, u64, u64) {
    match action {
        Action::Read { file, offset, buffer } | Action::Write { file, offset, buffer, .. } => {
            (Some(*file), *offset, buffer.len() as u64)
        }
        Action::Extend { file, .. } | Action::SyncFile { file } | Action::Close { file } => {
            (Some(*file), 0, 0)
        }
        _ => (None, 0, 0),
    }
}

/// The path of an action that has one itself; open files are known by their number.
fn path_of(action: &Action) -> Option<Rc<Path>> {
    match action {
        Action::Open { path, .. }
        | Action::Rename { from: path, .. }
        | Action::Delete { path }
        | Action::SyncDirectory { path }
        | Action::List { path }
        | Action::Stat { path }
        | Action::MakeDirectory { path }
        | Action::RemoveDirectory { path } => Some(Rc::from(path.as_path())),
        _ => None,
    }
}

impl<D: Disk> Disk for Recorded<D> {
    fn submit(&self, operation: Operation) {
        let Operation { action, context, completion } = operation;
        let (file, offset, length_bytes) = place_of(&action);
        let slot = self.record.ledger.borrow_mut().start(Started {
            kind: action.kind(),
            context,
            path: path_of(&action),
            file,
            offset,
            length_bytes,
            submitted: self.clock.now(),
        });
        // Weak, because the disk below may outlive this one with operations in its queue, such as
        // the closes of files dropped last: they must not keep the observer, and whoever waits for
        // it to go, for as long as that disk lives.
        let record = Rc::downgrade(&self.record);
        let completion = Box::new(move |outcome: Outcome| {
            if let Some(record) = record.upgrade() {
                record.complete(slot, &outcome);
            }
            completion(outcome);
        });
        self.disk.submit(Operation { action, context, completion });
    }

    fn reap(&self) -> usize {
        self.disk.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(deadline);
    }

    fn waker(&self) -> std::task::Waker {
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
