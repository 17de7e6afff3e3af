//! Operations of several steps within a transaction, one at a time, and what cursors ask about its
//! own changes.
//!
//! An operation on a table takes steps in several trees. One that is abandoned between two of them
//! leaves its transaction half done: from then on it can be rolled back, wholly or to a savepoint
//! before the operation, and not be committed, whatever is done in it afterwards.
//!
//! A long value is an operation of several steps between which its caller may take savepoints.
//! Going back to one of these leaves the transaction half done as well, also once the value has its
//! row.
//!
//! What an operation that fails has done is undone by going back to where it began. A second
//! change beside it would be undone with it, in part; so a change is alone, and reads go beside
//! each other only.

// Circle: the steps of a transaction are kept by it, in a file of their own.
use super::{Savepoint, Undo, Work};
use crate::btree::Tree;
use crate::error::{EngineError, Result};

/// What a transaction is doing at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UnderWay {
    /// Nothing.
    #[default]
    Nothing,
    /// So many reads.
    Reads(usize),
    /// One change, which was begun here.
    Change(Savepoint),
}

/// Holds the place of an operation until it ends or is given up.
#[must_use]
pub(crate) struct Turn<'a> {
    work: &'a Work,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let under_way = match self.work.under_way.get() {
            UnderWay::Reads(reads) if reads > 1 => UnderWay::Reads(reads - 1),
            _ => UnderWay::Nothing,
        };
        self.work.under_way.set(under_way);
    }
}

/// An operation of several steps that was begun.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    number: u64,
}

/// How far an operation of several steps has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// The changes there were before it.
    before: usize,
    /// When it last went on.
    went_on: u64,
    /// The transaction has gone back to between two of its steps.
    is_broken: bool,
    /// A savepoint between two of its steps was handed out.
    is_divided: bool,
}

/// An operation of several steps that has ended, and that the transaction may go back into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divided {
    number: u64,
    begun: Begun,
    /// The changes there were at its end.
    end: usize,
}

impl Work {
    /// Begins an operation that only looks.
    ///
    /// # Errors
    /// [`EngineError::TransactionBusy`] while a change is under way: it would be seen half done.
    pub(crate) fn begin_read(&self) -> Result<Turn<'_>> {
        self.check_begun()?;
        let reads = match self.under_way.get() {
            UnderWay::Nothing => 1,
            UnderWay::Reads(reads) => reads + 1,
            UnderWay::Change(_) => return Err(EngineError::TransactionBusy),
        };
        self.under_way.set(UnderWay::Reads(reads));
        Ok(Turn { work: self })
    }

    /// Begins an operation that changes something.
    ///
    /// # Errors
    /// [`EngineError::TransactionBusy`] while anything else is under way, [`EngineError::Closing`]
    /// where the instance was closing when it was begun.
    pub(crate) fn begin_change(&self) -> Result<Turn<'_>> {
        self.check_begun()?;
        if self.under_way.get() != UnderWay::Nothing {
            return Err(EngineError::TransactionBusy);
        }
        self.under_way.set(UnderWay::Change(self.savepoint()));
        Ok(Turn { work: self })
    }

    /// Begins an operation of several steps: until [`Work::end_steps`] the transaction cannot be
    /// committed.
    pub(crate) fn begin_steps(&self) -> Steps {
        self.begin_steps_at(self.undo.borrow().len())
    }

    /// The same for an operation that goes back to where there were only so many changes.
    pub(super) fn begin_steps_at(&self, changes: usize) -> Steps {
        let number = self.steps_begun.get();
        self.steps_begun.set(number + 1);
        let begun = Begun {
            before: changes,
            went_on: self.moment.get(),
            is_broken: false,
            is_divided: false,
        };
        self.steps.borrow_mut().insert(number, begun);
        Steps { number }
    }

    /// Ends it: it is wholly done, or wholly undone. What was abandoned before it stays half
    /// done. What has savepoints between its steps is half done again once the transaction goes
    /// back to one of them.
    pub(crate) fn end_steps(&self, steps: &Steps) {
        let number = steps.number;
        let Some(begun) = self.steps.borrow_mut().remove(&number) else { return };
        let end = self.undo.borrow().len();
        if begun.is_divided && begun.before < end {
            self.divided.borrow_mut().push(Divided { number, begun, end });
        }
    }

    /// Notes that the caller may go back to where there were so many changes.
    pub(super) fn divide_steps(&self, changes: usize) {
        for begun in self.steps.borrow_mut().values_mut() {
            begun.is_divided |= begun.before < changes;
        }
    }

    /// Forgets what began when there were at least so many changes: all of it was undone.
    pub(super) fn forget_steps_from(&self, changes: usize) {
        self.steps.borrow_mut().retain(|_, begun| begun.before < changes);
    }

    /// Notes that an operation has gone on: whoever goes back to a savepoint from before takes a
    /// part of it back.
    pub(crate) fn go_on(&self, steps: &Steps) {
        let moment = self.moment.get() + 1;
        self.moment.set(moment);
        if let Some(begun) = self.steps.borrow_mut().get_mut(&steps.number) {
            begun.went_on = moment;
        }
    }

    /// The transaction goes back to where it was at `moment`, with so many changes.
    pub(super) fn break_steps_after(&self, changes: usize, moment: u64) {
        let mut steps = self.steps.borrow_mut();
        for begun in steps.values_mut() {
            begun.is_broken |= begun.went_on > moment;
        }
        let mut divided = self.divided.borrow_mut();
        let whole = divided.partition_point(|divided| divided.end <= changes);
        for Divided { number, begun, .. } in divided.drain(whole..) {
            steps.insert(number, Begun { is_broken: true, ..begun });
        }
    }

    /// Whether an operation was begun and neither ended nor undone.
    pub(crate) fn is_begun(&self, steps: &Steps) -> bool {
        self.steps.borrow().contains_key(&steps.number)
    }

    /// Whether a part of an operation was taken back, and a part is there.
    pub(crate) fn is_broken(&self, steps: &Steps) -> bool {
        self.steps.borrow().get(&steps.number).is_some_and(|begun| begun.is_broken)
    }

    /// Whether any operation was begun and neither ended nor undone.
    pub(crate) fn is_half_done(&self) -> bool {
        !self.steps.borrow().is_empty()
    }

    /// How far the transaction has come: changes it holds, changes it has undone.
    pub(crate) fn progress(&self) -> (usize, u64) {
        (self.undo.borrow().len(), self.undone.get())
    }

    /// Whether a row of `tree` that `concerns` may have changed in this transaction since `before`.
    pub(crate) fn has_changed(
        &self,
        before: (usize, u64),
        tree: &Tree,
        concerns: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let (changes, undone) = before;
        let since = |undo: &Undo| undo.entry.row.tree == *tree && concerns(&undo.entry.row.key);
        undone != self.undone.get() || self.undo.borrow().iter().skip(changes).any(since)
    }
}
