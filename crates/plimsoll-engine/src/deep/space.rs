//! Who owns which pages: reading the space trees, and comparing them with each other and with what
//! was reached.
//!
//! A root carries a space header: pages of the first extent, parent root, flags, and either the
//! root of the owned-extent tree (the available-extent tree is the page after) or, for a tree of
//! one small extent, a bit per free page.

// Circle: which trees there are is said by who asks, above.
use super::KnownTree;
use super::extents::{Extents, Range};
use super::finding::{Finding, Findings};
use super::walk::{Line, Visitor, Walk, Walker};
use crate::catalog::Place;
use crate::page::{Node, page_flags};
use crate::reader::ReadError;
use crate::{PageClass, PageNumber};

const MULTIPLE_EXTENTS: u32 = 1;
const HEADER_BYTES: usize = 16;
/// The variant of later formats has a flag byte in front and a counter behind.
const LONG_HEADER_BYTES: usize = 25;

/// The space of one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    pub owned: Extents,
    pub free: Extents,
    /// Pages of its space trees.
    pages: Vec<PageNumber>,
    /// Stretches listed more than once.
    listed_twice: Vec<Range>,
}

struct SpaceHeader {
    primary_pages: u32,
    parent: PageNumber,
    flags: u32,
    /// Owned-extent tree, or free bits.
    last_word: u32,
}

impl SpaceHeader {
    fn parse(external: &[u8]) -> Option<Self> {
        let bytes = match external.len() {
            HEADER_BYTES => external,
            LONG_HEADER_BYTES => &external[1..1 + HEADER_BYTES],
            _ => return None,
        };
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self { primary_pages: word(0), parent: word(4), flags: word(8), last_word: word(12) })
    }
}

/// Reads the space of every tree, in the same order; `None` where the root is unreadable. A tree
/// whose space is unknown makes its parent's unknown, too: what it owns would look leaked there.
pub(super) async fn read_all(
    walker: &mut Walker,
    trees: &[KnownTree],
) -> Result<Vec<Option<Space>>, ReadError> {
    let mut spaces = Vec::new();
    for tree in trees {
        let space = read_one(walker, tree).await?;
        if space.is_none() {
            let parent = trees.iter().find(|parent| parent.place.root == tree.parent);
            walker.incomplete.extend(parent.map(|parent| parent.place.object));
            walker.incomplete.insert(tree.place.object);
        }
        spaces.push(space);
    }
    Ok(spaces)
}

async fn read_one(walker: &mut Walker, tree: &KnownTree) -> Result<Option<Space>, ReadError> {
    let Place { object, root } = tree.place;
    if root == 0 || root > walker.page_max() {
        // The walk through the tree itself reports it.
        return Ok(None);
    }
    let Some(page) = walker.source.read(vec![root]).next().await? else {
        return Ok(None);
    };
    if !matches!(page.class, PageClass::Ok | PageClass::Correctable { .. }) {
        return Ok(None);
    }
    let problem = |problem| Finding::SpaceHeader { root, object, problem };
    let Some(header) = page.view().external().ok().and_then(SpaceHeader::parse) else {
        walker.findings.push(problem("it has no known length"));
        return Ok(None);
    };
    if header.parent != tree.parent {
        walker.findings.push(problem("it names another parent than the catalog"));
    }
    if header.flags & MULTIPLE_EXTENTS == 0 {
        return Ok(Some(single_extent(root, &header)));
    }
    let Some(available_root) = header.last_word.checked_add(1) else {
        walker.findings.push(problem("it has no owned-extent tree"));
        return Ok(None);
    };
    let (owned, owned_pages) = read_extents(walker, tree, header.last_word).await?;
    let (free, free_pages) = read_extents(walker, tree, available_root).await?;
    if walker.is_incomplete(&[object]) {
        // From half of the extents nothing follows, neither about this tree nor about those above
        // and below.
        let what = format!("which pages object {object} owns, and which of them are free");
        walker.findings.not_checked(what, "a tree of its space could not be read in full");
        return Ok(None);
    }
    let (owned, mut listed_twice) = Extents::of(owned);
    let (free, free_twice) = Extents::of(free);
    listed_twice.extend(free_twice);
    Ok(Some(Space { owned, free, pages: [owned_pages, free_pages].concat(), listed_twice }))
}

fn single_extent(root: PageNumber, header: &SpaceHeader) -> Space {
    let last = root.saturating_add(header.primary_pages.max(1) - 1);
    let bits = (0..u32::BITS).filter(|bit| header.last_word >> bit & 1 == 1);
    let free = bits.map(|bit| root.saturating_add(1 + bit)).map(|page| (page, page));
    Space {
        owned: Extents::of(vec![(root, last)]).0,
        free: Extents::of(free.collect()).0,
        ..Space::default()
    }
}

/// The extents of one space tree and the pages it takes.
async fn read_extents(
    walker: &mut Walker,
    tree: &KnownTree,
    root: PageNumber,
) -> Result<(Vec<Range>, Vec<PageNumber>), ReadError> {
    let place = Place { object: tree.place.object, root };
    let mut list = ExtentList::default();
    walker.visited.clear();
    walker.walk(place, tree.kind | page_flags::SPACE, Walk::First, &mut list).await?;
    if list.has_bad {
        walker.incomplete.insert(place.object);
    }
    let pages = std::mem::take(&mut walker.visited);
    list.ranges.extend(split_buffers(walker, root).await?);
    Ok((list.ranges, pages))
}

