//! The last operations of a disk, for reading how a failing seed came about.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use crate::{DiskErrorKind, Nanos, OperationKind, Purpose};

/// What happened to an operation at one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It was submitted.
    Submitted,
    /// It took effect.
    Done,
    /// It failed.
    Failed(DiskErrorKind),
}

/// One event: a submission or a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// The number of the event, as for [`crate::MemoryDisk::power_cut_at_event`].
    pub event: u64,
    /// When.
    pub at_ns: Nanos,
    /// The number of the operation, in order of submission.
    pub operation: u64,
    /// What happened.
    pub stage: Stage,
    /// What kind of operation.
    pub kind: OperationKind,
    /// Why it was done.
    pub purpose: Purpose,
    /// On what; empty for a closed file.
    pub path: Rc<Path>,
    /// Offset and length of a transfer.
    pub range: Option<(u64, u64)>,
    /// The fault that was injected.
    pub effect: Option<&'static str>,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Submitted => "submitted",
            Stage::Done => "done",
            Stage::Failed(_) => "failed",
        };
        let (kind, purpose, path) = (self.kind.name(), self.purpose.name(), self.path.display());
        write!(
            formatter,
            "event {} at {} ns: operation {} {stage}: {kind} {path} ({purpose})",
            self.event, self.at_ns, self.operation
        )?;
        if let Some((offset, length)) = self.range {
            write!(formatter, " {length} bytes at {offset}")?;
        }
        if let Stage::Failed(kind) = self.stage {
            write!(formatter, " {kind:?}")?;
        }
        match self.effect {
            Some(effect) => write!(formatter, " [{effect}]"),
            None => Ok(()),
        }
    }
}

/// The last entries.
pub(crate) struct Trace {
    entries: VecDeque<TraceEntry>,
    capacity: usize,
}

impl Trace {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::with_capacity(capacity), capacity }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.capacity > 0
    }

    pub(crate) fn push(&mut self, entry: TraceEntry) {
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    pub(crate) fn entries(&self) -> Vec<TraceEntry> {
        self.entries.iter().cloned().collect()
    }
}
