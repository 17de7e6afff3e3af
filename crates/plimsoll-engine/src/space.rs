//! Space: which pages a tree owns and which of them are free.
//!
//! The root page of a tree starts with a 16-byte space header. A small tree keeps a bitmap of up to
//! 32 free pages behind its root ("single extent"). A larger one has two trees of extents: owned
//! (OE) and available (AE, always the page after OE's root). An extent's key is its last page,
//! big-endian, its data the number of pages. A tree's extents are carved out of its parent's
//! available ones and stay in the parent's owned ones; the database root has no parent and grows
//! with the file.
//!
//! Extent trees need pages themselves when they split. They take them from the very extent (or
//! page) being added, so adding space never has to ask for space.

mod release;

pub(crate) use release::release;

use crate::PageNumber;
use crate::batch::{Batch, Step, Stop};
use crate::btree::split::{Coming, make_room};
use crate::btree::{Path, Tree, find};
use crate::edit::{Edit, NewNode};
use crate::error::PageDamage;
use crate::page::{PageMut, SPACE_HEADER_BYTES, page_flags};

const FLAG_MULTIPLE: u32 = 1;
/// Leaves of free space that are looked at before others may run.
const LEAVES_BETWEEN_BREATHS: u32 = 32;
/// A tree asks for at least this many pages at a time.
const EXTENT_PAGES_MIN: u32 = 16;
/// And for no more than this many bytes.
const EXTENT_BYTES_MAX: u32 = 100 << 20;

/// The space header of a root page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceHeader {
    /// Pages the tree got when it was made.
    pub primary_pages: u32,
    /// Root of the parent, 0 for the database root.
    pub parent: PageNumber,
    /// Flags; bit 0: owned and available extents are trees.
    pub flags: u32,
    /// Root of the owned-extent tree, or the bitmap of free pages behind the root.
    pub owned_root_or_bitmap: u32,
}

impl SpaceHeader {
    /// A header of a tree with extent trees.
    pub fn multiple(primary_pages: u32, parent: PageNumber, owned_root: PageNumber) -> Self {
        Self { primary_pages, parent, flags: FLAG_MULTIPLE, owned_root_or_bitmap: owned_root }
    }

    /// A header of a small tree with `primary_pages` pages from its root on, all but the root free.
    pub fn single(primary_pages: u32, parent: PageNumber) -> Self {
        assert!((1..=33).contains(&primary_pages), "a bitmap has 32 bits");
        let bitmap = if primary_pages == 33 { u32::MAX } else { (1u32 << (primary_pages - 1)) - 1 };
        Self { primary_pages, parent, flags: 0, owned_root_or_bitmap: bitmap }
    }

    /// Whether extents are kept in trees.
    pub fn is_multiple(&self) -> bool {
        self.flags & FLAG_MULTIPLE != 0
    }

    /// The bytes on the page.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.primary_pages, self.parent, self.flags, self.owned_root_or_bitmap]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// From the bytes on the page.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |index: usize| {
            Some(u32::from_le_bytes(bytes.get(index * 4..index * 4 + 4)?.try_into().ok()?))
        };
        Some(Self {
            primary_pages: word(0)?,
            parent: word(1)?,
            flags: word(2)?,
            owned_root_or_bitmap: word(3)?,
        })
    }
}

/// A run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Last page.
    pub last: PageNumber,
    /// Number of pages.
    pub pages: u32,
}

impl Extent {
    /// First page.
    pub fn first(self) -> PageNumber {
        self.last + 1 - self.pages
    }
}

fn header_of(batch: &Batch<'_>, root: PageNumber) -> Step<(SpaceHeader, u32, u32)> {
    let found = batch.with(root, |view| {
        Ok((
            SpaceHeader::from_bytes(view.external()?),
            view.object(),
            view.flags() & page_flags::TREE_KIND,
        ))
    })?;
    let (header, object, kind) = found;
    let header = header
        .ok_or_else(|| batch.damaged(root, PageDamage::Link("a root page without space header")))?;
    Ok((header, object, kind))
}

