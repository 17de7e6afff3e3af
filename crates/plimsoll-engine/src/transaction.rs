//! Transactions: snapshot isolation, first writer wins, savepoints, commits that wait for the log or do not.
//!
//! A transaction works on trees and keys; tables are a layer above. Every change is one atomic step: logged, made, versioned and noted for undo
//! without a wait in between. Dropping the future of an operation therefore leaves the transaction as if the operation had not been
//! started; dropping the transaction rolls it back in the background.

mod steps;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::batch::{Batch, Step, Stop};
use crate::btree::split::{Coming, make_room, node_bytes_max, refit_prefix};
use crate::btree::{Path, Tree, find};
use crate::edit::RowChange;
use crate::error::{EngineError, PageDamage, Result};
use crate::log::record::{LogRecord, RowRecord};
use crate::page::PageMut;
use crate::space::allocate;
use crate::store::{Progress, Store};
use crate::versions::{Before, RowKey, TransactionStatus};

/// How a commit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// When the commit record is on stable storage. A transaction that changed nothing waits until everything it may have seen is:
    /// rows that others committed lazily.
    Durable,
    /// At once; a later flush makes it durable.
    Lazy,
}

/// One change to be taken back.
#[derive(Clone, Debug)]
pub struct UndoEntry {
    /// The row.
    pub row: RowKey,
    /// What takes the change back.
    pub inverse: RowChange,
}

/// A place in a transaction to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    changes: usize,
}

pub(crate) struct Work {
    pub(crate) store: Rc<Store>,
    pub(crate) status: Rc<TransactionStatus>,
    snapshot: u64,
    undo: RefCell<Vec<UndoEntry>>,
    /// Changes taken back so far.
    taken_back: Cell<u64>,
    ended: Cell<bool>,
}

/// A transaction. See the module text.
pub struct Transaction {
    work: Option<Rc<Work>>,
    /// While an operation of several steps is under way, or after it was abandoned: the changes there were before it. Nothing can be
    /// committed before they are all there are.
    half_done: Cell<Option<usize>>,
}

impl Transaction {
    /// Begins a transaction that sees everything committed so far.
    pub fn begin(store: &Rc<Store>) -> Transaction {
        let id = store.next_transaction.get();
        store.next_transaction.set(id + 1);
        store.active.set(store.active.get() + 1);
        let snapshot = store.versions.borrow_mut().open_snapshot();
        let status = Rc::new(TransactionStatus {
            id,
            committed: Cell::new(None),
        });
        let work = Work {
            store: store.clone(),
            status,
            snapshot,
            undo: RefCell::default(),
            taken_back: Cell::new(0),
            ended: Cell::new(false),
        };
        Transaction {
            work: Some(Rc::new(work)),
            half_done: Cell::new(None),
        }
    }

    /// A transaction that recovery found unfinished.
    pub(crate) fn unfinished(store: &Rc<Store>, id: u64, undo: Vec<UndoEntry>) -> Transaction {
        let transaction = Self::begin(store);
        let work = transaction.work();
        let status = Rc::new(TransactionStatus {
            id,
            committed: Cell::new(None),
        });
        // Its records lie behind the checkpoint that redo started from: until all is taken back, redo must start there again.
        store.writers.borrow_mut().note(id, store.checkpoint.get());
        // Rows still to be taken back must not look dead to anybody meanwhile.
        for entry in &undo {
            store
                .versions
                .borrow_mut()
                .push(entry.row.clone(), status.clone(), Before::Absent);
        }
        let replaced = Work {
            store: store.clone(),
            status,
            snapshot: work.snapshot,
            undo: RefCell::new(undo),
            taken_back: Cell::new(0),
            ended: Cell::new(false),
        };
        work.ended.set(true);
        Transaction {
            work: Some(Rc::new(replaced)),
            half_done: Cell::new(None),
        }
    }

    pub(crate) fn work(&self) -> &Rc<Work> {
        self.work
            .as_ref()
            .expect("a transaction has its work until it ends")
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.work().status.id
    }

