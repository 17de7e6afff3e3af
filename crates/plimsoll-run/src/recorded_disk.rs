//! A disk that reports every operation to the [`Recorder`]: the one place where disk latency is measured.
//!
//! Latency runs from the moment the operation was handed to the disk below to the moment its completion was reaped. An
//! operation in flight for longer than a stated time is counted as hung once, before it completes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{Action, Buffer, Context, Disk, DiskErrorKind, DiskFacts, Nanos, Operation};

use crate::recorder::{Key, Recorder};

/// An operation that has not completed for a long time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hung {
    /// What it does.
    pub doing: &'static str,
    /// Why and for whom.
    pub context: Context,
    /// Since when.
    pub since: Nanos,
}

struct InFlight {
    doing: &'static str,
    context: Context,
    submitted: Nanos,
    reported: bool,
}

#[derive(Default)]
struct Watch {
    operations: RefCell<BTreeMap<u64, InFlight>>,
    next: Cell<u64>,
}

/// See the module text.
pub struct RecordedDisk {
    below: Rc<dyn Disk>,
    clock: Rc<plimsoll_io::Clock>,
    recorder: Rc<Recorder>,
    watch: Rc<Watch>,
}

impl RecordedDisk {
    /// Reports what happens on `below` to `recorder`.
    pub fn new(below: Rc<dyn Disk>, clock: Rc<plimsoll_io::Clock>, recorder: Rc<Recorder>) -> Self {
        Self {
            below,
            clock,
            recorder,
            watch: Rc::default(),
        }
    }

    /// Operations in flight since before `deadline` that were not reported yet. Each is counted as hung.
    pub fn report_hung(&self, deadline: Nanos) -> Vec<Hung> {
        let mut operations = self.watch.operations.borrow_mut();
        let late = operations
            .values_mut()
            .filter(|operation| operation.submitted < deadline && !operation.reported);
        late.map(|operation| {
            operation.reported = true;
            self.recorder.count(key_of(&operation.context, "hung"), 1);
            Hung {
                doing: operation.doing,
                context: operation.context,
                since: operation.submitted,
            }
        })
        .collect()
    }

    /// How many operations of an instance are at the disk.
    pub fn in_flight_of(&self, instance: u16) -> usize {
        let operations = self.watch.operations.borrow();
        operations
            .values()
            .filter(|operation| operation.context.instance.0 == instance)
            .count()
    }
}

fn key_of(context: &Context, metric: &str) -> Key {
    Key::new(u32::from(context.instance.0), u32::from(context.database), metric)
}

/// The metric an operation counts for, and the bytes it moves.
fn metric_of(action: &Action, context: &Context) -> (&'static str, u64) {
    match action {
        Action::Read { buffer, .. } | Action::Write { buffer, .. } => {
            (context.purpose.name(), buffer.len() as u64)
        }
        Action::SyncFile { .. } | Action::SyncDirectory { .. } => ("sync", 0),
        _ => ("metadata", 0),
    }
}

impl Disk for RecordedDisk {
    fn submit(&self, operation: Operation) {
        let Operation {
            action,
            context,
            completion,
        } = operation;
        let (metric, bytes) = metric_of(&action, &context);
        let key = key_of(&context, metric);
        let number = self.watch.next.replace(self.watch.next.get() + 1);
        let entry = InFlight {
            doing: action.verb(),
            context,
            submitted: self.clock.now(),
            reported: false,
        };
        self.watch.operations.borrow_mut().insert(number, entry);
        let (recorder, watch) = (self.recorder.clone(), self.watch.clone());
        self.below.submit(Operation {
            action,
            context,
            completion: Box::new(move |outcome| {
                watch.operations.borrow_mut().remove(&number);
                match &outcome.result {
                    Ok(_) => recorder.record(key, outcome.completed.saturating_sub(outcome.submitted), bytes),
                    // A path that names nothing is an answer to a question, not a fault of the storage.
                    Err(error) if error.kind == DiskErrorKind::NotFound => {}
                    Err(_) => recorder.record_error(key),
                }
                completion(outcome);
            }),
        });
    }

    fn reap(&self) -> usize {
        self.below.reap()
    }

    fn wait(&self, deadline: Option<Nanos>) {
        self.below.wait(deadline);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.below.next_event()
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.below.facts()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.below.allocate(length_bytes)
    }
}