fn extent_trees(batch: &Batch<'_>, header: &SpaceHeader, object: u32, kind: u32) -> (Tree, Tree) {
    let owned = Tree {
        database: batch.database().number(),
        root: header.owned_root_or_bitmap,
        object,
        kind: kind | page_flags::SPACE,
    };
    (owned, Tree { root: owned.root + 1, ..owned })
}

fn extent_at(batch: &Batch<'_>, leaf: PageNumber, line: usize) -> Step<Extent> {
    let (key, data) = batch.with(leaf, |view| {
        let node = view.node(line)?;
        Ok((node.key(), node.data.to_vec()))
    })?;
    // Newer formats may put a pool byte before the page number.
    let last = key
        .len()
        .checked_sub(4)
        .and_then(|start| key[start..].try_into().ok())
        .map(u32::from_be_bytes);
    let pages = data.get(..4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    match (last, pages) {
        (Some(last), Some(pages)) if pages > 0 && pages <= last => Ok(Extent { last, pages }),
        _ => Err(batch.damaged(leaf, PageDamage::Link("an extent that cannot be read"))),
    }
}

/// Allocates one page for the tree with this root.
pub fn allocate(batch: &mut Batch<'_>, root: PageNumber) -> Step<PageNumber> {
    let (header, object, kind) = header_of(batch, root)?;
    if !header.is_multiple() {
        if header.owned_root_or_bitmap != 0 {
            let bit = header.owned_root_or_bitmap.trailing_zeros();
            let bitmap = header.owned_root_or_bitmap & !(1 << bit);
            let external = SpaceHeader { owned_root_or_bitmap: bitmap, ..header }.to_bytes();
            batch.edit(root, Edit::SetExternal { external })?;
            return Ok(root + 1 + bit);
        }
        convert_to_multiple(batch, root, header, object, kind)?;
        return allocate(batch, root);
    }
    let (_, available) = extent_trees(batch, &header, object, kind);
    if let Some((leaf, line, extent)) = first_with(batch, &available, 1)? {
        take_front(batch, leaf, line, extent, 1)?;
        return Ok(extent.first());
    }
    if header.parent == 0 {
        return Err(Stop::Grow { pages: 1 });
    }
    let wanted = growth_pages(batch, &header);
    let extent = take_extent(batch, header.parent, wanted)?;
    add_extent(batch, root, extent)?;
    allocate(batch, root)
}

fn growth_pages(batch: &Batch<'_>, header: &SpaceHeader) -> u32 {
    let pages_max = EXTENT_BYTES_MAX / batch.database().size().bytes() as u32;
    (header.primary_pages / 4).clamp(EXTENT_PAGES_MIN, pages_max)
}

/// The first available extent of at least `pages` pages.
fn first_with(batch: &Batch<'_>, tree: &Tree, pages: u32) -> Step<Option<Found>> {
    let (is_leaf, object) = batch.with(tree.root, |view| Ok((view.is_leaf(), view.object())))?;
    if is_leaf && object == tree.object {
        return match first_on(batch, tree.root, 0, pages)? {
            (None, 1..) => Err(batch.damaged(tree.root, ENDLESS)),
            (found, _) => Ok(found),
        };
    }
    first_in_tree(batch, tree, pages)
}

/// An extent, with its leaf and line.
type Found = (PageNumber, usize, Extent);

const ENDLESS: PageDamage = PageDamage::Link(
    "leaves of free space that lead on behind the last one, or around in a circle",
);

/// The first on a leaf from a line on, and the leaf that is linked behind it.
fn first_on(
    batch: &Batch<'_>,
    leaf: PageNumber,
    line: usize,
    pages: u32,
) -> Step<(Option<Found>, PageNumber)> {
    let (lines, next) = batch.with(leaf, |view| Ok((view.lines(), view.next())))?;
    for line in line..lines {
        let deleted = batch.with(leaf, |view| Ok(view.node(line)?.is_deleted()))?;
        let extent = extent_at(batch, leaf, line)?;
        if !deleted && extent.pages >= pages {
            return Ok((Some((leaf, line, extent)), next));
        }
    }
    Ok((None, next))
}

/// Goes from leaf to leaf by the keys that part them, not by their links: these rise, so the way
/// ends on damaged pages, too. It begins where the last one has ended, and lets others run now and
/// then.
fn first_in_tree(batch: &Batch<'_>, tree: &Tree, pages: u32) -> Step<Option<Found>> {
    let notes = batch.database().free_space();
    let mut from = notes.start(tree.root, pages);
    for looked_at in 0.. {
        let (path, line) = find(batch, tree, &from)?;
        let line = line.unwrap_or_else(|line| line);
        let (found, next) = first_on(batch, path.leaf, line, pages)?;
        let bound = match found {
            Some((.., extent)) => Some(extent.last.to_be_bytes().to_vec()),
            None => upper_bound(batch, &path, next)?,
        };
        let Some(bound) = bound else {
            // Looked at again next time: what is made available behind everything else has no key
            // yet.
            return Ok(None);
        };
        if bound < from || (bound == from && found.is_none()) {
            return Err(batch.damaged(path.leaf, ENDLESS));
        }
        // What lies on drafts is not certain yet.
        if batch.is_empty() {
            notes.note_none_before(tree.root, pages, &bound);
        }
        if found.is_some() {
            return Ok(found);
        }
        if batch.is_empty() && looked_at >= LEAVES_BETWEEN_BREATHS {
            return Err(Stop::Breathe);
        }
        from = bound;
    }
    unreachable!("keys do not rise for ever")
}

/// The key from which on the next leaf takes over, none for the last one.
fn upper_bound(batch: &Batch<'_>, path: &Path, next: PageNumber) -> Step<Option<Vec<u8>>> {
    for (branch, line) in path.branches.iter().rev() {
        let bound = batch.with(*branch, |view| Ok(view.node(*line)?.key()))?;
        if !bound.is_empty() {
            return Ok(Some(bound));
        }
    }
    match next {
        0 => Ok(None),
        _ => Err(batch.damaged(path.leaf, ENDLESS)),
    }
}

fn take_front(
    batch: &mut Batch<'_>,
    leaf: PageNumber,
    line: usize,
    extent: Extent,
    pages: u32,
) -> Step<()> {
    let line = line as u16;
    if extent.pages == pages {
        batch.edit(leaf, Edit::Remove { line })
    } else {
        let data = (extent.pages - pages).to_le_bytes().to_vec();
        batch.edit(leaf, Edit::SetData { line, data })
    }
}

/// Takes a run of `pages` pages out of the available space of the tree `root`, for a child of it.
pub fn take_extent(batch: &mut Batch<'_>, root: PageNumber, pages: u32) -> Step<Extent> {
    let (header, object, kind) = header_of(batch, root)?;
    if !header.is_multiple() {
        convert_to_multiple(batch, root, header, object, kind)?;
        return take_extent(batch, root, pages);
    }
    let (_, available) = extent_trees(batch, &header, object, kind);
    if let Some((leaf, line, extent)) = first_with(batch, &available, pages)? {
        take_front(batch, leaf, line, extent, pages)?;
        return Ok(Extent { last: extent.first() + pages - 1, pages });
    }
    if header.parent == 0 {
        return Err(Stop::Grow { pages });
    }
    // A few pages more than asked for: the extent trees may need them to grow.
    let wanted = growth_pages(batch, &header).max(pages + 8);
    let extent = take_extent(batch, header.parent, wanted)?;
    add_extent(batch, root, extent)?;
    take_extent(batch, root, pages)
}

/// Adds an extent to what the tree `root` owns and has available.
pub fn add_extent(batch: &mut Batch<'_>, root: PageNumber, extent: Extent) -> Step<()> {
    let (header, object, kind) = header_of(batch, root)?;
    let (owned, available) = extent_trees(batch, &header, object, kind);
    let mut rest = extent;
    insert_extent(batch, &owned, Some(extent), &mut rest)?;
    insert_extent(batch, &available, None, &mut rest)
}

/// Gives one page back to the tree `root`.
pub fn free(batch: &mut Batch<'_>, root: PageNumber, page: PageNumber) -> Step<()> {
    let (header, object, kind) = header_of(batch, root)?;
    if !header.is_multiple() {
        let bit = page.checked_sub(root + 1).filter(|bit| *bit < 32);
        let bit = bit.ok_or_else(|| {
            batch.damaged(page, PageDamage::Link("a page outside its tree's extent"))
        })?;
        let bitmap = header.owned_root_or_bitmap | 1 << bit;
        let external = SpaceHeader { owned_root_or_bitmap: bitmap, ..header }.to_bytes();
        return batch.edit(root, Edit::SetExternal { external });
    }
    let (_, available) = extent_trees(batch, &header, object, kind);
    insert_extent(batch, &available, None, &mut Extent { last: page, pages: 1 })
}

/// Puts `whole`, or else what is left of `rest`, into an extent tree, joined with neighbours on the
/// same leaf. Where the tree must grow, it takes pages from the front of `rest`.
fn insert_extent(
    batch: &mut Batch<'_>,
    tree: &Tree,
    whole: Option<Extent>,
    rest: &mut Extent,
) -> Step<()> {
    loop {
        let extent = whole.unwrap_or(*rest);
        if extent.pages == 0 || join_neighbours(batch, tree, extent)? {
            return Ok(());
        }
        let (key, data) = (extent.last.to_be_bytes(), extent.pages.to_le_bytes());
        let (path, line) = find(batch, tree, &key)?;
        let Err(line) = line else {
            return Err(
                batch.damaged(path.leaf, PageDamage::Link("an extent that is there already"))
            );
        };
        let fits = batch.with(path.leaf, |view| {
            let cost = PageMut::node_cost_bytes(view.external()?, view.is_root(), &key, &data);
            Ok(view.has_room_for(cost))
        })?;
        if fits {
            note_available(batch, tree.root, extent.last, extent.pages);
            let node = NewNode { flags: 0, key: key.to_vec(), data: data.to_vec() };
            return batch.edit(path.leaf, Edit::Insert { line: line as u16, node });
        }
        if rest.pages == 0 {
            return Err(Stop::Grow { pages: EXTENT_PAGES_MIN });
        }
        let spare = rest.first();
        rest.pages -= 1;
        make_room(batch, tree, &path, Some(Coming { line, key: &key, data: &data }), spare)?;
    }
}

/// From now on there is an extent of so many pages that ends with this page or later.
fn note_available(batch: &Batch<'_>, root: PageNumber, last: PageNumber, pages: u32) {
    let notes = batch.database().free_space();
    notes.note_some_at(root, pages, &last.to_be_bytes());
}

/// Joins an extent with the one that ends right before it or starts right after it, if they are on
/// the same leaf.
fn join_neighbours(batch: &mut Batch<'_>, tree: &Tree, extent: Extent) -> Step<bool> {
    let key = extent.last.to_be_bytes();
    let (path, line) = find(batch, tree, &key)?;
    let Err(line) = line else { return Ok(false) };
    let lines = batch.with(path.leaf, |view| Ok(view.lines()))?;
    let before = if line > 0 { Some(extent_at(batch, path.leaf, line - 1)?) } else { None };
    let after = if line < lines { Some(extent_at(batch, path.leaf, line)?) } else { None };
    let before = before.filter(|before| before.last + 1 == extent.first());
    let after = after.filter(|after| after.first() == extent.last + 1);
    let before_pages = before.map_or(0, |before| before.pages);
    if before.is_some() || after.is_some() {
        let joined = before_pages + extent.pages + after.map_or(0, |after| after.pages);
        note_available(batch, tree.root, extent.last, joined);
    }
    if let Some(after) = after {
        let data = (after.pages + extent.pages + before_pages).to_le_bytes().to_vec();
        batch.edit(path.leaf, Edit::SetData { line: line as u16, data })?;
        if before.is_some() {
            batch.edit(path.leaf, Edit::Remove { line: line as u16 - 1 })?;
        }
        return Ok(true);
    }
    if before.is_some() {
        let data = (extent.pages + before_pages).to_le_bytes().to_vec();
        batch.edit(path.leaf, Edit::Remove { line: line as u16 - 1 })?;
        let node = NewNode { flags: 0, key: key.to_vec(), data };
        batch.edit(path.leaf, Edit::Insert { line: line as u16 - 1, node })?;
        return Ok(true);
    }
    Ok(false)
}

/// Gives a single-extent tree its two extent trees.
fn convert_to_multiple(
    batch: &mut Batch<'_>,
    root: PageNumber,
    header: SpaceHeader,
    object: u32,
    kind: u32,
) -> Step<()> {
    let extent = take_extent(batch, header.parent, EXTENT_PAGES_MIN)?;
    let owned_root = extent.first();
    let mut owned =
        vec![Extent { last: root + header.primary_pages - 1, pages: header.primary_pages }, extent];
    owned.sort_by_key(|extent| extent.last);
    let mut available = vec![Extent { last: extent.last, pages: extent.pages - 2 }];
    for bit in (0..32).filter(|bit| header.owned_root_or_bitmap & (1 << bit) != 0) {
        available.push(Extent { last: root + 1 + bit, pages: 1 });
    }
    available.sort_by_key(|extent| extent.last);
    format_extent_tree(batch, owned_root, object, kind, &owned)?;
    format_extent_tree(batch, owned_root + 1, object, kind, &available)?;
    let external = SpaceHeader {
        flags: header.flags | FLAG_MULTIPLE,
        owned_root_or_bitmap: owned_root,
        ..header
    };
    batch.edit(root, Edit::SetExternal { external: external.to_bytes() })
}

fn format_extent_tree(
    batch: &mut Batch<'_>,
    root: PageNumber,
    object: u32,
    kind: u32,
    extents: &[Extent],
) -> Step<()> {
    note_available(batch, root, 0, u32::MAX);
    let flags = page_flags::ROOT | page_flags::LEAF | page_flags::SPACE | kind;
    let external = vec![0; SPACE_HEADER_BYTES];
    let node = |extent: &Extent| {
        let (key, data) = (extent.last.to_be_bytes().to_vec(), extent.pages.to_le_bytes().to_vec());
        NewNode { flags: 0, key, data }.laid(flags, &external)
    };
    let nodes = extents.iter().map(node).collect();
    batch.edit(root, Edit::Format { object, flags, previous: 0, next: 0, external, nodes })
}

/// Makes a new tree with `pages` pages out of the space of `parent`: its root, its two extent
/// trees, the rest available.
pub fn create_tree(
    batch: &mut Batch<'_>,
    parent: PageNumber,
    object: u32,
    kind: u32,
    pages: u32,
) -> Step<PageNumber> {
    let extent = take_extent(batch, parent, pages.max(3))?;
    let root = extent.first();
    let external = SpaceHeader::multiple(extent.pages, parent, root + 1).to_bytes();
    batch.edit(
        root,
        Edit::Format {
            object,
            flags: page_flags::ROOT | page_flags::LEAF | kind,
            previous: 0,
            next: 0,
            external,
            nodes: Vec::new(),
        },
    )?;
    format_extent_tree(batch, root + 1, object, kind, &[extent])?;
    let free_pages = extent.pages - 3;
    let available = Extent { last: extent.last, pages: free_pages };
    format_extent_tree(
        batch,
        root + 2,
        object,
        kind,
        if free_pages > 0 { std::slice::from_ref(&available) } else { &[] },
    )?;
    Ok(root)
}

/// Adds pages the file has grown by to the database root. Needs `rest` pages itself only if the
/// extent trees split.
pub fn grow_database(batch: &mut Batch<'_>, first: PageNumber, pages: u32) -> Step<()> {
    add_extent(batch, 1, Extent { last: first + pages - 1, pages })?;
    batch.set_pages_owned(first + pages - 1);
    Ok(())
}
