//! Transactions: snapshot isolation, first writer wins, savepoints, commits that wait for the log
//! or do not.
//!
//! A transaction works on trees and keys; tables are a layer above. Every change is one atomic
//! step: logged, made, versioned and noted for undo without a wait in between. Dropping the future
//! of an operation therefore leaves the transaction as if the operation had not been started;
//! dropping the transaction rolls it back in the background.
//!
//! A transaction carries out one change at a time: an operation that is begun while a change is
//! under way, or a change while anything is, is refused with [`EngineError::TransactionBusy`].

mod begin;
mod rows;
mod steps;
mod undo;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::btree::Tree;
use crate::edit::RowChange;
use crate::error::{EngineError, Result};
use crate::log::record::LogRecord;
use crate::store::Store;
use crate::versions::{ChangedRows, Ended, RowKey, TransactionStatus};

pub(crate) use rows::Counter;
use steps::{Begun, Divided, UnderWay};
pub(crate) use steps::{Steps, Turn};
pub use undo::Savepoint;

/// How a commit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// When the commit record is on stable storage. A transaction that changed nothing waits until
    /// everything it may have seen is: rows that others committed lazily.
    Durable,
    /// At once; a later flush makes it durable.
    Lazy,
}

/// One change to be undone.
#[derive(Clone, Debug)]
pub struct UndoEntry {
    /// The row.
    pub row: RowKey,
    /// What undoes the change.
    pub inverse: RowChange,
}

/// A change that can be undone, with a number that no other of its transaction has.
struct Undo {
    entry: UndoEntry,
    number: u64,
}

pub(crate) struct Work {
    pub(crate) store: Rc<Store>,
    pub(crate) status: Rc<TransactionStatus>,
    snapshot: u64,
    undo: RefCell<Vec<Undo>>,
    /// Changes made so far, those undone among them.
    changes_made: Cell<u64>,
    /// Changes undone so far.
    undone: Cell<u64>,
    /// Operations of several steps begun so far.
    steps_begun: Cell<u64>,
    /// Those that have not ended.
    steps: RefCell<BTreeMap<u64, Begun>>,
    /// Those that have ended and have savepoints between their steps, as their ends rise.
    divided: RefCell<Vec<Divided>>,
    /// Told in a savepoint, and later where operations went on after it.
    moment: Cell<u64>,
    under_way: Cell<UnderWay>,
    /// It was begun when the instance was closing already: it sees and does nothing.
    is_refused: bool,
}

/// A transaction. See the module text.
pub struct Transaction {
    work: Option<Rc<Work>>,
}

impl Transaction {
    pub(crate) fn work(&self) -> &Rc<Work> {
        self.work.as_ref().expect("a transaction has its work until it ends")
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.work().status.id
    }

