//! The longest transactions of every phase, each with the stamps that say where its time went.
//!
//! A transaction knows when it began, when it turned to its commit and when it was done. Which I/O
//! held it up is found among the I/O of its database and of its log: the one that covers most of
//! the time in question. That need not be its own: several sessions wait for one page or one flush,
//! and what they wait for is what matters. At most one stall for each instance and sample is kept,
//! so that one bad second does not hide all others.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use plimsoll_io::{CompletedIo, Handle, InstanceId, Nanos, Observer, Purpose};
use serde::Serialize;

use crate::recorder::{Key, Recorder};

/// Stalls kept for each phase.
const STALLS_MAX: usize = 10;
/// Completed I/O remembered for each database and each log.
const REMEMBERED_MAX: usize = 256;

/// The stamps of one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IoStamps {
    /// "database_read", "log_write", ...
    pub purpose: &'static str,
    /// When it was asked for.
    pub asked_ns: Nanos,
    /// When it was handed to the kernel.
    pub submitted_ns: Nanos,
    /// When its completion was seen.
    pub completed_ns: Nanos,
}

impl IoStamps {
    /// How much of the time from `start` to `end` it was under way.
    fn cover_ns(&self, start: Nanos, end: Nanos) -> Nanos {
        self.completed_ns.min(end).saturating_sub(self.asked_ns.max(start))
    }
}

/// One long transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Position of the phase.
    pub phase: u32,
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance, counted from 1.
    pub database: u32,
    /// "insert", "delete", "replace" or "read".
    pub operation: &'static str,
    /// When the backend was asked.
    pub begun_ns: Nanos,
    /// When it turned to its commit.
    pub commit_begun_ns: Nanos,
    /// When it was done.
    pub finished_ns: Nanos,
    /// The I/O of its database that covers most of the time before the commit.
    pub page_io: Option<IoStamps>,
    /// The I/O of its log that covers most of the commit.
    pub log_io: Option<IoStamps>,
}

impl Stall {
    fn length_ns(&self) -> Nanos {
        self.finished_ns - self.begun_ns
    }
}

/// Of the stalls of several shards those that are kept of each phase, longest first.
pub fn longest_of_phases(mut stalls: Vec<Stall>) -> Vec<Stall> {
    stalls.sort_by_key(|stall| (stall.phase, std::cmp::Reverse(stall.length_ns()), stall.begun_ns));
    let mut kept: BTreeMap<u32, usize> = BTreeMap::new();
    stalls.retain(|stall| {
        let count = kept.entry(stall.phase).or_default();
        *count += 1;
        *count <= STALLS_MAX
    });
    stalls
}

#[derive(Default)]
struct Entries {
    phase: u32,
    /// By instance and database, 0 for the log.
    remembered: BTreeMap<(u32, u32), VecDeque<IoStamps>>,
    /// The longest of the running sample, by instance.
    sample: BTreeMap<u32, Stall>,
    /// The longest of the phase, longest first.
    kept: Vec<Stall>,
}

/// See the module text.
pub struct StallLog {
    /// Whether transactions of an instance wait for their page writes.
    waits_for_writes: Vec<bool>,
    entries: RefCell<Entries>,
}

impl StallLog {
    /// An empty log for a run. Of each instance it is told whether its transactions wait for their
    /// page writes.
    pub fn new(waits_for_writes: Vec<bool>) -> StallLog {
        StallLog { waits_for_writes, entries: RefCell::default() }
    }

    /// Looks at a finished transaction; cheap unless it is the longest of its sample so far.
    fn note(&self, instance: u32, database: u32, operation: &'static str, stamps: [Nanos; 3]) {
        let [begun_ns, commit_begun_ns, finished_ns] = stamps;
        let mut entries = self.entries.borrow_mut();
        let longest = entries.sample.get(&instance).map_or(0, Stall::length_ns);
        if finished_ns - begun_ns <= longest {
            return;
        }
        let stall = Stall {
            phase: entries.phase,
            instance,
            database,
            operation,
            begun_ns,
            commit_begun_ns,
            finished_ns,
            page_io: entries.covering((instance, database), begun_ns, commit_begun_ns),
            log_io: entries.covering((instance, 0), commit_begun_ns, finished_ns),
        };
        entries.sample.insert(instance, stall);
    }

    /// Ends the running sample.
    pub fn close_sample(&self) {
        let mut entries = self.entries.borrow_mut();
        let ended = std::mem::take(&mut entries.sample);
        entries.kept.extend(ended.into_values());
        entries.kept.sort_by_key(|stall| (std::cmp::Reverse(stall.length_ns()), stall.begun_ns));
        entries.kept.truncate(STALLS_MAX);
    }

    /// Begins a phase and returns the stalls of the one before, longest first; its last sample must
    /// have been closed.
    pub fn begin_phase(&self, phase: u32) -> Vec<Stall> {
        let mut entries = self.entries.borrow_mut();
        entries.phase = phase;
        std::mem::take(&mut entries.kept)
    }
}

impl Entries {
    fn covering(&self, place: (u32, u32), start: Nanos, end: Nanos) -> Option<IoStamps> {
        let remembered = self.remembered.get(&place)?;
        let longest = remembered.iter().max_by_key(|io| io.cover_ns(start, end))?;
        (longest.cover_ns(start, end) > 0).then_some(*longest)
    }
}

impl Observer for StallLog {
    fn completed(&self, completed: &CompletedIo<'_>) {
        let (io, key) = (completed.io, &completed.io.key);
        let InstanceId(instance) = key.instance;
        let counts = match key.purpose {
            Purpose::DatabaseRead | Purpose::LogWrite => true,
            Purpose::DatabaseWrite => {
                self.waits_for_writes.get(usize::from(instance)) == Some(&true)
            }
            _ => false,
        };
        if !counts {
            return;
        }
        let mut entries = self.entries.borrow_mut();
        let place = (u32::from(instance), u32::from(key.database));
        let remembered = entries.remembered.entry(place).or_default();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.pop_front();
        }
        remembered.push_back(IoStamps {
            purpose: key.purpose.name(),
            asked_ns: io.asked,
            submitted_ns: io.submitted,
            completed_ns: io.completed,
        });
    }
}

/// Times the transactions of one instance from the inside.
pub struct TransactionWatch {
    handle: Handle,
    recorder: Rc<Recorder>,
    stalls: Rc<StallLog>,
    instance: u32,
}

impl TransactionWatch {
    /// A watch for the instance at this position of the plan.
    pub fn new(
        handle: &Handle,
        recorder: &Rc<Recorder>,
        stalls: &Rc<StallLog>,
        instance: u16,
    ) -> TransactionWatch {
        TransactionWatch {
            handle: handle.clone(),
            recorder: recorder.clone(),
            stalls: stalls.clone(),
            instance: u32::from(instance),
        }
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.handle.now()
    }

    /// Notes a committed transaction on the database at `position`, which ends now.
    pub fn committed(
        &self,
        position: usize,
        operation: &'static str,
        begun: Nanos,
        commit_begun: Nanos,
    ) {
        let (database, finished) = (position as u32 + 1, self.now());
        let key = Key::new(self.instance, database, "log_flush_wait");
        self.recorder.record(key, finished - commit_begun);
        let stamps = [begun, commit_begun, finished];
        self.stalls.note(self.instance, database, operation, stamps);
    }

    /// Notes a task on the database at `position` that waits for no commit and ends now.
    pub fn done(&self, position: usize, operation: &'static str, begun: Nanos) {
        let (database, finished) = (position as u32 + 1, self.now());
        self.stalls.note(self.instance, database, operation, [begun, finished, finished]);
    }
}