/// Pages set aside for the next split of a space tree, noted on its root.
async fn split_buffers(walker: &mut Walker, root: PageNumber) -> Result<Vec<Range>, ReadError> {
    if root == 0 || root > walker.page_max() {
        return Ok(Vec::new());
    }
    let Some(page) = walker.source.read(vec![root]).next().await? else {
        return Ok(Vec::new());
    };
    if !matches!(page.class, PageClass::Ok | PageClass::Correctable { .. }) {
        return Ok(Vec::new());
    }
    let view = page.view();
    let external = view.external().unwrap_or_default();
    let (words, _) = external.as_chunks::<4>();
    let buffers = words.as_chunks::<2>().0.iter().take(2);
    let ranges = buffers.filter_map(|[last, pages]| {
        let (last, pages) = (u32::from_le_bytes(*last), u32::from_le_bytes(*pages));
        range_of(last, pages)
    });
    Ok(ranges.collect())
}

fn range_of(last: PageNumber, pages: u32) -> Option<Range> {
    let first = last.checked_sub(pages.checked_sub(1)?)?;
    (first > 0).then_some((first, last))
}

/// Collects the entries of a space tree: key is the last page, data the number of pages.
#[derive(Default)]
struct ExtentList {
    ranges: Vec<Range>,
    has_bad: bool,
}

impl Visitor for ExtentList {
    fn node(&mut self, at: Line, key: &[u8], node: &Node<'_>, findings: &mut Findings) {
        // Later formats put the number of a pool in front.
        let key = if key.len() == 5 && key[0] & 0x80 != 0 { &key[1..] } else { key };
        let last = <[u8; 4]>::try_from(key).map(u32::from_be_bytes);
        let pages = <[u8; 4]>::try_from(node.data).map(u32::from_le_bytes);
        let range = last.ok().zip(pages.ok()).map(|(last, pages)| (range_of(last, pages), pages));
        match range {
            Some((Some(range), _)) => self.ranges.push(range),
            // An entry of no pages is only kept for its key.
            Some((None, 0)) => {}
            _ => {
                self.has_bad = true;
                let Line { page, line } = at;
                findings.push(Finding::BadExtent { page, line });
            }
        }
    }
}

/// Compares the extents of every tree with its parent's and its siblings'.
pub(super) fn check_all(walker: &mut Walker, trees: &[KnownTree], spaces: &[Option<Space>]) {
    let file = Extents::of(vec![(1, walker.page_max().max(1))]).0;
    let findings = &mut walker.findings;
    for (tree, space) in trees.iter().zip(spaces) {
        let Some(space) = space else { continue };
        let object = tree.place.object;
        for (first, last) in &space.listed_twice {
            findings.push(Finding::ExtentsOverlap { first: *first, last: *last, object });
        }
        for (first, last) in space.free.without(&space.owned).ranges() {
            findings.push(Finding::FreeNotOwned { first: *first, last: *last, object });
        }
        let parent = trees.iter().position(|parent| parent.place.root == tree.parent);
        let parent = parent.and_then(|parent| spaces[parent].as_ref());
        let above = parent.map_or(&file, |parent| &parent.owned);
        for (first, last) in space.owned.without(above).ranges() {
            findings.push(Finding::NotOwnedByParent { first: *first, last: *last, object });
        }
        let free_above = parent.map(|parent| space.owned.within(&parent.free));
        for (first, last) in free_above.unwrap_or_default().ranges() {
            findings.push(Finding::FreeInParent { first: *first, last: *last, object });
        }
    }
    check_siblings(findings, trees, spaces);
}

/// Two children of one parent must not own the same pages.
fn check_siblings(findings: &mut Findings, trees: &[KnownTree], spaces: &[Option<Space>]) {
    for parent in trees {
        let children =
            trees.iter().zip(spaces).filter(|(child, _)| child.parent == parent.place.root);
        let mut before = Extents::default();
        for (child, space) in children {
            let Some(space) = space else { continue };
            let object = child.place.object;
            for (first, last) in space.owned.within(&before).ranges() {
                findings.push(Finding::OwnedTwice { first: *first, last: *last, object });
            }
            before = Extents::of([before.ranges(), space.owned.ranges()].concat()).0;
        }
    }
}

/// Checks that the pages of the space trees are their owner's to use.
pub(super) fn check_space_pages(
    walker: &mut Walker,
    trees: &[KnownTree],
    spaces: &[Option<Space>],
) {
    for (tree, space) in trees.iter().zip(spaces) {
        for page in space.iter().flat_map(|space| &space.pages) {
            walker.check_owner(tree.place, *page);
        }
    }
}

/// Reports pages that are owned but neither free nor reached.
pub(super) async fn check_reached(walker: &mut Walker, trees: &[KnownTree]) {
    for tree in trees {
        let Some((own, free)) = walker.map.of_tree(tree.place.root) else {
            continue;
        };
        let object = tree.place.object;
        if walker.incomplete.contains(&object) {
            let what = format!("whether pages of object {object} are lost");
            walker.findings.not_checked(what, "its tree could not be read in full");
            continue;
        }
        for (first, last) in own.without(free).ranges().to_vec() {
            let mut leak: Option<Range> = None;
            for page in first..=last.min(walker.page_max()) {
                if page % 1024 == 0 {
                    walker.source.spend(64).await;
                }
                if walker.map.is_reached(page) {
                    report_leak(&mut walker.findings, leak.take(), object);
                } else {
                    leak = Some((leak.map_or(page, |(first, _)| first), page));
                }
            }
            report_leak(&mut walker.findings, leak, object);
        }
    }
}

fn report_leak(findings: &mut Findings, leak: Option<Range>, object: u32) {
    if let Some((first, last)) = leak {
        findings.push(Finding::Leaked { first, last, object });
    }
}