    /// The row with this key as this transaction sees it.
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let _reading = self.work().begin_read()?;
        self.work().get(tree, key).await
    }

    /// The first of these keys, which rise, under which this transaction sees no row. Keys on one
    /// leaf cost one descent.
    pub async fn first_absent(
        &self,
        tree: Tree,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<Option<usize>> {
        let _reading = self.work().begin_read()?;
        self.work().first_absent(tree, keys).await
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`], [`EngineError::WriteConflict`],
    /// [`EngineError::NodeTooLarge`], ...
    pub async fn insert(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let _changing = self.work().begin_change()?;
        self.work().insert(tree, key, data).await
    }

    /// Deletes a row.
    pub async fn delete(&self, tree: Tree, key: &[u8]) -> Result<()> {
        let _changing = self.work().begin_change()?;
        self.work().delete(tree, key).await
    }

    /// Replaces the data of a row.
    pub async fn replace(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let _changing = self.work().begin_change()?;
        self.work().replace(tree, key, data).await
    }

    /// Adds to a little-endian counter of `width` bytes at offset `at` of a row's data. Concurrent
    /// transactions may do so together. A tree does not know what a counter holds: it wraps around.
    pub async fn add(&self, tree: Tree, key: &[u8], at: u32, width: u8, amount: i64) -> Result<()> {
        let _changing = self.work().begin_change()?;
        self.work().add(tree, key, &Counter { at, width, holds: None }, amount).await
    }

    /// A place to go back to. While a change is under way it is the place before that change.
    pub fn savepoint(&self) -> Savepoint {
        self.work().hand_out_savepoint()
    }

    /// Undoes everything done since the savepoint.
    ///
    /// # Errors
    /// [`EngineError::SavepointGone`] for a savepoint of another transaction, or one from before
    /// which a rollback has gone back.
    pub async fn rollback_to(&self, savepoint: Savepoint) -> Result<()> {
        let _changing = self.work().begin_change()?;
        self.work().rollback_to(savepoint).await
    }

    /// Commits what succeeded. An operation that failed, also for a
    /// [`EngineError::WriteConflict`], has left nothing, and the others may be committed without
    /// it; a caller that wants all or none rolls back.
    ///
    /// # Errors
    /// [`EngineError::HalfDone`] where an operation was abandoned half-way, or a long value that
    /// was written has no row: all of it was rolled back. [`EngineError::Closing`] where the
    /// instance was closing when it was begun.
    ///
    /// After an error of a durable commit no one knows whether it is on disk: the instance is
    /// poisoned and recovery decides.
    pub async fn commit(mut self, how: Commit) -> Result<()> {
        if self.work().is_half_done() {
            self.rollback_work().await?;
            return Err(EngineError::HalfDone);
        }
        let work = self.work.take().expect("a transaction ends once");
        let store = work.store.clone();
        if work.is_refused {
            return Err(EngineError::Closing);
        }
        let rows = changed_rows(work.undo.take());
        if rows.is_empty() && !work.has_logged() {
            work.end();
            return match how {
                Commit::Durable => store.log.make_durable(store.log.tip()).await,
                Commit::Lazy => Ok(()),
            };
        }
        if let Err(error) = store.life.check_open().and(store.log.check()) {
            work.end();
            return Err(error);
        }
        let transaction = work.status.id;
        // What it logged may all be undone. Recovery has to be told of its end all the same,
        // and the checkpoint waits for that.
        let appended = store.log.append(&if rows.is_empty() {
            LogRecord::RolledBack { transaction }
        } else {
            LogRecord::Commit { transaction }
        });
        let gone = store.versions.borrow_mut().commit(&work.status, rows);
        store.purge.extend(gone);
        let durable = store.log.durable();
        store.writers.borrow_mut().end(work.status.id, appended.end, durable);
        work.end();
        match how {
            Commit::Durable => store.log.make_durable(appended.end).await,
            Commit::Lazy => Ok(()),
        }
    }

    /// Undoes everything and ends.
    pub async fn rollback(mut self) -> Result<()> {
        self.rollback_work().await
    }

    async fn rollback_work(&mut self) -> Result<()> {
        let Some(work) = self.work.clone() else {
            return Ok(());
        };
        let result = work.roll_back().await;
        self.work = None;
        result
    }
}

/// The rows that were changed, and whether the last change left each of them deleted.
fn changed_rows(undo: Vec<Undo>) -> ChangedRows {
    let mut rows = BTreeMap::new();
    for Undo { entry, .. } in undo {
        let ended = match entry.inverse {
            RowChange::Undelete => Ended::Deleted,
            _ => Ended::There,
        };
        rows.insert(entry.row, ended);
    }
    rows.into_iter().collect()
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if work.is_refused {
            return;
        }
        if work.undo.borrow().is_empty() && !work.has_logged() {
            work.end();
            return;
        }
        let handle = work.store.handle.clone();
        drop(handle.spawn(async move {
            // A failure has poisoned the log; recovery will undo the transaction.
            let _ = work.roll_back().await;
        }));
    }
}
