//! What one row was before changes that some snapshot may not see.
//!
//! Changes of active transactions lie apart from those of committed ones. An active transaction has
//! a group of its own, newest last, for it may take its changes back one by one. Several groups
//! there are only while all of them hold nothing but additions, which commute: any other change
//! excludes all others. What a transaction changed is joined to one when it commits, and these lie
//! in the order of commits. So what a snapshot does not see is found by its number, and the oldest
//! such change that holds the whole row says what the row was.
//!
//! Two committed changes between which no snapshot lies are seen by the same transactions, now and
//! later, and are joined once there are many. A row therefore has about twice as many versions as
//! there are snapshots, at most, and additions are walked over no further than that.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

// Circle: the versions of one row are a part of the store, in a file of their own.
use super::{Before, TransactionStatus};
use crate::edit::RowChange;

/// So many committed changes of a row there are before any are joined.
const JOINED_FROM: usize = 16;

/// The changes of a transaction that is active: at least one.
struct Active {
    status: Rc<TransactionStatus>,
    changes: Vec<Before>,
}

/// What a committed transaction changed, and what was joined with that.
struct Committed {
    commit: u64,
    /// Which of the rows of its transaction this is.
    place: usize,
    before: Before,
}

/// A change that was joined with a newer one.
pub(super) struct Joined {
    /// Its commit.
    pub(super) commit: u64,
    /// Which of the rows of its transaction it was of.
    pub(super) place: usize,
    /// What both took apart from the overhead of a version.
    pub(super) bytes_before: usize,
    /// What they take as one.
    pub(super) bytes: usize,
}

/// See the module text.
pub(super) struct Chain {
    active: Vec<Active>,
    committed: VecDeque<Committed>,
    /// So many committed changes are looked through for some to be joined.
    join_at: usize,
}

impl Chain {
    pub(super) fn new() -> Chain {
        Chain { active: Vec::new(), committed: VecDeque::new(), join_at: JOINED_FROM }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.committed.is_empty()
    }

    fn index_of(&self, status: &TransactionStatus) -> Option<usize> {
        self.active.iter().position(|active| active.status.id == status.id)
    }

    pub(super) fn has_changes_of(&self, status: &TransactionStatus) -> bool {
        self.index_of(status).is_some()
    }

    /// Adds a change of an active transaction.
    pub(super) fn push(&mut self, status: Rc<TransactionStatus>, before: Before) {
        match self.index_of(&status) {
            Some(index) => self.active[index].changes.push(before),
            None => {
                // Most rows have one change and no more.
                self.active.reserve_exact(1);
                self.active.push(Active { status, changes: vec![before] });
            }
        }
    }

    /// Takes the newest change of an active transaction away.
    pub(super) fn pop(&mut self, status: &TransactionStatus) -> Option<Before> {
        let index = self.index_of(status)?;
        let newest = self.active[index].changes.pop();
        if self.active[index].changes.is_empty() {
            self.active.remove(index);
        }
        newest
    }

    /// Takes all changes of an active transaction away.
    pub(super) fn take(&mut self, status: &TransactionStatus) -> Vec<Before> {
        let Some(index) = self.index_of(status) else { return Vec::new() };
        let changes = self.active.remove(index).changes;
        self.active.shrink_to_fit();
        changes
    }

    /// Adds what a transaction changed that commits now.
    pub(super) fn push_committed(&mut self, commit: u64, place: usize, before: Before) {
        if self.committed.is_empty() {
            self.committed.reserve_exact(1);
        }
        self.committed.push_back(Committed { commit, place, before });
    }

    /// Takes the oldest committed change away if it is of this commit.
    pub(super) fn pop_committed(&mut self, commit: u64) -> Option<Before> {
        let is_oldest = self.committed.front().is_some_and(|oldest| oldest.commit == commit);
        let oldest = if is_oldest { self.committed.pop_front() } else { None };
        oldest.map(|oldest| oldest.before)
    }

