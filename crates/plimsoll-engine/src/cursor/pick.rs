//! Taking from rows what is asked for, where they lie: neither a leaf nor a row is copied for it.

use std::ops::Bound;

// Circle: this is a way of walking, in a file of its own.
use super::{Direction, KeyRange, LEAVES_PER_LOOK, Walk, start_leaf};
use crate::PageNumber;
use crate::batch::{Batch, Step};
use crate::btree::Tree;
use crate::error::Result;
use crate::page::{PageFault, PageView};
use crate::transaction::Work;

/// Keys, and what was taken from their rows.
pub(crate) type Picked<T> = Vec<(Vec<u8>, T)>;

/// What looking at some leaves came to.
struct Look<T> {
    rows: Picked<T>,
    /// The first row of which nothing could be taken ended the look.
    failed: Result<()>,
    /// The last key in range that was met, of a visible row or not.
    last_seen: Option<Vec<u8>>,
    at_end: bool,
}

impl Walk {
    /// Takes from the next rows, at least one and at most `rows_max`; none at the end. Rows that
    /// [`Walk::next`] would give are not held ready for it.
    pub(crate) async fn pick<T>(
        &mut self,
        work: &Work,
        rows_max: usize,
        pick: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Picked<T>> {
        let database = work.store.database(self.tree.database)?;
        while !self.at_end {
            let (tree, direction, range) = (self.tree, self.direction, self.range.clone());
            let look = work.store.read(&database, |batch| {
                look_at_leaves(batch, work, (&tree, &range, direction), rows_max, &pick)
            });
            let look = look.await?;
            look.failed?;
            self.at_end = look.at_end;
            match (look.last_seen, self.direction) {
                (Some(key), Direction::Forward) => self.range.low = Bound::Excluded(key),
                (Some(key), Direction::Backward) => self.range.high = Bound::Excluded(key),
                (None, _) if look.at_end => {}
                (None, _) => self.skip_empty_leaves(work).await?,
            }
            if !look.rows.is_empty() {
                return Ok(look.rows);
            }
        }
        Ok(Vec::new())
    }
}

fn look_at_leaves<T>(
    batch: &Batch<'_>,
    work: &Work,
    (tree, range, direction): (&Tree, &KeyRange, Direction),
    rows_max: usize,
    pick: &impl Fn(&[u8]) -> Result<T>,
) -> Step<Look<T>> {
    let mut look = Look { rows: Vec::new(), failed: Ok(()), last_seen: None, at_end: false };
    let mut leaf = start_leaf(batch, tree, range, direction)?;
    for _ in 0..LEAVES_PER_LOOK {
        let next = batch.with(leaf, |view| {
            look_at_leaf(&view, work, (tree, range, direction), rows_max, pick, &mut look)
        })?;
        let Some(next) = next else {
            return Ok(look);
        };
        leaf = next;
    }
    Ok(look)
}

/// Takes from the rows of a leaf; gives the leaf to go on with, or `None` if the look is over.
fn look_at_leaf<T>(
    view: &PageView<'_>,
    work: &Work,
    (tree, range, direction): (&Tree, &KeyRange, Direction),
    rows_max: usize,
    pick: &impl Fn(&[u8]) -> Result<T>,
    look: &mut Look<T>,
) -> std::result::Result<Option<PageNumber>, PageFault> {
    let (first, end) = lines_in(view, range)?;
    let mut last_line = None;
    for number in 0..end.saturating_sub(first) {
        let line = match direction {
            Direction::Forward => first + number,
            Direction::Backward => end - 1 - number,
        };
        let node = view.node(line)?;
        last_line = Some(line);
        match work.with_visible(tree, &node, pick) {
            None => continue,
            Some(Ok(taken)) => look.rows.push((node.key(), taken)),
            Some(Err(error)) => {
                look.failed = Err(error);
                return Ok(None);
            }
        }
        if look.rows.len() >= rows_max {
            look.last_seen = Some(node.key());
            return Ok(None);
        }
    }
    if let Some(line) = last_line {
        look.last_seen = Some(view.node(line)?.key());
    }
    let (is_beyond, next) = match direction {
        Direction::Forward => (end < view.lines(), view.next()),
        Direction::Backward => (first > 0, view.previous()),
    };
    look.at_end = is_beyond || next == 0;
    Ok((!look.at_end).then_some(next))
}

/// The lines of a leaf within the range: the first, and the one after the last.
fn lines_in(
    view: &PageView<'_>,
    range: &KeyRange,
) -> std::result::Result<(usize, usize), PageFault> {
    let place = |key: &[u8], is_after: bool| -> std::result::Result<usize, PageFault> {
        Ok(match view.find(key)? {
            Ok(line) => line + usize::from(is_after),
            Err(line) => line,
        })
    };
    let first = match &range.low {
        Bound::Included(low) => place(low, false)?,
        Bound::Excluded(low) => place(low, true)?,
        Bound::Unbounded => 0,
    };
    let end = match &range.high {
        Bound::Included(high) => place(high, true)?,
        Bound::Excluded(high) => place(high, false)?,
        Bound::Unbounded => view.lines(),
    };
    Ok((first, end))
}
