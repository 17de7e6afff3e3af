//! Which generations of a log are kept, the oldest first, and which are being deleted.
//!
//! A generation that is to be deleted counts as gone at once, so that no reader comes to rely on
//! it. Its file may outlive that: a deletion fails, is dropped, or is not made durable. So its
//! number stays here until the deletion has succeeded, and whoever deletes next begins with it.

use std::collections::{BTreeSet, VecDeque};

/// See the module text.
pub(super) struct KeptGenerations {
    /// The oldest that no one has begun to delete.
    oldest: u32,
    /// What was found of the stream and is older than this life: not every number has a file.
    found: VecDeque<u32>,
    /// The first of this life.
    first: u32,
    /// Those whose deletion has begun and not succeeded.
    being_deleted: BTreeSet<u32>,
}

impl KeptGenerations {
    /// Those that were `found`, in their order, and those of this life from `first` on.
    pub(super) fn new(found: VecDeque<u32>, first: u32) -> KeptGenerations {
        let oldest = found.front().copied().unwrap_or(first).min(first);
        KeptGenerations { oldest, found, first, being_deleted: BTreeSet::new() }
    }

    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The first of this life.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The first whose deletion has begun and not succeeded.
    pub(super) fn half_deleted(&self) -> Option<u32> {
        self.being_deleted.first().copied()
    }

    /// The deletion of the oldest begins: the next is the one found behind it, if any is.
    pub(super) fn begin_deletion(&mut self) {
        let gone = self.oldest;
        self.being_deleted.insert(gone);
        while self.found.front().is_some_and(|found| *found <= gone) {
            self.found.pop_front();
        }
        let next = if self.found.is_empty() { self.first } else { self.found[0] };
        self.oldest = next.max(gone + 1);
    }

    /// A deletion has succeeded.
    pub(super) fn end_deletion(&mut self, generation: u32) {
        self.being_deleted.remove(&generation);
    }
}
