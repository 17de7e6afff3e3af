//! Taking an empty leaf out of its tree, together with branch pages that would be left without a
//! child.

use super::split::blank_last_key;
use super::{Path, Tree};
use crate::PageNumber;
use crate::batch::{Batch, Step};
use crate::edit::Edit;
use crate::page::page_flags;

/// Unlinks the empty leaf at the end of `path`; returns the pages that are free now. The root
/// itself only becomes an empty leaf again.
pub fn unlink_leaf(batch: &mut Batch<'_>, tree: &Tree, path: &Path) -> Step<Vec<PageNumber>> {
    if path.leaf == tree.root {
        return Ok(Vec::new());
    }
    let mut freed = vec![path.leaf];
    for (branch, line) in path.branches.iter().rev() {
        let lines = batch.with(*branch, |view| Ok(view.lines()))?;
        if lines > 1 {
            detach_from_neighbours(batch, path.leaf)?;
            batch.edit(*branch, Edit::Remove { line: *line as u16 })?;
            if line + 1 == lines {
                blank_last_key(batch, *branch)?;
            }
            return Ok(freed);
        }
        if *branch != tree.root {
            freed.push(*branch);
        }
    }
    detach_from_neighbours(batch, path.leaf)?;
    let external = batch.with(tree.root, |view| Ok(view.external()?.to_vec()))?;
    let flags = page_flags::ROOT | page_flags::LEAF | tree.kind;
    batch.edit(
        tree.root,
        Edit::Format {
            object: tree.object,
            flags,
            previous: 0,
            next: 0,
            external,
            nodes: Vec::new(),
        },
    )?;
    Ok(freed)
}

fn detach_from_neighbours(batch: &mut Batch<'_>, leaf: PageNumber) -> Step<()> {
    let (previous, next) = batch.with(leaf, |view| Ok((view.previous(), view.next())))?;
    if previous != 0 {
        let before = batch.with(previous, |view| Ok(view.previous()))?;
        batch.edit(previous, Edit::SetSiblings { previous: before, next })?;
    }
    if next != 0 {
        let after = batch.with(next, |view| Ok(view.next()))?;
        batch.edit(next, Edit::SetSiblings { previous, next: after })?;
    }
    Ok(())
}
