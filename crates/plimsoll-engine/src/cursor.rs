//! Walking a tree in key order, either way, within bounds, as one transaction sees it.
//!
//! A cursor looks at one leaf at a time without waiting, so splits and merges between two looks
//! cannot confuse it. Rows it holds ready are those of its transaction's snapshot; when the
//! transaction itself has changed one of them, or put another among them, it looks again.

mod pick;

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Bound, Range};

use crate::PageNumber;
use crate::batch::{Batch, Step};
use crate::btree::{
    Path, Tree, descend, descend_before, descend_first, descend_last, end_of_leaf, start_of_leaf,
};
use crate::error::{PageDamage, Result};
use crate::page::{PageFault, PageView};
use crate::transaction::{Transaction, Work};
use crate::versions::RowKey;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Rising keys.
    Forward,
    /// Falling keys.
    Backward,
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Lower end.
    pub low: Bound<Vec<u8>>,
    /// Upper end.
    pub high: Bound<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> Self {
        Self { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// All keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut after = prefix.to_vec();
        while after.last() == Some(&0xFF) {
            after.pop();
        }
        let high = match after.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(after)
            }
            None => Bound::Unbounded,
        };
        Self { low: Bound::Included(prefix.to_vec()), high }
    }

    /// Whether a cursor that sets out comes nearer to its end when it comes to this separator.
    /// Backward, only keys before it are left then.
    fn is_behind(&self, separator: &[u8], direction: Direction) -> bool {
        match (direction, &self.low, &self.high) {
            (Direction::Forward, Bound::Included(low) | Bound::Excluded(low), _) => {
                separator > &low[..]
            }
            (Direction::Backward, _, Bound::Included(high)) => separator <= &high[..],
            (Direction::Backward, _, Bound::Excluded(high)) => separator < &high[..],
            _ => true,
        }
    }

    /// What a cursor has left that has come to a separator.
    fn rest_from(&self, separator: Vec<u8>, direction: Direction) -> KeyRange {
        match direction {
            Direction::Forward => {
                KeyRange { low: Bound::Included(separator), high: self.high.clone() }
            }
            Direction::Backward => {
                KeyRange { low: self.low.clone(), high: Bound::Excluded(separator) }
            }
        }
    }

    fn holds(&self, key: &[u8]) -> bool {
        let above = match &self.low {
            Bound::Included(low) => key >= &low[..],
            Bound::Excluded(low) => key > &low[..],
            Bound::Unbounded => true,
        };
        let below = match &self.high {
            Bound::Included(high) => key <= &high[..],
            Bound::Excluded(high) => key < &high[..],
            Bound::Unbounded => true,
        };
        above && below
    }
}

/// Leaves looked at in one go before others may run.
const LEAVES_PER_LOOK: usize = 4;

/// See the module text.
pub struct Cursor<'a> {
    transaction: &'a Transaction,
    walk: Walk,
}

impl<'a> Cursor<'a> {
    /// A cursor over the rows of a tree within `range`.
    pub fn new(
        transaction: &'a Transaction,
        tree: Tree,
        range: KeyRange,
        direction: Direction,
    ) -> Self {
        let walk = Walk::new(transaction.work(), tree, range, direction);
        Self { transaction, walk }
    }

    /// The next row: key and data.
    ///
    /// # Errors
    /// [`crate::error::EngineError::TransactionBusy`] while the transaction changes something,
    /// damaged pages, ...
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let work = self.transaction.work();
        let _reading = work.begin_read()?;
        self.walk.next(work).await
    }
}

/// A cursor that does not ask whether its transaction is busy: part of an operation that has.
pub(crate) struct Walk {
    tree: Tree,
    range: KeyRange,
    direction: Direction,
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Where it set out from.
    start: Bound<Vec<u8>>,
    /// The key given last.
    given: Option<Vec<u8>>,
    /// How far the transaction had come when they were looked at.
    looked: (usize, u64),
    at_end: bool,
}

