//! Making room: one structural step with one new page. A full tree may need several steps; each
//! leaves a sound tree, and the caller tries again.
//!
//! A leaf is split so that both sides, with the node to come, are about equally full; at the right
//! end of the tree the new page takes only the new node, which keeps trees filled in key order
//! dense.

use super::{DEPTH_MAX, Path, Tree};
use crate::PageNumber;
use crate::batch::{Batch, Step, Stop};
use crate::edit::{Edit, LaidNode, NewNode};
use crate::error::EngineError;
use crate::page::{PageFault, PageMut, PageView, SPACE_HEADER_BYTES, TAG_BYTES, page_flags};

/// The node that needs room.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'a> {
    /// Its line on the leaf.
    pub line: usize,
    /// Its key.
    pub key: &'a [u8],
    /// Its data.
    pub data: &'a [u8],
}

/// Bytes the largest node may take on a page of this size, its tag included.
pub fn node_bytes_max(page_bytes: usize, header_bytes: usize) -> usize {
    // A root keeps a 16-byte space header, another page a prefix; both have tag 0.
    page_bytes - header_bytes - 4 - 16
}

/// Bytes of the longest separator of which a branch page still holds enough for four children, and
/// so two after a split. Where it held fewer, a tree could grow a level with every few rows.
pub fn separator_bytes_max(page_bytes: usize, header_bytes: usize) -> usize {
    let entry_bytes = |key_bytes: usize| TAG_BYTES + 2 + key_bytes + 4;
    let room_bytes = page_bytes - header_bytes - TAG_BYTES - SPACE_HEADER_BYTES;
    // The last of the four has the empty key.
    (room_bytes - entry_bytes(0)) / 3 - entry_bytes(0)
}

/// Does one step towards room for `coming`, or for a node already there to grow, using the page
/// `new_page`.
pub fn make_room(
    batch: &mut Batch<'_>,
    tree: &Tree,
    path: &Path,
    coming: Option<Coming<'_>>,
    new_page: PageNumber,
) -> Step<()> {
    let mut plan = match coming {
        Some(coming) => plan_leaf_split(batch, path.leaf, coming)?,
        None => plan_even_split(batch, path.leaf)?,
    };
    let mut page = path.leaf;
    for (parent, parent_line) in path.branches.iter().rev() {
        let has_room = batch.with(*parent, |view| {
            let external = view.external()?;
            let cost = PageMut::node_cost_bytes(external, view.is_root(), &plan.separator, &[0; 4]);
            Ok(view.has_room_for(cost))
        })?;
        if has_room {
            return split(batch, tree, page, (*parent, *parent_line), &plan, new_page);
        }
        page = *parent;
        plan = plan_branch_split(batch, page)?;
    }
    if path.branches.len() >= DEPTH_MAX {
        return Err(Stop::Failed(EngineError::TreeTooDeep { levels: DEPTH_MAX + 1 }));
    }
    push_down_root(batch, tree, new_page)
}

/// Makes a leaf anew with `key` as its prefix, for a row that does not fit a leaf whose prefix was
/// another row's; that row may have gone. False if it is so already, or the leaf is a root, which
/// has no prefix.
pub fn refit_prefix(
    batch: &mut Batch<'_>,
    tree: &Tree,
    leaf: PageNumber,
    key: &[u8],
) -> Step<bool> {
    let (prefix, flags, previous, next) = batch.with(leaf, |view| {
        Ok((view.external()?.to_vec(), view.flags(), view.previous(), view.next()))
    })?;
    if leaf == tree.root || prefix == key {
        return Ok(false);
    }
    let flags = flags & (page_flags::LEAF | page_flags::TREE_KIND);
    let nodes = batch.with(leaf, |view| nodes_from(&view, 0, flags, key))?;
    batch.edit(
        leaf,
        Edit::Format { object: tree.object, flags, previous, next, external: key.to_vec(), nodes },
    )?;
    Ok(true)
}

struct SplitPlan {
    /// Nodes from this line on move to the new page.
    line: usize,
    /// Strict upper bound of what stays.
    separator: Vec<u8>,
    /// External header of the new page.
    prefix: Vec<u8>,
}

