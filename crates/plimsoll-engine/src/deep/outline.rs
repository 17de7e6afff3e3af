//! What can be said of a page before its keys are read: do its nodes fit together, and is it the
//! kind its place asks for.

use crate::page::{PageFault, PageView, page_flags};

/// The flag bits that follow from a page's place.
pub(super) const KIND_MASK: u32 = page_flags::ROOT
    | page_flags::LEAF
    | page_flags::PARENT_OF_LEAF
    | page_flags::EMPTY
    | page_flags::TREE_KIND;
/// What a page must be, by the page that leads to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Branch,
    Leaf,
}

/// The kind bits a page must have. Where its place leaves a choice, the page's own choice is taken.
pub(super) fn expected_kind(found: u32, kind: u32, depth: usize, level: Level) -> u32 {
    let own_level = found & (page_flags::LEAF | page_flags::PARENT_OF_LEAF);
    let level_bits = match level {
        Level::Leaf => page_flags::LEAF,
        // A leaf here is too high, which its depth tells.
        Level::Branch => own_level,
        Level::Root if own_level == page_flags::LEAF | page_flags::PARENT_OF_LEAF => {
            page_flags::LEAF
        }
        Level::Root => own_level,
    };
    let root_bit = if depth == 0 { page_flags::ROOT } else { 0 };
    kind | root_bit | level_bits
}

/// Checks that the nodes lie inside the used part, do not overlap, and leave as much free as the
/// page counts.
pub(super) fn check_outline(view: &PageView<'_>) -> Result<(), PageFault> {
    let size = view.size();
    let tags = view.lines() + 1;
    let area_bytes = size.bytes() - size.header_bytes();
    let mut spans = Vec::with_capacity(tags);
    // Fails on a page without an external header, too.
    let external_bytes = view.external()?.len();
    let mut used_bytes = tags * 4 + external_bytes;
    for line in 0..view.lines() {
        let outside = PageFault::TagOutside { tag: line + 1 };
        let (offset, length, _) = view.node_place(line).ok_or(outside)?;
        if offset + length > view.data_end() {
            return Err(outside);
        }
        spans.push((offset, offset + length));
        used_bytes += length;
    }
    spans.sort_unstable();
    if spans.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(PageFault::Overlap);
    }
    let found = area_bytes.checked_sub(used_bytes).ok_or(PageFault::Overlap)?;
    if view.free_bytes() != found {
        let counted = view.free_bytes();
        return Err(PageFault::FreeMiscounted { counted, found });
    }
    Ok(())
}