    /// The row with this key as this transaction sees it.
    pub async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        let row = RowKey {
            tree,
            key: key.to_vec(),
        };
        work.store
            .look(&database, |batch| {
                let (path, line) = find(batch, &tree, key)?;
                let Ok(line) = line else {
                    return Ok(work.visible(&row, None));
                };
                batch.with(path.leaf, |view| {
                    let node = view.node(line)?;
                    Ok(work.visible(&row, (!node.is_deleted()).then_some(node.data)))
                })
            })
            .await
    }

    /// The first of these keys, which rise, under which this transaction sees no row. Keys on one leaf cost one descent.
    pub async fn first_absent(&self, tree: Tree, keys: &[impl AsRef<[u8]>]) -> Result<Option<usize>> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        work.store
            .look(&database, |batch| work.first_absent_step(batch, tree, keys))
            .await
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`], [`EngineError::WriteConflict`], [`EngineError::NodeTooLarge`], ...
    pub async fn insert(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        let size = database.size();
        let cost = key.len() + data.len() + 6;
        if cost > node_bytes_max(size.bytes(), size.header_bytes()) {
            return Err(EngineError::NodeTooLarge { bytes: cost });
        }
        let row = RowKey {
            tree,
            key: key.to_vec(),
        };
        work.store
            .change(&database, |batch| work.insert_step(batch, &row, data))
            .await
    }

    /// Deletes a row.
    pub async fn delete(&self, tree: Tree, key: &[u8]) -> Result<()> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        let row = RowKey {
            tree,
            key: key.to_vec(),
        };
        work.store
            .change(&database, |batch| work.delete_step(batch, &row))
            .await
    }

    /// Replaces the data of a row.
    pub async fn replace(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        let size = database.size();
        let cost = key.len() + data.len() + 6;
        if cost > node_bytes_max(size.bytes(), size.header_bytes()) {
            return Err(EngineError::NodeTooLarge { bytes: cost });
        }
        let row = RowKey {
            tree,
            key: key.to_vec(),
        };
        work.store
            .change(&database, |batch| work.replace_step(batch, &row, data))
            .await
    }

    /// Adds to a little-endian counter of `width` bytes at offset `at` of a row's data. Concurrent transactions may do so together.
    pub async fn add(&self, tree: Tree, key: &[u8], at: u32, width: u8, amount: i64) -> Result<()> {
        let work = self.work();
        let database = work.store.database(tree.database)?;
        let row = RowKey {
            tree,
            key: key.to_vec(),
        };
        let delta = RowChange::Delta { at, width, amount };
        work.store
            .change(&database, |batch| work.delta_step(batch, &row, &delta))
            .await
    }

    /// A place to go back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            changes: self.work().undo.borrow().len(),
        }
    }

    /// Takes back everything done since the savepoint.
    pub async fn rollback_to(&self, savepoint: Savepoint) -> Result<()> {
        // Half-way back is a state nobody asked for: if this ends early, the transaction can only be rolled back, or to here again.
        let before = self.begin_steps();
        let since = before.map_or(savepoint.changes, |since| since.min(savepoint.changes));
        self.half_done.set(Some(since));
        self.work().take_back(savepoint.changes).await?;
        // What was half done before the savepoint still is.
        self.half_done
            .set(before.filter(|since| *since < savepoint.changes));
        Ok(())
    }

    /// Commits.
    ///
    /// # Errors
    /// After an error of a durable commit nobody knows whether it is on disk: the instance is poisoned and recovery decides.
    pub async fn commit(mut self, how: Commit) -> Result<()> {
        if self.half_done.get().is_some() {
            self.rollback_work().await?;
            return Err(EngineError::BadRow(
                "an operation of this transaction was abandoned half-way; it was rolled back".into(),
            ));
        }
        let work = self.work.take().expect("a transaction ends once");
        work.ended.set(true);
        let store = work.store.clone();
        let rows: Vec<RowKey> = work.undo.take().into_iter().map(|entry| entry.row).collect();
        if rows.is_empty() {
            work.end();
            return match how {
                Commit::Durable => store.log.make_durable(store.log.tip()).await,
                Commit::Lazy => Ok(()),
            };
        }
        if let Err(error) = store.log.check() {
            work.end();
            return Err(error);
        }
        let appended = store.log.append(&LogRecord::Commit {
            transaction: work.status.id,
        });
        let gone = store.versions.borrow_mut().commit(&work.status, rows);
        store.leave_over(gone);
        let durable = store.log.durable();
        store
            .writers
            .borrow_mut()
            .end(work.status.id, appended.end, durable);
        work.end();
        match how {
            Commit::Durable => store.log.make_durable(appended.end).await,
            Commit::Lazy => Ok(()),
        }
    }

    /// Takes everything back and ends.
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

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if work.ended.get() {
            return;
        }
        if work.undo.borrow().is_empty() && !work.has_logged() {
            work.ended.set(true);
            work.end();
            return;
        }
        let handle = work.store.handle.clone();
        drop(handle.spawn(async move {
            // A failure has poisoned the log; recovery will take the transaction back.
            let _ = work.roll_back().await;
        }));
    }
}

/// The data at a line, unless the node is deleted or absent.
fn current_data(
    batch: &Batch<'_>,
    path: &Path,
    line: std::result::Result<usize, usize>,
) -> Step<Option<Vec<u8>>> {
    let Ok(line) = line else { return Ok(None) };
    batch.with(path.leaf, |view| {
        let node = view.node(line)?;
        Ok((!node.is_deleted()).then(|| node.data.to_vec()))
    })
}

impl Work {
    pub(crate) fn visible(&self, row: &RowKey, current: Option<&[u8]>) -> Option<Vec<u8>> {
        let versions = self.store.versions.borrow();
        if versions.rows() == 0 {
            return current.map(<[u8]>::to_vec);
        }
        versions.visible(row, current, &self.status, self.snapshot)
    }

    fn first_absent_step(
        &self,
        batch: &Batch<'_>,
        tree: Tree,
        keys: &[impl AsRef<[u8]>],
    ) -> Step<Option<usize>> {
        let mut leaf = None;
        for (index, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            let here = match leaf {
                Some(page) => batch.with(page, |view| Ok((view.find(key)?, view.lines())))?,
                None => (Err(0), 0),
            };
            // Only between two of its lines it is certain that a key belongs to a leaf.
            let line = match here {
                (Ok(line), _) => Ok(line),
                (Err(line), lines) if 0 < line && line < lines => Err(line),
                _ => {
                    let (path, line) = find(batch, &tree, key)?;
                    leaf = Some(path.leaf);
                    line
                }
            };
            let page = leaf.expect("the first key was found by a descent");
            let row = RowKey {
                tree,
                key: key.to_vec(),
            };
            let is_there = match line {
                Ok(line) => batch.with(page, |view| {
                    let node = view.node(line)?;
                    Ok(self.is_visible(&row, (!node.is_deleted()).then_some(node.data)))
                })?,
                Err(_) => self.is_visible(&row, None),
            };
            if !is_there {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn is_visible(&self, row: &RowKey, current: Option<&[u8]>) -> bool {
        let has_versions = self.store.versions.borrow().has_versions(row);
        if has_versions {
            self.visible(row, current).is_some()
        } else {
            current.is_some()
        }
    }

    fn has_logged(&self) -> bool {
        self.store.writers.borrow().contains(self.status.id)
    }

    fn check(&self, row: &RowKey, by_delta: bool) -> Step<()> {
        let versions = self.store.versions.borrow();
        versions.check_conflict(row, &self.status, self.snapshot, by_delta)?;
        versions.check_room()?;
        Ok(())
    }

    fn record(
        &self,
        row: &RowKey,
        leaf: u32,
        line: usize,
        change: RowChange,
        compensation: bool,
    ) -> RowRecord {
        RowRecord {
            transaction: self.status.id,
            database: row.tree.database,
            root: row.tree.root,
            object: row.tree.object,
            page: leaf,
            dbtime: 0,
            dbtime_before: 0,
            line: line as u16,
            compensation,
            key: row.key.clone(),
            change,
        }
    }

    /// Logs and makes a change, keeps the version before it and the way back. Nothing here waits or fails half-way.
    fn apply(
        &self,
        batch: &Batch<'_>,
        row: &RowKey,
        leaf: u32,
        line: usize,
        change: RowChange,
        before: Before,
    ) -> Step<()> {
        let inverse = change
            .inverse()
            .expect("transactions make only changes that can be taken back");
        let first = self.store.log.tip();
        batch.row(self.record(row, leaf, line, change, false))?;
        self.store.writers.borrow_mut().note(self.status.id, first);
        self.store
            .versions
            .borrow_mut()
            .push(row.clone(), self.status.clone(), before);
        self.undo.borrow_mut().push(UndoEntry {
            row: row.clone(),
            inverse,
        });
        Ok(())
    }

    fn insert_step(&self, batch: &mut Batch<'_>, row: &RowKey, data: &[u8]) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, false)?;
        let before = current_data(batch, &path, line)?;
        if before.is_some() {
            return Err(EngineError::KeyDuplicate.into());
        }
        let (needed, free) = batch.with(path.leaf, |view| {
            let needed = match line {
                Ok(line) => data.len().saturating_sub(view.node(line)?.data.len()),
                Err(_) => PageMut::node_cost_bytes(view.external()?, view.is_root(), &row.key, data),
            };
            Ok((needed, view.free_bytes()))
        })?;
        if needed > free {
            let coming = line.err().map(|line| Coming {
                line,
                key: &row.key,
                data,
            });
            return self.make_room(batch, row, &path, coming);
        }
        let (line, change) = match line {
            Ok(line) => {
                let own = self.store.versions.borrow().has_versions_of(row, &self.status);
                let old = batch.with(path.leaf, |view| {
                    Ok(own.then(|| view.node(line).map(|node| node.data.to_vec())))
                })?;
                let old = old
                    .transpose()
                    .map_err(|fault| batch.damaged(path.leaf, fault.into()))?;
                (
                    line,
                    RowChange::Revive {
                        data: data.to_vec(),
                        old,
                    },
                )
            }
            Err(line) => (line, RowChange::Insert { data: data.to_vec() }),
        };
        self.apply(batch, row, path.leaf, line, change, Before::Absent)?;
        Ok(Progress::Done(()))
    }

    fn delete_step(&self, batch: &mut Batch<'_>, row: &RowKey) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, false)?;
        let (Some(before), Ok(line)) = (current_data(batch, &path, line)?, line) else {
            return Err(EngineError::RowNotFound.into());
        };
        self.apply(
            batch,
            row,
            path.leaf,
            line,
            RowChange::Delete {
                old: Some(before.clone()),
            },
            Before::Data(before),
        )?;
        Ok(Progress::Done(()))
    }

    fn replace_step(&self, batch: &mut Batch<'_>, row: &RowKey, data: &[u8]) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, false)?;
        let (Some(before), Ok(line)) = (current_data(batch, &path, line)?, line) else {
            return Err(EngineError::RowNotFound.into());
        };
        let free = batch.with(path.leaf, |view| Ok(view.free_bytes()))?;
        if data.len().saturating_sub(before.len()) > free {
            return self.make_room(batch, row, &path, None);
        }
        let change = RowChange::difference(&before, data);
        self.apply(batch, row, path.leaf, line, change, Before::Data(before))?;
        Ok(Progress::Done(()))
    }

    fn delta_step(&self, batch: &mut Batch<'_>, row: &RowKey, delta: &RowChange) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, true)?;
        let (Some(before), Ok(line)) = (current_data(batch, &path, line)?, line) else {
            return Err(EngineError::RowNotFound.into());
        };
        let fits = matches!(delta, RowChange::Delta { at, width, .. }
            if (*at as usize + usize::from(*width)) <= before.len() && (*width == 4 || *width == 8));
        if !fits {
            return Err(EngineError::BadRow(
                "a counter lies outside the row or is not 4 or 8 bytes wide".into(),
            )
            .into());
        }
        self.apply(
            batch,
            row,
            path.leaf,
            line,
            delta.clone(),
            Before::Delta(delta.clone()),
        )?;
        Ok(Progress::Done(()))
    }

    /// Makes room on a leaf: removes a dead node if there is one, else splits.
    fn make_room(
        &self,
        batch: &mut Batch<'_>,
        row: &RowKey,
        path: &Path,
        coming: Option<Coming<'_>>,
    ) -> Step<Progress<()>> {
        if let Some((line, key)) = self.dead_node(batch, row, path)? {
            let dead = RowKey { tree: row.tree, key };
            let record = RowRecord {
                transaction: 0,
                ..self.record(&dead, path.leaf, line, RowChange::Remove, false)
            };
            batch.row(record)?;
            return Ok(Progress::Again);
        }
        let lines = batch.with(path.leaf, |view| Ok(view.lines()))?;
        if lines == 0 || (coming.is_none() && lines < 2) {
            if refit_prefix(batch, &row.tree, path.leaf, &row.key)? {
                return Ok(Progress::Again);
            }
            return Err(Stop::Failed(EngineError::NodeTooLarge {
                bytes: batch.database().size().bytes(),
            }));
        }
        let new_page = allocate(batch, row.tree.root)?;
        make_room(batch, &row.tree, path, coming, new_page)?;
        Ok(Progress::Again)
    }

    /// A node on the leaf that is deleted for everybody, other than the row itself.
    fn dead_node(&self, batch: &Batch<'_>, row: &RowKey, path: &Path) -> Step<Option<(usize, Vec<u8>)>> {
        let deleted = batch.with(path.leaf, |view| {
            let mut deleted = Vec::new();
            for line in 0..view.lines() {
                let node = view.node(line)?;
                if node.is_deleted() {
                    deleted.push((line, node.key()));
                }
            }
            Ok(deleted)
        })?;
        let versions = self.store.versions.borrow();
        Ok(deleted.into_iter().find(|(_, key)| {
            *key != row.key
                && !versions.has_versions(&RowKey {
                    tree: row.tree,
                    key: key.clone(),
                })
        }))
    }

    /// Takes changes back until `keep` are left.
    async fn take_back(&self, keep: usize) -> Result<()> {
        loop {
            let entry = {
                let undo = self.undo.borrow();
                if undo.len() <= keep {
                    return Ok(());
                }
                undo.last().cloned().expect("there is a change to take back")
            };
            let database = self.store.database(entry.row.tree.database)?;
            self.store
                .change(&database, |batch| self.undo_step(batch, &entry))
                .await?;
        }
    }

    fn undo_step(&self, batch: &mut Batch<'_>, entry: &UndoEntry) -> Step<Progress<()>> {
        let (path, line) = find(batch, &entry.row.tree, &entry.row.key)?;
        let Ok(line) = line else {
            let damage = PageDamage::Link("a row to be taken back is not in its tree");
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
        self.taken_back.set(self.taken_back.get() + 1);
        let gone = self.store.versions.borrow_mut().pop(&entry.row, &self.status);
        if gone && matches!(entry.inverse, RowChange::Delete { .. }) {
            self.store.leave_over(vec![entry.row.clone()]);
        }
        Ok(Progress::Done(()))
    }

    async fn roll_back(&self) -> Result<()> {
        let result = self.take_back(0).await;
        if result.is_ok() && self.has_logged() {
            let appended = self.store.log.append(&LogRecord::RolledBack {
                transaction: self.status.id,
            });
            let durable = self.store.log.durable();
            self.store
                .writers
                .borrow_mut()
                .end(self.status.id, appended.end, durable);
        }
        if let Err(error) = &result {
            // Its changes are still on the pages: only recovery can take them back now, so nothing may be closed as clean.
            self.store.log.fail(error);
        }
        self.ended.set(true);
        self.end();
        result
    }

    fn end(&self) {
        let gone = self.store.versions.borrow_mut().close_snapshot(self.snapshot);
        self.store.leave_over(gone);
        self.store.active.set(self.store.active.get() - 1);
        self.store.ended.notify_all();
    }
}
