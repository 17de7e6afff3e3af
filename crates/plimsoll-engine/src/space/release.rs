//! Giving back the space of a whole tree.
//!
//! All extents that the tree owns become available to its parent again; what lies on their pages is
//! of no interest any more. That takes several steps where there are many extents, each of which
//! leaves the rest owned by the tree, so it can be gone on with after a crash. The extents that
//! hold the root and the pages of the owned-extent tree itself go last, together: until then they
//! tell what is left.

use std::collections::BTreeSet;

// Circle: giving space back is the counterpart of taking it, in a file of its own.
use super::{
    Extent, SpaceHeader, extent_at, extent_trees, format_extent_tree, header_of, insert_extent,
};
use crate::PageNumber;
use crate::batch::{Batch, Step};
use crate::bounds::EXTENTS_RELEASED_MAX;
use crate::btree::{Tree, find};
use crate::edit::Edit;
use crate::error::PageDamage;
use crate::page::{PageMut, SPACE_HEADER_BYTES, TAG_BYTES, page_flags};
use crate::store::Progress;

/// Extents given back in one step.
const EXTENTS_PER_STEP: usize = 16;
/// So many more of those that tell what is left are given back in the last step.
const EXTENTS_AT_LAST: usize = EXTENTS_RELEASED_MAX - EXTENTS_PER_STEP;

/// What a tree owns.
struct Owned {
    extents: Vec<Extent>,
    /// Pages that tell so.
    pages: BTreeSet<PageNumber>,
}

/// Gives the pages of a tree back to its parent. Nobody may use the tree any more; where it is not
/// there, nothing happens.
pub(crate) fn release(batch: &mut Batch<'_>, root: PageNumber, object: u32) -> Step<Progress<()>> {
    let is_there = batch.with(root, |view| Ok(view.object() == object && view.is_root()))?;
    if !is_there {
        return Ok(Progress::Done(()));
    }
    let (header, _, kind) = header_of(batch, root)?;
    if header.parent == 0 {
        return Err(batch.damaged(root, PageDamage::Link("the database root cannot be released")));
    }
    let (owned_tree, _) = extent_trees(batch, &header, object, kind);
    let mut owned = owned_of(batch, root, &header, &owned_tree)?;
    owned.pages.insert(root);
    let holds_page = |extent: &Extent| {
        let held = owned.pages.range(extent.first()..=extent.last);
        held.count() > 0
    };
    let (last, first): (Vec<Extent>, Vec<Extent>) =
        owned.extents.iter().copied().partition(holds_page);
    if first.len() > EXTENTS_PER_STEP {
        for extent in &first[..EXTENTS_PER_STEP] {
            remove(batch, &owned_tree, *extent)?;
            give(batch, header.parent, *extent)?;
        }
        return Ok(Progress::Again);
    }
    if last.len() > EXTENTS_AT_LAST && fit_one_page(batch, owned.extents.len()) {
        // What is left fits the root of the tree that tells it: its other pages tell nothing more.
        owned.extents.sort_by_key(|extent| extent.last);
        format_extent_tree(batch, owned_tree.root, object, kind, &owned.extents)?;
        return Ok(Progress::Again);
    }
    batch.edit(root, emptied(object))?;
    for extent in first.into_iter().chain(last) {
        give(batch, header.parent, extent)?;
    }
    Ok(Progress::Done(()))
}

/// Whether the root page of an extent tree has room for so many.
fn fit_one_page(batch: &Batch<'_>, extents: usize) -> bool {
    let size = batch.database().size();
    let extent_bytes = PageMut::node_cost_bytes(&[], true, &[0; 4], &[0; 4]);
    let used_bytes = size.header_bytes() + TAG_BYTES + SPACE_HEADER_BYTES;
    used_bytes + extents * extent_bytes <= size.bytes()
}

/// What makes a page a free one.
fn emptied(object: u32) -> Edit {
    Edit::Format {
        object,
        flags: page_flags::LEAF | page_flags::EMPTY,
        previous: 0,
        next: 0,
        external: vec![0; SPACE_HEADER_BYTES],
        nodes: Vec::new(),
    }
}

fn owned_of(batch: &Batch<'_>, root: PageNumber, header: &SpaceHeader, tree: &Tree) -> Step<Owned> {
    let mut owned = Owned { extents: Vec::new(), pages: BTreeSet::new() };
    if !header.is_multiple() {
        let pages = header.primary_pages.max(1);
        let last = root + pages - 1;
        owned.extents.push(Extent { last, pages });
        return Ok(owned);
    }
    let mut waiting = vec![tree.root];
    while let Some(page) = waiting.pop() {
        if !owned.pages.insert(page) {
            return Err(
                batch.damaged(page, PageDamage::Link("a page of owned extents that is met twice"))
            );
        }
        let (object, is_leaf, lines) =
            batch.with(page, |view| Ok((view.object(), view.is_leaf(), view.lines())))?;
        if object != tree.object {
            let (found, expected) = (object, tree.object);
            return Err(batch.damaged(page, PageDamage::WrongObject { found, expected }));
        }
        for line in 0..lines {
            if is_leaf {
                owned.extents.push(extent_at(batch, page, line)?);
            } else {
                waiting.push(batch.with(page, |view| view.child(line))?);
            }
        }
    }
    Ok(owned)
}

fn remove(batch: &mut Batch<'_>, tree: &Tree, extent: Extent) -> Step<()> {
    let (path, line) = find(batch, tree, &extent.last.to_be_bytes())?;
    let Ok(line) = line else {
        return Err(
            batch.damaged(path.leaf, PageDamage::Link("an extent that is not where it was read"))
        );
    };
    batch.edit(path.leaf, Edit::Remove { line: line as u16 })
}

fn give(batch: &mut Batch<'_>, parent: PageNumber, extent: Extent) -> Step<()> {
    let (header, object, kind) = header_of(batch, parent)?;
    if !header.is_multiple() {
        return Err(
            batch.damaged(parent, PageDamage::Link("a tree of one extent has given space away"))
        );
    }
    let (_, available) = extent_trees(batch, &header, object, kind);
    let mut rest = extent;
    insert_extent(batch, &available, None, &mut rest)
}
