//! B+trees over pages: finding, and the structural steps split, root push-down and unlink.
//!
//! The root page of a tree never moves; its external header is the space header. Separators are
//! strict upper bounds of their child; the last entry on the rightmost path of each level has the
//! empty key, which stands for infinity. Leaves are linked both ways, branches are not.

pub mod split;
pub mod unlink;

use std::cmp::Ordering;

use crate::PageNumber;
use crate::batch::{Batch, Step};
use crate::bounds::DEPTH_MAX;
use crate::error::PageDamage;
use crate::page::{PageView, page_flags};

/// A tree: where it starts and what its pages look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// Database number.
    pub database: u8,
    /// Root page.
    pub root: PageNumber,
    /// Object.
    pub object: u32,
    /// Page flags that tell the kind: index, long value, space, or none of them.
    pub kind: u32,
}

impl Tree {
    /// Whether the tree holds extents.
    pub fn is_space(&self) -> bool {
        self.kind & page_flags::SPACE != 0
    }
}

/// The way from the root to a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Branch pages from the root down, each with the line taken.
    pub branches: Vec<(PageNumber, usize)>,
    /// The leaf.
    pub leaf: PageNumber,
}

/// Walks from the root to a leaf; `choose` picks the line of each branch page.
fn walk(
    batch: &Batch<'_>,
    tree: &Tree,
    choose: impl Fn(PageView<'_>) -> Result<usize, crate::page::PageFault>,
) -> Step<Path> {
    let mut branches = Vec::new();
    let mut page = tree.root;
    loop {
        let (object, child) = batch.with(page, |view| {
            if view.is_leaf() {
                return Ok((view.object(), None));
            }
            let line = choose(view)?;
            Ok((view.object(), Some((line, view.child(line)?))))
        })?;
        if object != tree.object {
            return Err(batch
                .damaged(page, PageDamage::WrongObject { found: object, expected: tree.object }));
        }
        match child {
            None => {
                return Ok(Path { branches, leaf: page });
            }
            Some((line, child)) => {
                branches.push((page, line));
                page = child;
            }
        }
        if branches.len() > DEPTH_MAX {
            return Err(batch.damaged(page, PageDamage::Link("the tree is too deep to be one")));
        }
    }
}

/// The way to the leaf where `key` belongs.
pub fn descend(batch: &Batch<'_>, tree: &Tree, key: &[u8]) -> Step<Path> {
    walk(batch, tree, |view| view.find_child(key))
}

/// The way to the first leaf.
pub fn descend_first(batch: &Batch<'_>, tree: &Tree) -> Step<Path> {
    walk(batch, tree, |_| Ok(0))
}

/// The way to the last leaf.
pub fn descend_last(batch: &Batch<'_>, tree: &Tree) -> Step<Path> {
    walk(batch, tree, |view| {
        view.lines().checked_sub(1).ok_or(crate::page::PageFault::NoChild { line: 0 })
    })
}

/// The way to the leaf where the last of all keys before `key` belongs.
pub fn descend_before(batch: &Batch<'_>, tree: &Tree, key: &[u8]) -> Step<Path> {
    walk(batch, tree, |view| {
        let line = view.find_child(key)?;
        let Some(before) = line.checked_sub(1) else { return Ok(line) };
        let ends_there = view.node(before)?.compare_key(key) == Ordering::Equal;
        Ok(if ends_there { before } else { line })
    })
}

/// Where the keys of the leaf of a path end, as the branches say: no key on it or before it is as
/// large as this. `None` on the last leaf.
pub fn end_of_leaf(batch: &Batch<'_>, path: &Path) -> Step<Option<Vec<u8>>> {
    separator(batch, path, Some)
}

/// Where they begin: all keys before this leaf are smaller. `None` on the first leaf.
pub fn start_of_leaf(batch: &Batch<'_>, path: &Path) -> Step<Option<Vec<u8>>> {
    separator(batch, path, |line| line.checked_sub(1))
}

/// The separator in the deepest branch page of a path that has the line of `choose`. An empty one
/// is infinite.
fn separator(
    batch: &Batch<'_>,
    path: &Path,
    choose: impl Fn(usize) -> Option<usize>,
) -> Step<Option<Vec<u8>>> {
    for (page, line) in path.branches.iter().rev() {
        let Some(line) = choose(*line) else { continue };
        let key = batch.with(*page, |view| Ok(view.node(line)?.key()))?;
        if !key.is_empty() {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// The leaf of `key` and the line where it is, or where it would go.
pub fn find(batch: &Batch<'_>, tree: &Tree, key: &[u8]) -> Step<(Path, Result<usize, usize>)> {
    let path = descend(batch, tree, key)?;
    let line = batch.with(path.leaf, |view| view.find(key))?;
    Ok((path, line))
}
