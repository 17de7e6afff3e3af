//! The books of a recorded disk: what is in flight, what was counted, the trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_measure::Histogram;

use crate::{
    Context, DiskError, DiskErrorKind, FileId, InstanceId, Nanos, OperationKind, Outcome, Purpose,
};

/// What operations are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesKey {
    /// On whose behalf.
    pub instance: InstanceId,
    /// Which database of the instance, 0 for none.
    pub database: u8,
    /// Why.
    pub purpose: Purpose,
    /// Reading, writing, syncing, ...
    pub kind: OperationKind,
}

/// What was counted under one key.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Successful operations.
    pub operations: u64,
    /// Bytes they transferred.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// From being asked for to being handed to the device, added up over the successful ones.
    pub handing_over_ns: u64,
    /// Submission to completion of the successful ones.
    pub latency: Histogram,
    /// Intended start to completion of the successful ones.
    pub response: Histogram,
}

impl Series {
    /// Adds everything counted in `other`.
    pub fn merge(&mut self, other: &Series) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.handing_over_ns += other.handing_over_ns;
        self.latency.merge(&other.latency);
        self.response.merge(&other.response);
    }
}

/// What happened between two calls of [`crate::Recorded::take_interval`].
#[derive(Clone, Debug)]
pub struct Interval {
    /// Start.
    pub from_ns: Nanos,
    /// End.
    pub until_ns: Nanos,
    /// The most operations that were in flight at once.
    pub in_flight_max: usize,
    /// Everything that was counted; keys without any operation are absent.
    pub series: BTreeMap<SeriesKey, Series>,
}

/// An operation in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingIo {
    /// What and for whom.
    pub key: SeriesKey,
    /// On which file or directory.
    pub path: Option<PathBuf>,
    /// Where in the file.
    pub offset: u64,
    /// How much.
    pub length_bytes: u64,
    /// Since when.
    pub submitted: Nanos,
}

/// One line of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedIo {
    /// What and for whom.
    pub key: SeriesKey,
    /// On which file, for operations on open files.
    pub file: Option<FileId>,
    /// Where in the file.
    pub offset: u64,
    /// How much.
    pub length_bytes: u64,
    /// When it should have started.
    pub intended: Nanos,
    /// When it was asked for.
    pub asked: Nanos,
    /// When it was handed to the device.
    pub submitted: Nanos,
    /// When its completion was reaped.
    pub completed: Nanos,
    /// How it failed, if it did.
    pub error: Option<DiskErrorKind>,
}

/// What an observer is shown.
#[derive(Clone, Copy, Debug)]
pub struct CompletedIo<'a> {
    /// The operation.
    pub io: &'a TracedIo,
    /// On which file or directory; `None` when it was opened before the recording began.
    pub path: Option<&'a Path>,
    /// How it failed, if it did.
    pub error: Option<&'a DiskError>,
}

/// An operation as it was submitted.
pub(super) struct Started {
    pub(super) kind: OperationKind,
    pub(super) context: Context,
    /// For operations on names; open files are known by their number.
    pub(super) path: Option<Rc<Path>>,
    pub(super) file: Option<FileId>,
    pub(super) offset: u64,
    pub(super) length_bytes: u64,
    pub(super) submitted: Nanos,
}

impl Started {
    fn key(&self) -> SeriesKey {
        SeriesKey {
            instance: self.context.instance,
            database: self.context.database,
            purpose: self.context.purpose,
            kind: self.kind,
        }
    }
}

pub(super) struct Ledger {
    /// Operations in flight by slot; free slots are listed in `free`.
    in_flight: Vec<Option<Started>>,
    free: Vec<u32>,
    in_flight_max: usize,
    paths: BTreeMap<FileId, Rc<Path>>,
    series: BTreeMap<SeriesKey, Series>,
    from_ns: Nanos,
    trace: Vec<TracedIo>,
    trace_capacity: usize,
    trace_missed: u64,
}

