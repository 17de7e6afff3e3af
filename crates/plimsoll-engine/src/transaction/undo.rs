//! Undoing what a transaction did: all of it, or what came after a savepoint.

// Circle: undoing is methods of a transaction's work, in a file of their own.
use super::{UnderWay, Undo, UndoEntry, Work};
use crate::batch::{Batch, Step};
use crate::btree::find;
use crate::edit::RowChange;
use crate::error::{EngineError, PageDamage, Result};
use crate::log::record::LogRecord;
use crate::store::Progress;

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    transaction: u64,
    changes: usize,
    /// Number of the last change before it; 0 before the first.
    last: u64,
    /// When it was made.
    moment: u64,
}

impl Work {
    /// A place for the caller to go back to. In the middle of a change there is none: what is
    /// whole without that change lies before it.
    pub(super) fn hand_out_savepoint(&self) -> Savepoint {
        let savepoint = match self.under_way.get() {
            UnderWay::Change(before) => before,
            _ => self.savepoint(),
        };
        self.divide_steps(savepoint.changes);
        savepoint
    }

    /// Where the transaction is, in the middle of a change too.
    pub(crate) fn savepoint(&self) -> Savepoint {
        let undo = self.undo.borrow();
        Savepoint {
            transaction: self.status.id,
            changes: undo.len(),
            last: undo.last().map_or(0, |undo| undo.number),
            moment: self.moment.get(),
        }
    }

    /// Undoes everything done since the savepoint.
    ///
    /// # Errors
    /// [`EngineError::SavepointGone`] where the savepoint stands for nothing any more; nothing is
    /// undone then.
    pub(crate) async fn rollback_to(&self, savepoint: Savepoint) -> Result<()> {
        let keep = savepoint.changes;
        if !self.holds(savepoint) {
            return Err(EngineError::SavepointGone);
        }
        // Half-way back is a state nobody asked for: if this ends early, the transaction can only
        // be rolled back, or to here again.
        let steps = self.begin_steps_at(keep);
        self.break_steps_after(keep, savepoint.moment);
        self.undo_until(keep).await?;
        self.end_steps(&steps);
        // What was half done before the savepoint still is.
        self.forget_steps_from(keep);
        Ok(())
    }

    /// Whether the changes before a savepoint are those that were there when it was made.
    fn holds(&self, savepoint: Savepoint) -> bool {
        let undo = self.undo.borrow();
        let last = match savepoint.changes {
            0 => Some(0),
            changes => undo.get(changes - 1).map(|undo| undo.number),
        };
        savepoint.transaction == self.status.id && last == Some(savepoint.last)
    }

    /// Notes how a change is undone.
    pub(super) fn note_undo(&self, entry: UndoEntry) {
        let number = self.changes_made.get() + 1;
        self.changes_made.set(number);
        self.undo.borrow_mut().push(Undo { entry, number });
    }

    /// Undoes changes until `keep` are left.
    async fn undo_until(&self, keep: usize) -> Result<()> {
        loop {
            let entry = {
                let undo = self.undo.borrow();
                if undo.len() <= keep {
                    return Ok(());
                }
                let last = undo.last().expect("there is a change to undo");
                last.entry.clone()
            };
            let database = self.store.database(entry.row.tree.database)?;
            self.store.change(&database, |batch| self.undo_step(batch, &entry)).await?;
        }
    }

    fn undo_step(&self, batch: &mut Batch<'_>, entry: &UndoEntry) -> Step<Progress<()>> {
        let (path, line) = find(batch, &entry.row.tree, &entry.row.key)?;
        let Ok(line) = line else {
            let damage = PageDamage::Link("a row to be undone is not in its tree");
            return Err(batch.damaged(path.leaf, damage));
        };
        let (present, free, why) = batch.with(path.leaf, |view| {
            let data = view.node(line)?.data;
            Ok((data.len(), view.free_bytes(), entry.inverse.disagrees(data)))
        })?;
        if let Some(why) = why {
            return Err(batch.damaged(path.leaf, PageDamage::Link(why)));
        }
        if entry.inverse.growth_bytes(present) > free {
            return self.make_room(batch, &entry.row, &path, None);
        }
        batch.row(self.record(&entry.row, path.leaf, line, entry.inverse.clone(), true))?;
        self.undo.borrow_mut().pop();
        self.undone.set(self.undone.get() + 1);
        let gone = self.store.versions.borrow_mut().pop(&entry.row, &self.status);
        if gone && matches!(entry.inverse, RowChange::Delete { .. }) {
            self.store.purge.extend(vec![entry.row.clone()]);
        }
        Ok(Progress::Done(()))
    }

    pub(super) async fn roll_back(&self) -> Result<()> {
        if self.is_refused {
            return Ok(());
        }
        let result = self.undo_until(0).await;
        if result.is_ok() && self.has_logged() {
            let appended =
                self.store.log.append(&LogRecord::RolledBack { transaction: self.status.id });
            let durable = self.store.log.durable();
            self.store.writers.borrow_mut().end(self.status.id, appended.end, durable);
        }
        match &result {
            // Nothing is closed as clean any more where a transaction is left; recovery takes it
            // back.
            Ok(()) | Err(EngineError::Closing) => {}
            // Its changes are still on the pages: only recovery can undo them now, so nothing
            // may be closed as clean.
            Err(error) => self.store.log.fail(error),
        }
        self.end();
        result
    }

    pub(super) fn end(&self) {
        let gone = self.store.versions.borrow_mut().close_snapshot(self.snapshot);
        self.store.purge.extend(gone);
        self.store.life.end();
    }
}
