//! Operations of several steps within a transaction, and what cursors ask about its own changes.
//!
//! An operation on a table takes steps in several trees. One that is abandoned between two of them leaves its transaction half done: from then on it
//! can be rolled back, wholly or to a savepoint before the operation, and not be committed, whatever is done in it afterwards.

use super::{Transaction, UndoEntry, Work};
use crate::btree::Tree;

impl Transaction {
    /// Begins an operation of several steps: until [`Transaction::end_steps`] with what this gives, the transaction cannot be committed.
    pub(crate) fn begin_steps(&self) -> Option<usize> {
        let before = self.half_done.get();
        let changes = self.work().undo.borrow().len();
        self.half_done.set(before.or(Some(changes)));
        before
    }

    /// Ends it: it is wholly done, or wholly taken back. What was abandoned before it stays half done.
    pub(crate) fn end_steps(&self, before: Option<usize>) {
        self.half_done.set(before);
    }
}

impl Work {
    /// How far the transaction has come: changes it holds, changes it has taken back.
    pub(crate) fn progress(&self) -> (usize, u64) {
        (self.undo.borrow().len(), self.taken_back.get())
    }

    /// Whether a row of `tree` that `concerns` may have changed in this transaction since `before`.
    pub(crate) fn has_changed(
        &self,
        before: (usize, u64),
        tree: &Tree,
        concerns: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let (changes, taken_back) = before;
        let since = |entry: &UndoEntry| entry.row.tree == *tree && concerns(&entry.row.key);
        taken_back != self.taken_back.get() || self.undo.borrow().iter().skip(changes).any(since)
    }
}