impl Ledger {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            in_flight: Vec::new(),
            free: Vec::new(),
            in_flight_max: 0,
            paths: BTreeMap::new(),
            series: BTreeMap::new(),
            from_ns: now,
            trace: Vec::new(),
            trace_capacity: 0,
            trace_missed: 0,
        }
    }

    fn depth(&self) -> usize {
        self.in_flight.len() - self.free.len()
    }

    /// Books a submission; the slot comes back with its completion.
    pub(super) fn start(&mut self, started: Started) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() as u32 - 1
        });
        self.in_flight[slot as usize] = Some(started);
        self.in_flight_max = self.in_flight_max.max(self.depth());
        slot
    }

    pub(super) fn finish(&mut self, slot: u32) -> Started {
        self.free.push(slot);
        self.in_flight[slot as usize].take().expect("a completion is called once")
    }

    pub(super) fn name_file(&mut self, file: FileId, path: Option<Rc<Path>>) {
        if let Some(path) = path {
            self.paths.insert(file, path);
        }
    }

    pub(super) fn forget_file(&mut self, file: Option<FileId>) {
        if let Some(file) = file {
            self.paths.remove(&file);
        }
    }

    pub(super) fn path_of(&self, started: &Started) -> Option<Rc<Path>> {
        let by_number = || self.paths.get(&started.file?).cloned();
        started.path.clone().or_else(by_number)
    }

    /// Counts a completion.
    pub(super) fn count(&mut self, started: &Started, outcome: &Outcome) -> TracedIo {
        let key = started.key();
        let traced = TracedIo {
            key,
            file: started.file,
            offset: started.offset,
            length_bytes: started.length_bytes,
            intended: started.context.intended.unwrap_or(outcome.submitted),
            asked: started.submitted,
            submitted: outcome.submitted,
            completed: outcome.completed,
            error: outcome.result.as_ref().err().map(|error| error.kind),
        };
        let series = self.series.entry(key).or_default();
        if traced.error.is_some() {
            series.errors += 1;
        } else {
            series.operations += 1;
            series.bytes += started.length_bytes;
            series.handing_over_ns += traced.submitted.saturating_sub(traced.asked);
            series.latency.record(traced.completed.saturating_sub(traced.submitted));
            series.response.record(traced.completed.saturating_sub(traced.intended));
        }
        self.note(traced);
        traced
    }

    fn note(&mut self, traced: TracedIo) {
        if self.trace.len() < self.trace_capacity {
            self.trace.push(traced);
        } else if self.trace_capacity > 0 {
            self.trace_missed += 1;
        }
    }

    pub(super) fn trace(&mut self, capacity: usize) {
        self.trace_capacity = capacity;
        self.trace.reserve(capacity.saturating_sub(self.trace.len()));
    }

    pub(super) fn take_trace(&mut self) -> (Vec<TracedIo>, u64) {
        let next = Vec::with_capacity(self.trace_capacity);
        let trace = std::mem::replace(&mut self.trace, next);
        (trace, std::mem::take(&mut self.trace_missed))
    }

    pub(super) fn take_interval(&mut self, now: Nanos) -> Interval {
        let interval = Interval {
            from_ns: self.from_ns,
            until_ns: now,
            in_flight_max: self.in_flight_max,
            series: std::mem::take(&mut self.series),
        };
        self.from_ns = now;
        self.in_flight_max = self.depth();
        interval
    }

    /// What was submitted at or before `before` and is still in flight, oldest first.
    pub(super) fn pending(&self, before: Nanos) -> Vec<PendingIo> {
        let old = |started: &&Started| started.submitted <= before;
        let mut pending: Vec<PendingIo> = self
            .in_flight
            .iter()
            .flatten()
            .filter(old)
            .map(|started| PendingIo {
                key: started.key(),
                path: self.path_of(started).map(|path| path.to_path_buf()),
                offset: started.offset,
                length_bytes: started.length_bytes,
                submitted: started.submitted,
            })
            .collect();
        pending.sort_by_key(|io| (io.submitted, io.key, io.offset));
        pending
    }
}
