//! What a transaction does to rows of a tree, each in one atomic step. Nothing here asks whether
//! another operation of the transaction is under way: the callers have, see [`super::steps`].

use std::ops::RangeInclusive;

// Circle: what a transaction does to rows is methods of its work, in a file of their own.
use super::{UndoEntry, Work};
use crate::PageSize;
use crate::batch::{Batch, Step, Stop};
use crate::btree::split::{Coming, make_room, node_bytes_max, refit_prefix, separator_bytes_max};
use crate::btree::{Path, Tree, find};
use crate::edit::RowChange;
use crate::error::{EngineError, Result};
use crate::log::record::RowRecord;
use crate::page::{KEY_BYTES_MAX, Node, PageMut};
use crate::space::allocate;
use crate::store::Progress;
use crate::versions::{Before, RowKey};

/// A little-endian counter in the data of a row.
pub(crate) struct Counter {
    /// Where it begins.
    pub(crate) at: u32,
    /// Bytes: 4 or 8.
    pub(crate) width: u8,
    /// The numbers it may be; it wraps around where nobody says.
    pub(crate) holds: Option<RangeInclusive<i128>>,
}

impl Counter {
    /// Refuses a sum that the counter cannot hold. Others may take back so much that they added,
    /// and so much that they took away: it must hold what is left then, too.
    fn check_sum(&self, data: &[u8], amount: i64, taken_back: (i128, i128)) -> Result<()> {
        let (start, width) = (self.at as usize, usize::from(self.width));
        let bytes = data.get(start..start + width).filter(|_| matches!(width, 4 | 8));
        let bytes = bytes.ok_or_else(|| {
            let why = "a counter lies outside the row or is not 4 or 8 bytes wide";
            EngineError::BadRow(why.into())
        })?;
        let Some(holds) = &self.holds else {
            return Ok(());
        };
        let is_negative = *holds.start() < 0 && bytes[width - 1] & 0x80 != 0;
        let mut number = [if is_negative { 0xFF } else { 0 }; 16];
        number[..width].copy_from_slice(bytes);
        let number = i128::from_le_bytes(number);
        let sum = number + i128::from(amount);
        if !holds.contains(&sum) {
            return Err(EngineError::BadRow(format!(
                "a counter of {number} cannot be given {amount} more: it holds {} to {}",
                holds.start(),
                holds.end()
            )));
        }
        let (added, taken_away) = taken_back;
        match holds.contains(&(sum - added)) && holds.contains(&(sum + taken_away)) {
            true => Ok(()),
            false => Err(EngineError::WriteConflict),
        }
    }
}

/// Refuses keys whose length no page can say, and those of which a branch page holds too few.
fn check_key(size: PageSize, key: &[u8]) -> Result<()> {
    let of_branch = separator_bytes_max(size.bytes(), size.header_bytes());
    let bytes_max = of_branch.min(KEY_BYTES_MAX);
    let too_long = EngineError::KeyTooLong { bytes: key.len(), bytes_max };
    if key.len() > KEY_BYTES_MAX {
        return Err(too_long);
    }
    if key.len() > of_branch {
        return Err(too_long);
    }
    Ok(())
}

