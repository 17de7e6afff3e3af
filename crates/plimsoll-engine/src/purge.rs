//! The purge: nodes that are deleted for everybody are removed, and leaves that became empty are
//! unlinked.
//!
//! Only rows that a committed transaction left deleted are visited; a row that was inserted or
//! replaced has nothing to purge. One visit of a leaf removes all that can go from it. Rows wait in
//! the order of their trees, so that those of one leaf are met together. What finds no place in the
//! queue stays on its page as it is, invisible, until its leaf is visited for another row or is
//! full. So does what lies on a damaged page, or is reached over one.

use plimsoll_io::either;

use crate::batch::{Batch, Step};
use crate::btree::unlink::unlink_leaf;
use crate::btree::{descend, find};
use crate::edit::RowChange;
use crate::error::{EngineError, Result};
// Circle: the purge is methods of an instance, in a file of their own.
use crate::instance::Instance;
use crate::log::record::RowRecord;
use crate::space;
use crate::store::Progress;
use crate::versions::RowKey;

/// How long closing goes on with the purge.
const CLOSING_NS_MAX: u64 = 5 * plimsoll_io::NANOS_PER_SECOND;

/// What a visit of a leaf came to.
struct Visited {
    removed: Vec<RowKey>,
    is_empty: bool,
}

impl Instance {
    /// Purges whenever there is something, until the instance stops.
    pub(crate) async fn purge_regularly(&self) {
        loop {
            let more = self.store().purge.wanted();
            if let Err(error) = self.purge(|| self.store().is_stopping()).await {
                self.store().log.fail(&error);
                return;
            }
            if self.store().is_stopping() {
                return;
            }
            if self.store().purge.is_empty() {
                either(more, self.stopped()).await;
            }
        }
    }

    /// Purges before the end, for as long as a caller of close may be expected to wait.
    pub(crate) async fn purge_for_closing(&self) -> Result<()> {
        let handle = &self.store().handle;
        let until_ns = handle.now() + CLOSING_NS_MAX;
        self.purge(|| handle.now() >= until_ns).await
    }

    async fn purge(&self, is_enough: impl Fn() -> bool) -> Result<()> {
        let store = self.store();
        while !is_enough() {
            let Some(row) = store.purge.queue.borrow_mut().take_next() else {
                return Ok(());
            };
            match self.purge_row(&row).await {
                // It stays on its page as it is. Whoever needs that page is told so, and work on
                // others goes on.
                Ok(()) | Err(EngineError::DamagedPage { .. }) => {}
                Err(error) => return Err(error),
            }
            store.handle.yield_now().await;
        }
        Ok(())
    }

    async fn purge_row(&self, row: &RowKey) -> Result<()> {
        let store = self.store();
        let database = store.database(row.tree.database)?;
        let visited = store.change(&database, |batch| self.visit(batch, row)).await?;
        for removed in &visited.removed {
            store.purge.queue.borrow_mut().remove(removed);
        }
        if !visited.is_empty {
            return Ok(());
        }
        let unlinked = store.change(&database, |batch| {
            if store.pending.borrow().is_gone(&row.tree) {
                return Ok(Progress::Done(()));
            }
            unlink_step(batch, row)
        });
        unlinked.await
    }

    /// Removes what is deleted for everybody from the leaf of a row, if the row is.
    fn visit(&self, batch: &mut Batch<'_>, row: &RowKey) -> Step<Progress<Visited>> {
        let mut visited = Visited { removed: Vec::new(), is_empty: false };
        if self.store().pending.borrow().is_gone(&row.tree) {
            return Ok(Progress::Done(visited));
        }
        let (path, line) = find(batch, &row.tree, &row.key)?;
        if line.is_err() {
            // The process may have ended after the last row of the leaf was removed.
            let lines = batch.with(path.leaf, |view| Ok(view.lines()))?;
            visited.is_empty = lines == 0 && path.leaf != row.tree.root;
            return Ok(Progress::Done(visited));
        }
        let (deleted, lines) = batch.with(path.leaf, |view| {
            let mut deleted = Vec::new();
            for line in 0..view.lines() {
                let node = view.node(line)?;
                if node.is_deleted() {
                    let (tree, key) = (row.tree, node.key());
                    deleted.push((line, RowKey { tree, key }));
                }
            }
            Ok((deleted, view.lines()))
        })?;
        // From the last line on, so that the others keep their numbers.
        for (line, dead) in deleted.into_iter().rev() {
            if self.store().versions.borrow().has_versions(&dead) {
                continue;
            }
            batch.row(removal(&dead, path.leaf, line))?;
            visited.removed.push(dead);
        }
        visited.is_empty = lines > 0 && visited.removed.len() == lines;
        Ok(Progress::Done(visited))
    }
}

fn removal(row: &RowKey, leaf: u32, line: usize) -> RowRecord {
    RowRecord {
        transaction: 0,
        database: row.tree.database,
        root: row.tree.root,
        object: row.tree.object,
        page: leaf,
        dbtime: 0,
        dbtime_before: 0,
        line: line as u16,
        compensation: false,
        key: row.key.clone(),
        change: RowChange::Remove,
    }
}

/// Unlinks the leaf where `row` was, if it is empty.
fn unlink_step(batch: &mut Batch<'_>, row: &RowKey) -> Step<Progress<()>> {
    let path = descend(batch, &row.tree, &row.key)?;
    let lines = batch.with(path.leaf, |view| Ok(view.lines()))?;
    if lines == 0 {
        for page in unlink_leaf(batch, &row.tree, &path)? {
            space::free(batch, row.tree.root, page)?;
        }
    }
    Ok(Progress::Done(()))
}