impl Walk {
    pub(crate) fn new(work: &Work, tree: Tree, range: KeyRange, direction: Direction) -> Self {
        let start = match direction {
            Direction::Forward => range.low.clone(),
            Direction::Backward => range.high.clone(),
        };
        Self {
            tree,
            range,
            direction,
            ready: VecDeque::new(),
            start,
            given: None,
            looked: work.progress(),
            at_end: false,
        }
    }

    pub(crate) async fn next(&mut self, work: &Work) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.forget_what_changed(work);
        while self.ready.is_empty() && !self.at_end {
            self.look_on(work).await?;
        }
        let row = self.ready.pop_front();
        if let Some((key, _)) = &row {
            let given = self.given.get_or_insert_default();
            given.clear();
            given.extend_from_slice(key);
        }
        Ok(row)
    }

    /// Counts the rows ahead where they lie, `limit` at most. Goes forward, from the start of the
    /// range.
    pub(crate) async fn count(mut self, work: &Work, limit: u64) -> Result<u64> {
        let database = work.store.database(self.tree.database)?;
        let mut count = 0;
        while !self.at_end && count < limit {
            let (tree, range) = (self.tree, self.range.clone());
            let (found, last_seen, at_end) = work
                .store
                .read(&database, |batch| {
                    let mut leaf = start_leaf(batch, &tree, &range, Direction::Forward)?;
                    let (mut found, mut last_seen) = (0, None);
                    for _ in 0..LEAVES_PER_LOOK {
                        let counted = count_leaf(batch, leaf, &tree, &range, work)?;
                        found += counted.rows;
                        last_seen = counted.last_seen.or(last_seen);
                        if counted.beyond || counted.next == 0 {
                            return Ok((found, last_seen, true));
                        }
                        leaf = counted.next;
                    }
                    Ok((found, last_seen, false))
                })
                .await?;
            count += found;
            self.at_end = at_end;
            match last_seen {
                Some(key) => self.range.low = Bound::Excluded(key),
                None if at_end => {}
                None => self.skip_empty_leaves(work).await?,
            }
        }
        Ok(count.min(limit))
    }

    /// Goes back to the row given last, or to where it set out, if the transaction has changed
    /// anything ahead of that since it was looked at.
    fn forget_what_changed(&mut self, work: &Work) {
        let is_ahead = |key: &[u8]| match (&self.given, self.direction) {
            (None, _) => true,
            (Some(given), Direction::Forward) => key > &given[..],
            (Some(given), Direction::Backward) => key < &given[..],
        };
        let changed = work.has_changed(self.looked, &self.tree, is_ahead);
        self.looked = work.progress();
        if !changed {
            return;
        }
        let from = match &self.given {
            Some(given) => Bound::Excluded(given.clone()),
            None => self.start.clone(),
        };
        match self.direction {
            Direction::Forward => self.range.low = from,
            Direction::Backward => self.range.high = from,
        }
        self.ready.clear();
        self.at_end = false;
    }

    async fn look_on(&mut self, work: &Work) -> Result<()> {
        let database = work.store.database(self.tree.database)?;
        let (tree, direction, range) = (self.tree, self.direction, self.range.clone());
        let (rows, last_seen, at_end) = work
            .store
            .read(&database, |batch| {
                let mut rows = VecDeque::new();
                let mut last_seen = None;
                let mut leaf = start_leaf(batch, &tree, &range, direction)?;
                for _ in 0..LEAVES_PER_LOOK {
                    let found = leaf_rows(batch, leaf, &range, direction)?;
                    for (key, current) in found.rows {
                        let row = RowKey { tree, key };
                        if let Some(data) = work.visible(&row, current.as_deref()) {
                            rows.push_back((row.key.clone(), data));
                        }
                        last_seen = Some(row.key);
                    }
                    if found.beyond || found.next == 0 {
                        return Ok((rows, last_seen, true));
                    }
                    leaf = found.next;
                    if !rows.is_empty() {
                        break;
                    }
                }
                Ok((rows, last_seen, false))
            })
            .await?;
        self.ready = rows;
        self.looked = work.progress();
        self.at_end = at_end;
        if let Some(key) = last_seen {
            match self.direction {
                Direction::Forward => self.range.low = Bound::Excluded(key),
                Direction::Backward => self.range.high = Bound::Excluded(key),
            }
        } else if !at_end {
            // Several leaves without a node in range: look on from where the next leaf begins.
            self.skip_empty_leaves(work).await?;
        }
        Ok(())
    }

    /// Walks over leaves without a node in range, to where the branches say that the next leaf
    /// begins. However many there are, a look needs no more than a few of them in memory. The
    /// branches of a damaged tree may lead back.
    async fn skip_empty_leaves(&mut self, work: &Work) -> Result<()> {
        let database = work.store.database(self.tree.database)?;
        loop {
            let (tree, direction, range) = (self.tree, self.direction, self.range.clone());
            let look = work.store.read(&database, |batch| {
                let mut range = range.clone();
                for _ in 0..LEAVES_PER_LOOK {
                    match skip_empty_leaf(batch, &tree, &range, direction)? {
                        Skipped::Not => return Ok((range, true, false)),
                        Skipped::ToEnd => return Ok((range, true, true)),
                        Skipped::UpTo(ahead) => range = ahead,
                    }
                }
                Ok((range, false, false))
            });
            let (range, is_over, at_end) = look.await?;
            (self.range, self.at_end) = (range, at_end);
            if is_over {
                return Ok(());
            }
        }
    }
}