fn plan_leaf_split(batch: &Batch<'_>, leaf: PageNumber, coming: Coming<'_>) -> Step<SplitPlan> {
    batch.with(leaf, |view| {
        let lines = view.lines();
        let appends = coming.line == lines && view.next() == 0;
        let left_count = if appends { lines } else { balanced(&view, coming)? };
        // `left_count` counts the coming node if it falls to the left.
        let line = if coming.line < left_count { left_count - 1 } else { left_count };
        let key_of = |position: usize| -> Result<Vec<u8>, PageFault> {
            match position.cmp(&coming.line) {
                std::cmp::Ordering::Less => Ok(view.node(position)?.key()),
                std::cmp::Ordering::Equal => Ok(coming.key.to_vec()),
                std::cmp::Ordering::Greater => Ok(view.node(position - 1)?.key()),
            }
        };
        if left_count == 0 {
            // An empty page is full only for a node that fits no page; the caller has refused
            // those.
            return Ok(SplitPlan {
                line: 0,
                separator: coming.key.to_vec(),
                prefix: coming.key.to_vec(),
            });
        }
        let (last_left, first_right) = (key_of(left_count - 1)?, key_of(left_count)?);
        let separator = shortest_above(&last_left, &first_right);
        let right = Some(coming).filter(|coming| coming.line >= left_count);
        let prefix = prefix_for(&view, line, first_right, right)?;
        Ok(SplitPlan { line, separator, prefix })
    })
}

/// Splits a leaf by the nodes it has.
fn plan_even_split(batch: &Batch<'_>, leaf: PageNumber) -> Step<SplitPlan> {
    batch.with(leaf, |view| {
        let line = (view.lines() / 2).max(1);
        let (last_left, first_right) = (view.node(line - 1)?.key(), view.node(line)?.key());
        let separator = shortest_above(&last_left, &first_right);
        let prefix = prefix_for(&view, line, first_right, None)?;
        Ok(SplitPlan { line, separator, prefix })
    })
}

/// The prefix of a new page for the nodes of a page from a line on, and for a node to come. `key`
/// is mostly the best. Where it takes more room than the page has, the nodes may owe more to the
/// prefix they have: with that they fit, as they did before.
fn prefix_for(
    view: &PageView<'_>,
    line: usize,
    key: Vec<u8>,
    coming: Option<Coming<'_>>,
) -> Result<Vec<u8>, PageFault> {
    let moved_bytes = |prefix: &[u8]| {
        (line..view.lines()).try_fold(prefix.len(), |bytes, line| {
            let node = view.node(line)?;
            Ok(bytes + PageMut::node_cost_bytes(prefix, false, &node.key(), node.data))
        })
    };
    let coming_bytes =
        coming.map_or(0, |coming| PageMut::node_cost_bytes(&key, false, coming.key, coming.data));
    let room_bytes = view.size().bytes() - view.size().header_bytes() - TAG_BYTES;
    let bytes = moved_bytes(&key)?;
    let kept = view.external()?;
    let is_better = bytes + coming_bytes > room_bytes && moved_bytes(kept)? < bytes;
    Ok(if is_better { kept.to_vec() } else { key })
}

/// How many nodes (the coming one among them) stay left so that both sides are about equally full;
/// at least one on each side.
fn balanced(view: &PageView<'_>, coming: Coming<'_>) -> Result<usize, PageFault> {
    let total = view.lines() + 1;
    let mut costs = Vec::with_capacity(total);
    for line in 0..view.lines() {
        if line == coming.line {
            costs.push(coming.key.len() + coming.data.len() + 6);
        }
        let node = view.node(line)?;
        costs.push(node.suffix.len() + node.data.len() + 6);
    }
    if coming.line == view.lines() {
        costs.push(coming.key.len() + coming.data.len() + 6);
    }
    let half = costs.iter().sum::<usize>() / 2;
    let mut left_bytes = 0;
    for (count, cost) in costs.iter().enumerate() {
        left_bytes += cost;
        if left_bytes >= half {
            // The node that crosses the middle goes to the emptier side.
            let overshoot = left_bytes - half;
            let keep = if overshoot > cost / 2 { count } else { count + 1 };
            return Ok(keep.clamp(1, total - 1));
        }
    }
    Ok(total - 1)
}

/// The shortest prefix of `above` that is greater than `below`.
pub fn shortest_above(below: &[u8], above: &[u8]) -> Vec<u8> {
    let shared = below.iter().zip(above).take_while(|(left, right)| left == right).count();
    above[..(shared + 1).min(above.len())].to_vec()
}

fn plan_branch_split(batch: &Batch<'_>, branch: PageNumber) -> Step<SplitPlan> {
    batch.with(branch, |view| {
        let line = (view.lines() / 2).max(1);
        let separator = view.node(line - 1)?.key();
        // The branches of databases of other writers may have a prefix.
        let prefix = prefix_for(&view, line, Vec::new(), None)?;
        Ok(SplitPlan { line, separator, prefix })
    })
}

