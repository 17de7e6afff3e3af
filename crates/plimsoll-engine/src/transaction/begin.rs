//! How transactions come about: begun by a caller, refused because the instance is closing, begun
//! as a part of larger work, or found unfinished by recovery.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Transaction, UndoEntry, Work};
use crate::error::{EngineError, Result};
use crate::store::Store;
use crate::versions::{Before, TransactionStatus};

impl Transaction {
    /// Begins a transaction that sees everything committed so far. Where the instance is closing
    /// already, every operation of it says so; one that was begun before goes on.
    pub fn begin(store: &Rc<Store>) -> Transaction {
        if store.is_closing() {
            return Self::refused(store);
        }
        Self::begin_entered(store)
    }

    fn refused(store: &Rc<Store>) -> Transaction {
        let status = Rc::new(TransactionStatus::new(0));
        Self::of(Work { is_refused: true, ..Work::new(store, status, 0) })
    }

    /// Begins a transaction as a part of work that a close waits for.
    pub(crate) fn begin_entered(store: &Rc<Store>) -> Transaction {
        let id = Self::take_number(store);
        Self::begin_numbered(store, id)
    }

    /// The next number, for a transaction that is begun later.
    pub(crate) fn take_number(store: &Store) -> u64 {
        store.take_transaction_number()
    }

    /// Begins a transaction whose number was taken before.
    pub(crate) fn begin_numbered(store: &Rc<Store>, id: u64) -> Transaction {
        store.life.begin();
        let snapshot = store.versions.borrow_mut().open_snapshot();
        let status = Rc::new(TransactionStatus::new(id));
        Self::of(Work::new(store, status, snapshot))
    }

    fn of(work: Work) -> Transaction {
        Transaction { work: Some(Rc::new(work)) }
    }

    /// A transaction that recovery found unfinished.
    pub(crate) fn unfinished(store: &Rc<Store>, id: u64, undo: Vec<UndoEntry>) -> Transaction {
        let transaction = Self::begin_numbered(store, id);
        let work = transaction.work();
        // Its records lie behind the checkpoint that redo started from: until all is undone,
        // redo must start there again.
        store.writers.borrow_mut().note(id, store.checkpoint.get());
        // Rows still to be undone must not look dead to anybody meanwhile.
        for entry in &undo {
            store.versions.borrow_mut().push(
                entry.row.clone(),
                work.status.clone(),
                Before::Absent,
            );
        }
        undo.into_iter().for_each(|entry| work.note_undo(entry));
        transaction
    }
}

impl Work {
    pub(super) fn new(store: &Rc<Store>, status: Rc<TransactionStatus>, snapshot: u64) -> Work {
        Work {
            store: store.clone(),
            status,
            snapshot,
            undo: RefCell::default(),
            changes_made: Cell::new(0),
            undone: Cell::new(0),
            steps_begun: Cell::new(0),
            steps: RefCell::default(),
            divided: RefCell::default(),
            moment: Cell::new(0),
            under_way: Cell::default(),
            is_refused: false,
        }
    }

    /// Fails where the transaction was begun too late to do anything.
    pub(super) fn check_begun(&self) -> Result<()> {
        if self.is_refused {
            return Err(EngineError::Closing);
        }
        Ok(())
    }
}