/// What came of skipping a leaf.
enum Skipped {
    /// It has nodes in range.
    Not,
    /// Nothing of the range lies behind it.
    ToEnd,
    /// This is left of the range.
    UpTo(KeyRange),
}

fn skip_empty_leaf(
    batch: &Batch<'_>,
    tree: &Tree,
    range: &KeyRange,
    direction: Direction,
) -> Step<Skipped> {
    let path = start_path(batch, tree, range, direction)?;
    let found = leaf_rows(batch, path.leaf, range, direction)?;
    if !found.rows.is_empty() {
        return Ok(Skipped::Not);
    }
    if found.beyond {
        return Ok(Skipped::ToEnd);
    }
    let separator = match direction {
        Direction::Forward => end_of_leaf(batch, &path)?,
        Direction::Backward => start_of_leaf(batch, &path)?,
    };
    let Some(separator) = separator else {
        if found.next == 0 {
            return Ok(Skipped::ToEnd);
        }
        let why = "its neighbours go on behind the last leaf, as in a circle";
        return Err(batch.damaged(path.leaf, PageDamage::Link(why)));
    };
    if !range.is_behind(&separator, direction) {
        return Err(batch.damaged(path.leaf, PageDamage::Link("the branches lead elsewhere")));
    }
    if !range.holds(&separator) {
        return Ok(Skipped::ToEnd);
    }
    Ok(Skipped::UpTo(range.rest_from(separator, direction)))
}

fn start_leaf(
    batch: &Batch<'_>,
    tree: &Tree,
    range: &KeyRange,
    direction: Direction,
) -> Step<PageNumber> {
    Ok(start_path(batch, tree, range, direction)?.leaf)
}

fn start_path(
    batch: &Batch<'_>,
    tree: &Tree,
    range: &KeyRange,
    direction: Direction,
) -> Step<Path> {
    let bound = match direction {
        Direction::Forward => &range.low,
        Direction::Backward => &range.high,
    };
    match (bound, direction) {
        (Bound::Excluded(key), Direction::Backward) => descend_before(batch, tree, key),
        (Bound::Included(key) | Bound::Excluded(key), _) => descend(batch, tree, key),
        (Bound::Unbounded, Direction::Forward) => descend_first(batch, tree),
        (Bound::Unbounded, Direction::Backward) => descend_last(batch, tree),
    }
}

