//! Operations on their way, ordered by when they are due and then by when they were submitted.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::faults::Effect;
use crate::{Action, Completion, Nanos, Purpose};

pub(crate) struct Queued {
    /// `Nanos::MAX` never comes: the operation hangs.
    pub(crate) due: Nanos,
    /// Order of submission, from [`Queue::next_sequence`].
    pub(crate) sequence: u64,
    pub(crate) sync_mark: u64,
    pub(crate) submitted: Nanos,
    pub(crate) purpose: Purpose,
    pub(crate) effect: Option<Effect>,
    pub(crate) action: Action,
    pub(crate) completion: Completion,
}

impl Queued {
    fn key(&self) -> (Nanos, u64) {
        (self.due, self.sequence)
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    /// Reversed: the heap gives the earliest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Queued>,
    next_sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, queued: Queued) {
        self.next_sequence = queued.sequence + 1;
        self.heap.push(queued);
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The earliest operation if it is due and was submitted before `until`.
    pub(crate) fn pop_due(&mut self, now: Nanos, until: u64) -> Option<Queued> {
        let first = self.heap.peek()?;
        let is_ready = first.due <= now && first.due < Nanos::MAX && first.sequence < until;
        if is_ready { self.heap.pop() } else { None }
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let due = self.heap.peek()?.due;
        (due < Nanos::MAX).then_some(due)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Everything in flight in the order it was submitted.
    pub(crate) fn in_order(&self) -> Vec<&Queued> {
        let mut queued: Vec<&Queued> = self.heap.iter().collect();
        queued.sort_by_key(|queued| queued.sequence);
        queued
    }
}
