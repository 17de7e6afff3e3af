//! One change of a schema: trees made or dropped, and rows of the catalog, as one transaction.
//!
//! A change is a task of its own and goes on when its caller stops waiting. It ends in one of two
//! ways: committed, or undone with every tree that it had made released. The log says which. What
//! cannot be released at once, because the disk reports an error, is released with the next change,
//! by the close, or by whoever opens the database after a crash, see `pending.rs`. Where the pages
//! that tell what a tree owns are damaged, its space is given up.

use std::cell::Cell;
use std::rc::Rc;

use crate::btree::Tree;
use crate::catalog::{CatalogRow, Place, system};
use crate::edit::Edit;
use crate::error::{EngineError, Result};
use crate::instance::Instance;
use crate::log::record::LogRecord;
use crate::page::page_flags;
use crate::space;
use crate::store::Progress;
use crate::transaction::{Commit, Transaction};
use crate::{PageNumber, Table};

/// See the module text.
pub(super) struct SchemaChange {
    pub(super) instance: Rc<Instance>,
    pub(super) database: u8,
    /// The transaction's number, before there is one.
    number: u64,
    transaction: Option<Transaction>,
    /// The log says of a tree that its fate hangs on the transaction.
    is_noted: Cell<bool>,
    /// It was committed, or nobody knows.
    is_ended: bool,
}

/// A tree of the system's.
pub(super) fn system_tree(database: u8, object: u32, root: u32, kind: u32) -> Tree {
    Tree { database, root, object, kind }
}

/// A change of a table that is refused.
pub(super) fn refused(table: &Table, why: impl Into<String>) -> EngineError {
    EngineError::BadChange { table: table.name.clone(), why: why.into() }
}

impl Instance {
    /// Carries out a change of a schema, alone. It has to commit itself; otherwise it is
    /// undone.
    pub(super) async fn change_schema<R: 'static>(
        self: &Rc<Self>,
        database: u8,
        change: impl AsyncFnOnce(&mut SchemaChange) -> Result<R> + 'static,
    ) -> Result<R> {
        let this = self.clone();
        let task = self.store().handle.spawn(async move {
            let _alone = this.schema.changes.acquire().await;
            // A close that is begun meanwhile waits until all is done.
            let _entered = this.store().enter()?;
            // What an earlier change could not release stays where it is, and whoever comes next
            // tries again.
            let _ = this.release_pending().await;
            let mut change_made = SchemaChange {
                number: Transaction::take_number(this.store()),
                instance: this.clone(),
                database,
                transaction: None,
                is_noted: Cell::new(false),
                is_ended: false,
            };
            let changed = change(&mut change_made).await;
            let ended = change_made.end().await;
            let _ = this.release_pending().await;
            ended.and(changed)
        });
        task.await
    }

    /// Releases trees that no one has any more, those given up whose own pages are damaged. The log
    /// does not tell that one was given up: each recovery of the log that dooms it tries again, and
    /// gives it up again, until the checkpoint has passed that log.
    pub(crate) async fn release_pending(&self) -> Result<()> {
        let store = self.store();
        loop {
            let Some(doomed) = store.pending.borrow().next_doomed() else {
                return Ok(());
            };
            store.purge.queue.borrow_mut().retain(|row| {
                let tree = row.tree;
                (tree.database, tree.root, tree.object)
                    != (doomed.database, doomed.root, doomed.object)
            });
            let database = store.database(doomed.database)?;
            let released = store
                .change(&database, |batch| space::release(batch, doomed.root, doomed.object))
                .await;
            match released {
                // Nobody can find out any more what it owned: that is lost to the file, and the
                // rest goes on.
                Ok(()) | Err(EngineError::DamagedPage { .. }) => {}
                Err(error) => return Err(error),
            }
            store.pending.borrow_mut().forget(doomed, store.log.tip());
        }
    }
}

impl SchemaChange {
    /// The transaction of the change, begun when it is first asked for: it sees everything
    /// committed until then.
    pub(super) fn transaction(&mut self) -> &Transaction {
        let (store, number) = (self.instance.store(), self.number);
        self.transaction.get_or_insert_with(|| Transaction::begin_numbered(store, number))
    }

    /// Makes a tree that is released again unless the change is committed.
    pub(super) async fn make_tree(
        &mut self,
        parent: PageNumber,
        object: u32,
        kind: u32,
        pages: u32,
    ) -> Result<Tree> {
        let store = self.instance.store();
        let database = store.database(self.database)?;
        let note = Edit::MadeBy { transaction: self.number, object };
        let made = store.change(&database, |batch| {
            let root = space::create_tree(batch, parent, object, kind, pages)?;
            batch.edit(root, note.clone())?;
            Ok(Progress::Done((root, store.log.tip())))
        });
        let (root, at) = made.await?;
        // No wait since the record was made: the checkpoint has not passed it.
        store.pending.borrow_mut().note(self.database, root, &[note], at, store.log.tip());
        self.is_noted.set(true);
        Ok(Tree { database: self.database, root, object, kind })
    }

    /// Notes again that a tree is being made, so that the checkpoint can follow a change that takes
    /// long.
    pub(super) async fn note_again(&self, tree: Tree) -> Result<()> {
        let (transaction, object) = (self.number, tree.object);
        self.note(tree.root, Edit::MadeBy { transaction, object }).await
    }