/// The nodes of a page from a line on, as a page with these flags and this prefix keeps them.
fn nodes_from(
    view: &PageView<'_>,
    line: usize,
    flags: u32,
    prefix: &[u8],
) -> Result<Vec<LaidNode>, PageFault> {
    let node_of = |line| {
        let node = view.node(line)?;
        Ok(LaidNode::new(flags, prefix, node.flags, &node.key(), node.data.to_vec()))
    };
    (line..view.lines()).map(node_of).collect()
}

fn split(
    batch: &mut Batch<'_>,
    tree: &Tree,
    page: PageNumber,
    (parent, parent_line): (PageNumber, usize),
    plan: &SplitPlan,
    new_page: PageNumber,
) -> Step<()> {
    let (flags, previous, next, is_leaf) = batch
        .with(page, |view| Ok((view.flags(), view.previous(), view.next(), view.is_leaf())))?;
    let flags = flags & (page_flags::LEAF | page_flags::PARENT_OF_LEAF | page_flags::TREE_KIND);
    let moved = batch.with(page, |view| nodes_from(&view, plan.line, flags, &plan.prefix))?;
    let (new_previous, new_next) = if is_leaf { (page, next) } else { (0, 0) };
    batch.edit(
        new_page,
        Edit::Format {
            object: tree.object,
            flags,
            previous: new_previous,
            next: new_next,
            external: plan.prefix.clone(),
            nodes: moved,
        },
    )?;
    batch.edit(page, Edit::Truncate { line: plan.line as u16 })?;
    if is_leaf {
        batch.edit(page, Edit::SetSiblings { previous, next: new_page })?;
        if next != 0 {
            let after_next = batch.with(next, |view| Ok(view.next()))?;
            batch.edit(next, Edit::SetSiblings { previous: new_page, next: after_next })?;
        }
    } else {
        blank_last_key(batch, page)?;
    }
    let entry =
        NewNode { flags: 0, key: plan.separator.clone(), data: page.to_le_bytes().to_vec() };
    batch.edit(
        parent,
        Edit::SetData { line: parent_line as u16, data: new_page.to_le_bytes().to_vec() },
    )?;
    batch.edit(parent, Edit::Insert { line: parent_line as u16, node: entry })
}

/// Gives the last entry of a branch page the empty key.
pub(super) fn blank_last_key(batch: &mut Batch<'_>, branch: PageNumber) -> Step<()> {
    let (line, data) = batch.with(branch, |view| {
        let line = view.lines().checked_sub(1).ok_or(PageFault::NoChild { line: 0 })?;
        Ok((line, view.node(line)?.data.to_vec()))
    })?;
    batch.edit(branch, Edit::Remove { line: line as u16 })?;
    batch.edit(
        branch,
        Edit::Insert { line: line as u16, node: NewNode { flags: 0, key: Vec::new(), data } },
    )
}

/// Moves everything below the root one level down; the root keeps one entry.
fn push_down_root(batch: &mut Batch<'_>, tree: &Tree, new_page: PageNumber) -> Step<()> {
    let (flags, external, lines) = batch
        .with(tree.root, |view| Ok((view.flags(), view.external()?.to_vec(), view.lines())))?;
    if lines == 0 {
        return Err(Stop::Failed(EngineError::NodeTooLarge {
            bytes: batch.database().size().bytes(),
        }));
    }
    let level = flags & (page_flags::LEAF | page_flags::PARENT_OF_LEAF);
    let prefix = match level & page_flags::LEAF {
        0 => Vec::new(),
        _ => batch.with(tree.root, |view| Ok(view.node(0)?.key()))?,
    };
    let new_flags = level | tree.kind;
    let nodes = batch.with(tree.root, |view| nodes_from(&view, 0, new_flags, &prefix))?;
    batch.edit(
        new_page,
        Edit::Format {
            object: tree.object,
            flags: new_flags,
            previous: 0,
            next: 0,
            external: prefix,
            nodes,
        },
    )?;
    let root_level = if level & page_flags::LEAF != 0 { page_flags::PARENT_OF_LEAF } else { 0 };
    let entry = NewNode { flags: 0, key: Vec::new(), data: new_page.to_le_bytes().to_vec() };
    let flags = page_flags::ROOT | root_level | tree.kind;
    batch.edit(
        tree.root,
        Edit::Format {
            object: tree.object,
            flags,
            previous: 0,
            next: 0,
            nodes: vec![entry.laid(flags, &external)],
            external,
        },
    )
}