struct LeafCount {
    /// Rows in range that the transaction sees.
    rows: u64,
    /// The last key in range, of a row or not.
    last_seen: Option<Vec<u8>>,
    next: PageNumber,
    beyond: bool,
}

fn count_leaf(
    batch: &Batch<'_>,
    leaf: PageNumber,
    tree: &Tree,
    range: &KeyRange,
    work: &Work,
) -> Step<LeafCount> {
    batch.with(leaf, |view| {
        let (mut rows, mut last_line, mut beyond) = (0, None, false);
        for line in 0..view.lines() {
            let node = view.node(line)?;
            let is_low = match &range.low {
                Bound::Included(low) => node.compare_key(low) == Ordering::Less,
                Bound::Excluded(low) => node.compare_key(low) != Ordering::Greater,
                Bound::Unbounded => false,
            };
            beyond = match &range.high {
                Bound::Included(high) => node.compare_key(high) == Ordering::Greater,
                Bound::Excluded(high) => node.compare_key(high) != Ordering::Less,
                Bound::Unbounded => false,
            };
            if beyond {
                break;
            }
            if !is_low {
                last_line = Some(line);
                rows += u64::from(work.sees(tree, &node));
            }
        }
        let last_seen = match last_line {
            Some(line) => Some(view.node(line)?.key()),
            None => None,
        };
        Ok(LeafCount { rows, last_seen, next: view.next(), beyond })
    })
}

struct LeafRows {
    /// Keys in range with their data, `None` if flagged deleted.
    rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The neighbour in the direction of travel.
    next: PageNumber,
    /// The range ends on this leaf.
    beyond: bool,
}

fn leaf_rows(
    batch: &Batch<'_>,
    leaf: PageNumber,
    range: &KeyRange,
    direction: Direction,
) -> Step<LeafRows> {
    batch.with(leaf, |view| {
        let (mut rows, mut beyond) = (Vec::new(), false);
        let lines = lines_in_range(&view, range, direction)?;
        let count = lines.len();
        for step in 0..count {
            let line = match direction {
                Direction::Forward => lines.start + step,
                Direction::Backward => lines.end - 1 - step,
            };
            let node = view.node(line)?;
            let key = node.key();
            if !range.holds(&key) {
                // Lines are sorted, and begin within the range: this one lies behind it.
                beyond = true;
                break;
            }
            let data = (!node.is_deleted()).then(|| node.data.to_vec());
            rows.push((key, data));
        }
        let next = match direction {
            Direction::Forward => view.next(),
            Direction::Backward => view.previous(),
        };
        Ok(LeafRows { rows, next, beyond })
    })
}

/// The lines of a leaf from the end of the range where a cursor sets out: those before it are not
/// even looked at.
fn lines_in_range(
    view: &PageView<'_>,
    range: &KeyRange,
    direction: Direction,
) -> std::result::Result<Range<usize>, PageFault> {
    let lines = view.lines();
    Ok(match (direction, &range.low, &range.high) {
        (Direction::Forward, Bound::Included(key), _) => line_of(view.find(key)?)..lines,
        (Direction::Forward, Bound::Excluded(key), _) => line_after(view.find(key)?)..lines,
        (Direction::Backward, _, Bound::Included(key)) => 0..line_after(view.find(key)?),
        (Direction::Backward, _, Bound::Excluded(key)) => 0..line_of(view.find(key)?),
        (_, _, _) => 0..lines,
    })
}

fn line_of(found: std::result::Result<usize, usize>) -> usize {
    found.unwrap_or_else(|line| line)
}

fn line_after(found: std::result::Result<usize, usize>) -> usize {
    found.map_or_else(|line| line, |line| line + 1)
}
