//! Operations on their way, ordered by when they are due and then by when they were submitted.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::faults::Effect;
use crate::{Action, Completion, Durability, Nanos, Purpose};

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

    fn abandoned(mut self, now: Nanos) -> Queued {
        if self.due < Nanos::MAX {
            self.due = self.due.min(now);
        }
        if let Action::Write { durability, .. } = &mut self.action {
            *durability = Durability::Volatile;
        }
        self
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

/// With a constant latency operations come due in the order they were submitted, and a plain queue
/// will do. Only those that are due before the last of it go to the heap.
#[derive(Default)]
pub(crate) struct Queue {
    in_turn: VecDeque<Queued>,
    out_of_turn: BinaryHeap<Queued>,
    next_sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, queued: Queued) {
        self.next_sequence = queued.sequence + 1;
        if self.in_turn.back().is_none_or(|last| last.due <= queued.due) {
            self.in_turn.push_back(queued);
        } else {
            self.out_of_turn.push(queued);
        }
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    fn first(&self) -> Option<(&Queued, Turn)> {
        match (self.in_turn.front(), self.out_of_turn.peek()) {
            (Some(left), Some(right)) if right.key() < left.key() => Some((right, Turn::Out)),
            (Some(left), _) => Some((left, Turn::In)),
            (None, right) => right.map(|right| (right, Turn::Out)),
        }
    }

    /// The earliest operation if it is due and was submitted before `until`.
    pub(crate) fn pop_due(&mut self, now: Nanos, until: u64) -> Option<Queued> {
        let (first, turn) = self.first()?;
        if first.due > now || first.due == Nanos::MAX || first.sequence >= until {
            return None;
        }
        match turn {
            Turn::In => self.in_turn.pop_front(),
            Turn::Out => self.out_of_turn.pop(),
        }
    }

    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let (first, _) = self.first()?;
        (first.due < Nanos::MAX).then_some(first.due)
    }

    pub(crate) fn len(&self) -> usize {
        self.in_turn.len() + self.out_of_turn.len()
    }

    /// Makes everything in flight due now, and every write an ordinary one, which a power cut may
    /// undo until a sync.
    pub(crate) fn abandon(&mut self, now: Nanos) {
        let out_of_turn = std::mem::take(&mut self.out_of_turn).into_iter();
        self.out_of_turn = out_of_turn.map(|queued| queued.abandoned(now)).collect();
        let in_turn = std::mem::take(&mut self.in_turn).into_iter();
        self.in_turn = in_turn.map(|queued| queued.abandoned(now)).collect();
    }

    /// Everything in flight in the order it was submitted.
    pub(crate) fn in_order(&self) -> Vec<&Queued> {
        let mut queued: Vec<&Queued> = self.in_turn.iter().chain(&self.out_of_turn).collect();
        queued.sort_by_key(|queued| queued.sequence);
        queued
    }
}

#[derive(Clone, Copy)]
enum Turn {
    In,
    Out,
}