    /// Notes that a tree is released once the change is committed.
    pub(super) async fn drop_tree(&self, place: Place) -> Result<()> {
        let (transaction, object) = (self.number, place.object);
        self.note(place.root, Edit::DroppedBy { transaction, object }).await
    }

    async fn note(&self, root: PageNumber, note: Edit) -> Result<()> {
        let store = self.instance.store();
        let database = store.database(self.database)?;
        let noted = store.change(&database, |batch| {
            batch.edit(root, note.clone())?;
            Ok(Progress::Done(store.log.tip()))
        });
        let at = noted.await?;
        store.pending.borrow_mut().note(self.database, root, &[note], at, store.log.tip());
        self.is_noted.set(true);
        Ok(())
    }

    /// Raises the highest object number that the header knows.
    pub(super) async fn raise_object_max(&self, object_max: u32) -> Result<()> {
        let database = self.instance.database(self.database)?;
        database
            .update_header(move |header| header.object_max = header.object_max.max(object_max))
            .await
    }

    fn catalog_trees(&self) -> [Tree; 4] {
        let database = self.database;
        [
            system_tree(database, system::CATALOG_OBJECT, system::CATALOG_ROOT, 0),
            system_tree(database, system::SHADOW_OBJECT, system::SHADOW_ROOT, 0),
            system_tree(
                database,
                system::NAME_INDEX_OBJECT,
                system::NAME_INDEX_ROOT,
                page_flags::INDEX,
            ),
            system_tree(
                database,
                system::ROOT_INDEX_OBJECT,
                system::ROOT_INDEX_ROOT,
                page_flags::INDEX,
            ),
        ]
    }

    fn object_tree(&self) -> Tree {
        system_tree(self.database, system::OBJECT_IDS_OBJECT, system::OBJECT_IDS_ROOT, 0)
    }

    /// Adds rows to the catalog, and to the list of objects.
    pub(super) async fn add_to_catalog(
        &mut self,
        rows: &[CatalogRow],
        objects: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<()> {
        let ([catalog, shadow, names, roots], object_tree) =
            (self.catalog_trees(), self.object_tree());
        let transaction = self.transaction();
        for row in rows {
            transaction.insert(catalog, &row.key, &row.record).await?;
            transaction.insert(shadow, &row.key, &row.record).await?;
            transaction.insert(names, &row.name_key, &row.key).await?;
            if let Some(root_key) = &row.root_key {
                transaction.insert(roots, root_key, &row.key).await?;
            }
        }
        for (key, record) in objects {
            transaction.insert(object_tree, key, record).await?;
        }
        Ok(())
    }

    /// Removes rows from the catalog, and from the list of objects.
    pub(super) async fn remove_from_catalog(
        &mut self,
        rows: &[CatalogRow],
        objects: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<()> {
        let ([catalog, shadow, names, roots], object_tree) =
            (self.catalog_trees(), self.object_tree());
        let transaction = self.transaction();
        for row in rows {
            transaction.delete(catalog, &row.key).await?;
            transaction.delete(shadow, &row.key).await?;
            transaction.delete(names, &row.name_key).await?;
            if let Some(root_key) = &row.root_key {
                transaction.delete(roots, root_key).await?;
            }
        }
        for (key, _) in objects {
            transaction.delete(object_tree, key).await?;
        }
        Ok(())
    }

    /// Puts a row of the catalog in the place of one with the same key.
    pub(super) async fn replace_in_catalog(
        &mut self,
        old: &CatalogRow,
        new: &CatalogRow,
    ) -> Result<()> {
        let [catalog, shadow, names, _] = self.catalog_trees();
        let transaction = self.transaction();
        transaction.replace(catalog, &new.key, &new.record).await?;
        transaction.replace(shadow, &new.key, &new.record).await?;
        if old.name_key != new.name_key {
            transaction.delete(names, &old.name_key).await?;
            transaction.insert(names, &new.name_key, &new.key).await?;
        }
        Ok(())
    }

    /// Commits the change. After an error nobody knows how it ended: the instance has stopped, and
    /// recovery decides.
    pub(super) async fn commit(&mut self) -> Result<()> {
        if let Some(transaction) = self.transaction.take() {
            self.is_ended = true;
            transaction.commit(Commit::Durable).await?;
        }
        self.is_ended = true;
        self.decide(true);
        Ok(())
    }

    /// Takes the change back if it was not committed.
    async fn end(mut self) -> Result<()> {
        if self.is_ended {
            return Ok(());
        }
        let mut is_told = false;
        if let Some(transaction) = self.transaction.take() {
            is_told = transaction.work().has_logged();
            transaction.rollback().await?;
        }
        // Whoever redoes the log waits for word of the transaction, which may have logged no row.
        if self.is_noted.get() && !is_told {
            let transaction = self.number;
            self.instance.store().log.append(&LogRecord::RolledBack { transaction });
        }
        self.decide(false);
        Ok(())
    }

    /// Says what becomes of the trees that hang on the change.
    fn decide(&self, is_committed: bool) {
        let store = self.instance.store();
        let mut pending = store.pending.borrow_mut();
        pending.end(self.number, is_committed, store.log.tip());
    }
}