    /// Joins committed changes that no snapshot tells apart, if there are many. Tells `joined` of
    /// each that was joined with a newer one.
    pub(super) fn join(
        &mut self,
        snapshots: &BTreeMap<u64, usize>,
        visited: &Cell<u64>,
        mut joined: impl FnMut(Joined),
    ) {
        if self.committed.len() < self.join_at {
            return;
        }
        count(visited, self.committed.len());
        let mut kept: Vec<Committed> = Vec::new();
        for newer in self.committed.drain(..) {
            let is_one = |older: &mut Committed| {
                snapshots.range(older.commit..newer.commit).next().is_none()
            };
            let Some(older) = kept.pop_if(is_one) else {
                kept.push(newer);
                continue;
            };
            let bytes_before = older.before.bytes() + newer.before.bytes();
            let before = older.before.join(newer.before);
            let (commit, place, bytes) = (older.commit, older.place, before.bytes());
            joined(Joined { commit, place, bytes_before, bytes });
            kept.push(Committed { before, ..newer });
        }
        self.committed = kept.into();
        self.join_at = JOINED_FROM.max(2 * self.committed.len());
    }

    /// The first committed change that a snapshot does not see.
    fn first_after(&self, snapshot: u64) -> usize {
        self.committed.partition_point(|change| change.commit <= snapshot)
    }

    /// The changes that a transaction does not see, oldest first.
    fn invisible(
        &self,
        status: &TransactionStatus,
        snapshot: u64,
        visited: &Cell<u64>,
    ) -> impl Iterator<Item = &Before> {
        let committed = self.committed.range(self.first_after(snapshot)..);
        let committed = committed.map(|change| &change.before);
        committed.chain(self.active_but(status)).inspect(|_| count(visited, 1))
    }

    /// The changes of active transactions other than this.
    fn active_but(&self, status: &TransactionStatus) -> impl Iterator<Item = &Before> {
        let others = self.active.iter().filter(|active| active.status.id != status.id);
        others.flat_map(|active| &active.changes)
    }

    /// Whether a change would meet one of another transaction that excludes it.
    pub(super) fn conflicts(
        &self,
        status: &TransactionStatus,
        snapshot: u64,
        by_delta: bool,
        visited: &Cell<u64>,
    ) -> bool {
        let mut invisible = self.invisible(status, snapshot, visited);
        invisible.any(|before| !(by_delta && matches!(before, Before::Deltas(_))))
    }

    /// See [`super::VersionStore::may_be_taken_back`].
    pub(super) fn may_be_taken_back(
        &self,
        status: &TransactionStatus,
        counter_at: u32,
        visited: &Cell<u64>,
    ) -> (i128, i128) {
        let (mut added, mut taken_away) = (0, 0);
        for before in self.active_but(status).inspect(|_| count(visited, 1)) {
            let Before::Deltas(deltas) = before else { continue };
            for delta in deltas {
                match delta {
                    RowChange::Delta { at, amount, .. } if *at == counter_at => {
                        added += i128::from((*amount).max(0));
                        taken_away -= i128::from((*amount).min(0));
                    }
                    _ => {}
                }
            }
        }
        (added, taken_away)
    }

    /// What a transaction sees of the row, whose page holds `current`.
    pub(super) fn visible(
        &self,
        current: Option<&[u8]>,
        status: &TransactionStatus,
        snapshot: u64,
        visited: &Cell<u64>,
    ) -> Option<Vec<u8>> {
        let (mut state, mut additions) = (current, Vec::new());
        for before in self.invisible(status, snapshot, visited) {
            match before {
                Before::Deltas(deltas) => {
                    additions.extend(deltas);
                    continue;
                }
                Before::Absent => state = None,
                Before::Data(data) => state = Some(data),
            }
            // What came after it does not matter.
            break;
        }
        let mut state = state?.to_vec();
        additions.iter().for_each(|delta| delta.unapply_delta(&mut state));
        Some(state)
    }
}

fn count(visited: &Cell<u64>, versions: usize) {
    visited.set(visited.get() + versions as u64);
}