/// Refuses what no page of this size can hold.
fn check_fits(size: PageSize, key: &[u8], data: &[u8]) -> Result<()> {
    let bytes = key.len() + data.len() + 6;
    if bytes > node_bytes_max(size.bytes(), size.header_bytes()) {
        return Err(EngineError::NodeTooLarge { bytes });
    }
    Ok(())
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
    /// The row with this key as this transaction sees it.
    pub(crate) async fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let database = self.store.database(tree.database)?;
        let row = RowKey { tree, key: key.to_vec() };
        self.store
            .read(&database, |batch| {
                let (path, line) = find(batch, &tree, key)?;
                let Ok(line) = line else {
                    return Ok(self.visible(&row, None));
                };
                batch.with(path.leaf, |view| {
                    let node = view.node(line)?;
                    Ok(self.visible(&row, (!node.is_deleted()).then_some(node.data)))
                })
            })
            .await
    }

    /// What `take` makes of the row with this key, as this transaction sees it; the row is not
    /// copied for that.
    pub(crate) async fn get_with<R>(
        &self,
        tree: Tree,
        key: &[u8],
        take: impl Fn(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let database = self.store.database(tree.database)?;
        self.store
            .read(&database, |batch| {
                let (path, line) = find(batch, &tree, key)?;
                let Ok(line) = line else {
                    let key = key.to_vec();
                    let row = self.visible(&RowKey { tree, key }, None);
                    return Ok(row.map(|row| take(&row)));
                };
                batch.with(path.leaf, |view| Ok(self.with_visible(&tree, &view.node(line)?, &take)))
            })
            .await
    }

    /// What `take` makes of the row that this transaction sees where this node lies.
    pub(crate) fn with_visible<R>(
        &self,
        tree: &Tree,
        node: &Node<'_>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let current = (!node.is_deleted()).then_some(node.data);
        if self.store.versions.borrow().rows() == 0 {
            return current.map(take);
        }
        let (tree, key) = (*tree, node.key());
        let row = RowKey { tree, key };
        let has_versions = self.store.versions.borrow().has_versions(&row);
        if has_versions {
            self.visible(&row, current).map(|row| take(&row))
        } else {
            current.map(take)
        }
    }

    /// The first of these keys, which rise, under which this transaction sees no row. Keys on one
    /// leaf cost one descent.
    pub(crate) async fn first_absent(
        &self,
        tree: Tree,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<Option<usize>> {
        let database = self.store.database(tree.database)?;
        self.store.read(&database, |batch| self.first_absent_step(batch, tree, keys)).await
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`EngineError::KeyDuplicate`], [`EngineError::WriteConflict`],
    /// [`EngineError::KeyTooLong`], [`EngineError::NodeTooLarge`], ...
    pub(crate) async fn insert(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let database = self.store.database(tree.database)?;
        check_key(database.size(), key)?;
        check_fits(database.size(), key, data)?;
        let row = RowKey { tree, key: key.to_vec() };
        self.store.change(&database, |batch| self.insert_step(batch, &row, data)).await
    }

    /// Deletes a row.
    pub(crate) async fn delete(&self, tree: Tree, key: &[u8]) -> Result<()> {
        let database = self.store.database(tree.database)?;
        let row = RowKey { tree, key: key.to_vec() };
        self.store.change(&database, |batch| self.delete_step(batch, &row)).await
    }

    /// Replaces the data of a row.
    pub(crate) async fn replace(&self, tree: Tree, key: &[u8], data: &[u8]) -> Result<()> {
        let database = self.store.database(tree.database)?;
        check_fits(database.size(), key, data)?;
        let row = RowKey { tree, key: key.to_vec() };
        self.store.change(&database, |batch| self.replace_step(batch, &row, data)).await
    }

    /// Adds to a counter of a row. Concurrent transactions may do so together.
    pub(crate) async fn add(
        &self,
        tree: Tree,
        key: &[u8],
        counter: &Counter,
        amount: i64,
    ) -> Result<()> {
        let database = self.store.database(tree.database)?;
        let row = RowKey { tree, key: key.to_vec() };
        self.store.change(&database, |batch| self.delta_step(batch, &row, counter, amount)).await
    }

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
            let row = RowKey { tree, key: key.to_vec() };
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

    /// Whether the transaction sees a row where this node lies.
    pub(crate) fn sees(&self, tree: &Tree, node: &Node<'_>) -> bool {
        let is_there = !node.is_deleted();
        if self.store.versions.borrow().rows() == 0 {
            return is_there;
        }
        let row = RowKey { tree: *tree, key: node.key() };
        self.is_visible(&row, is_there.then_some(node.data))
    }

    fn is_visible(&self, row: &RowKey, current: Option<&[u8]>) -> bool {
        let has_versions = self.store.versions.borrow().has_versions(row);
        if has_versions { self.visible(row, current).is_some() } else { current.is_some() }
    }

    pub(crate) fn has_logged(&self) -> bool {
        self.store.writers.borrow().contains(self.status.id)
    }

    fn check(&self, row: &RowKey, by_delta: bool) -> Step<()> {
        let versions = self.store.versions.borrow();
        versions.check_conflict(row, &self.status, self.snapshot, by_delta)?;
        versions.check_room(&self.status)?;
        Ok(())
    }

    pub(super) fn record(
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

    /// Logs and makes a change, keeps the version before it and the way back. Nothing here waits or
    /// fails half-way.
    fn apply(
        &self,
        batch: &Batch<'_>,
        row: &RowKey,
        leaf: u32,
        line: usize,
        change: RowChange,
        before: Before,
    ) -> Step<()> {
        let inverse = change.inverse().expect("transactions make only changes that can be undone");
        let first = self.store.log.tip();
        batch.row(self.record(row, leaf, line, change, false))?;
        self.store.writers.borrow_mut().note(self.status.id, first);
        self.store.versions.borrow_mut().push(row.clone(), self.status.clone(), before);
        self.note_undo(UndoEntry { row: row.clone(), inverse });
        Ok(())
    }

    fn insert_step(&self, batch: &mut Batch<'_>, row: &RowKey, data: &[u8]) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, false)?;
        let before = current_data(batch, &path, line)?;
        if before.is_some() {
            return Err(EngineError::KeyDuplicate { index: None }.into());
        }
        let has_room = batch.with(path.leaf, |view| {
            Ok(match line {
                Ok(line) => data.len() <= view.node(line)?.data.len() + view.free_bytes(),
                Err(_) => {
                    let external = view.external()?;
                    let is_root = view.is_root();
                    let cost = PageMut::node_cost_bytes(external, is_root, &row.key, data);
                    view.has_room_for(cost)
                }
            })
        })?;
        if !has_room {
            let coming = line.err().map(|line| Coming { line, key: &row.key, data });
            return self.make_room(batch, row, &path, coming);
        }
        let (line, change) = match line {
            Ok(line) => {
                let own = self.store.versions.borrow().has_versions_of(row, &self.status);
                let old = batch.with(path.leaf, |view| {
                    Ok(own.then(|| view.node(line).map(|node| node.data.to_vec())))
                })?;
                let old =
                    old.transpose().map_err(|fault| batch.damaged(path.leaf, fault.into()))?;
                (line, RowChange::Revive { data: data.to_vec(), old })
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
            RowChange::Delete { old: Some(before.clone()) },
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

    fn delta_step(
        &self,
        batch: &mut Batch<'_>,
        row: &RowKey,
        counter: &Counter,
        amount: i64,
    ) -> Step<Progress<()>> {
        let (path, line) = find(batch, &row.tree, &row.key)?;
        self.check(row, true)?;
        let (Some(before), Ok(line)) = (current_data(batch, &path, line)?, line) else {
            return Err(EngineError::RowNotFound.into());
        };
        let taken_back =
            self.store.versions.borrow().may_be_taken_back(row, &self.status, counter.at);
        counter.check_sum(&before, amount, taken_back)?;
        let delta = RowChange::Delta { at: counter.at, width: counter.width, amount };
        let before = Before::Deltas(vec![delta.clone()]);
        self.apply(batch, row, path.leaf, line, delta, before)?;
        Ok(Progress::Done(()))
    }

    /// Makes room on a leaf: removes a dead node if there is one, else splits.
    pub(super) fn make_room(
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
    fn dead_node(
        &self,
        batch: &Batch<'_>,
        row: &RowKey,
        path: &Path,
    ) -> Step<Option<(usize, Vec<u8>)>> {
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
            *key != row.key && !versions.has_versions(&RowKey { tree: row.tree, key: key.clone() })
        }))
    }
}
