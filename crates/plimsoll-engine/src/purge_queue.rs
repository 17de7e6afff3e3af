//! Rows that wait for the purge, see `purge.rs`: in the order of their trees, and no more than
//! memory should be given for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use plimsoll_io::Notify;

use crate::versions::RowKey;

/// Rows that may wait; a row takes about a hundred bytes and its key.
const ROWS_MAX: usize = 100_000;

/// Rows that may be left on their pages as deleted nodes.
#[derive(Default)]
pub struct PurgeQueue {
    rows: BTreeSet<RowKey>,
    /// The row visited last: the next one comes after it, so that none waits for ever.
    visited: Option<RowKey>,
}

impl PurgeQueue {
    /// Adds rows, as long as there is room.
    pub fn extend(&mut self, rows: Vec<RowKey>) {
        for row in rows {
            if self.rows.len() >= ROWS_MAX {
                return;
            }
            self.rows.insert(row);
        }
    }

    /// Rows that wait.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes the row to be visited next.
    pub(crate) fn take_next(&mut self) -> Option<RowKey> {
        let after = match self.visited.take() {
            Some(visited) => (Bound::Excluded(visited), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let next = self.rows.range(after).next().or(self.rows.first()).cloned()?;
        self.rows.remove(&next);
        self.visited = Some(next.clone());
        Some(next)
    }

    /// Drops the rows of trees that are not there any more.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&RowKey) -> bool) {
        self.rows.retain(is_kept);
    }

    /// Takes a row out that was removed beside another.
    pub(crate) fn remove(&mut self, row: &RowKey) {
        self.rows.remove(row);
    }
}

/// The queue as those who fill it and the purge share it.
pub struct WaitingRows {
    pub(crate) queue: RefCell<PurgeQueue>,
    /// Something was added, or the instance is stopping.
    wanted: Notify,
}

impl Default for WaitingRows {
    fn default() -> Self {
        Self { queue: RefCell::default(), wanted: Notify::new() }
    }
}

impl WaitingRows {
    /// Queues rows whose nodes may be removed for good.
    pub(crate) fn extend(&self, rows: Vec<RowKey>) {
        if !rows.is_empty() {
            self.queue.borrow_mut().extend(rows);
            self.wake();
        }
    }

    /// Wakes the purge.
    pub(crate) fn wake(&self) {
        self.wanted.notify_all();
    }

    /// When the purge is woken next.
    pub(crate) fn wanted(&self) -> impl Future<Output = ()> + '_ {
        self.wanted.notified()
    }

    /// Rows that wait.
    pub fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }
}
