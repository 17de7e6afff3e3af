//! The pages of a prepared tree: root, space trees, branches and the three kinds of leaves.

use super::PreparedDatabase;
use super::keys::{KEY_PREFIX_BYTES, number_key};
use super::layout::{Below, Leaves, Role, Tree, value_count};
use super::value::{ValueForm, id_of, write_chunk};
use plimsoll_engine::page::page_flags;
use plimsoll_engine::whole_pages::{PageBuilder, space_header};
use plimsoll_engine::{PageNumber, set_checksum};

/// Pages a tree is said to have got when it was made.
const PRIMARY_PAGES: u32 = 64;

impl PreparedDatabase {
    /// Writes page `page`, ready for the disk. Pages past the end are empty.
    ///
    /// # Panics
    /// When `bytes` is not one page, or `page` is 0.
    pub fn page(&self, page: PageNumber, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.plan.page_size.bytes(), "a page needs exactly its size");
        assert!(page > 0, "pages are numbered from 1");
        match self.layout.find(page) {
            Some((_, Role::Free)) => bytes.fill(0),
            Some((tree, role)) => {
                write(self, tree, role, page, bytes);
                set_checksum(bytes, page);
            }
            None => match self.system.pages.get(page as usize - 1) {
                Some(content) => bytes.copy_from_slice(content),
                None => bytes.fill(0),
            },
        }
    }
}

/// Writes page `page` of `tree`, checksum excluded.
fn write(database: &PreparedDatabase, tree: &Tree, role: Role, page: PageNumber, bytes: &mut [u8]) {
    match role {
        Role::Root => write_root(database, tree, bytes),
        Role::Owned => {
            write_space(database, tree, page, Some((tree.last_owned(), tree.owned_pages)), bytes)
        }
        Role::Available => {
            let last_free = (tree.free_first + tree.free_pages).wrapping_sub(1);
            let extent = (tree.free_pages > 0).then_some((last_free, tree.free_pages));
            write_space(database, tree, page, extent, bytes);
        }
        Role::Leaf(leaf) => write_leaf(database, tree, leaf, bytes),
        Role::Branch(level, place) => write_branch(database, tree, level, place, bytes),
        Role::Free => bytes.fill(0),
    }
}

fn builder<'a>(
    database: &PreparedDatabase,
    tree: &Tree,
    page: PageNumber,
    flags: u32,
    external: &[u8],
    bytes: &'a mut [u8],
) -> PageBuilder<'a> {
    let size = database.plan.page_size;
    PageBuilder::new(bytes, size, page, tree.object, flags | tree.leaves.flags(), external)
}

fn write_root(database: &PreparedDatabase, tree: &Tree, bytes: &mut [u8]) {
    // As if the tree had been made small and had grown: it asks for a few pages at a time, not for
    // a quarter of what it has.
    let external = space_header(PRIMARY_PAGES.min(tree.owned_pages), tree.parent, tree.root);
    let level = match (tree.leaf_count, tree.levels.len()) {
        (0, _) => page_flags::LEAF,
        (_, 0) => page_flags::PARENT_OF_LEAF,
        _ => 0,
    };
    let mut page = builder(database, tree, tree.root, page_flags::ROOT | level, &external, bytes);
    push_children(&mut page, tree, &tree.top, 0, tree.top.pages, 0);
    page.finish(database.dbtime(tree.root), 0, 0);
}

fn write_branch(
    database: &PreparedDatabase,
    tree: &Tree,
    level: usize,
    place: u32,
    bytes: &mut [u8],
) {
    let flags = if level == 0 { page_flags::PARENT_OF_LEAF } else { 0 };
    let Below { pages, .. } = tree.levels[level].below;
    let number = tree.levels[level].first + place;
    let prefix = tree.leaves.prefix();
    let mut page = builder(database, tree, number, flags, prefix, bytes);
    let first = place * tree.fan_out;
    let end = pages.min(first + tree.fan_out);
    push_children(&mut page, tree, &tree.levels[level].below, first, end, prefix.len());
    page.finish(database.dbtime(number), 0, 0);
}

/// Points to children `first..end` of a level. The last entry of every branch has an empty key,
/// which means infinity.
fn push_children(
    page: &mut PageBuilder<'_>,
    tree: &Tree,
    below: &Below,
    first: u32,
    end: u32,
    prefix_bytes: usize,
) {
    for child in first..end {
        let number = below.first + child;
        if child + 1 == end {
            page.push_child(0, &[], number);
        } else {
            let leaf = u64::from(child + 1) * below.span;
            tree.leaves.with_first_key(leaf, |separator| {
                page.push_child(prefix_bytes, &separator[prefix_bytes..], number);
            });
        }
    }
}

/// A space tree of at most one extent: key is its last page, data its length.
fn write_space(
    database: &PreparedDatabase,
    tree: &Tree,
    page: PageNumber,
    extent: Option<(PageNumber, u32)>,
    bytes: &mut [u8],
) {
    let flags = page_flags::ROOT | page_flags::LEAF | page_flags::SPACE;
    let mut builder = builder(database, tree, page, flags, &[0; 16], bytes);
    if let Some((last, pages)) = extent {
        builder.push(0, &last.to_be_bytes(), 4).copy_from_slice(&pages.to_le_bytes());
    }
    builder.finish(database.dbtime(page), 0, 0);
}

fn write_leaf(database: &PreparedDatabase, tree: &Tree, leaf: u64, bytes: &mut [u8]) {
    let number = tree.leaf_page(leaf);
    let mut page = builder(database, tree, number, page_flags::LEAF, tree.leaves.prefix(), bytes);
    match tree.leaves {
        Leaves::Records(per_leaf) => push_records(database, &mut page, leaf, per_leaf),
        Leaves::Entries(per_leaf) => push_entries(database, &mut page, leaf, per_leaf),
        Leaves::Values(form) => push_values(database, &mut page, leaf, &form),
    }
    let previous = if leaf > 0 { number - 1 } else { 0 };
    let next = if leaf + 1 < tree.leaf_count { number + 1 } else { 0 };
    page.finish(database.dbtime(number), previous, next);
}

fn push_records(database: &PreparedDatabase, page: &mut PageBuilder<'_>, leaf: u64, per_leaf: u64) {
    let first = leaf * per_leaf;
    for number in (first..database.records().min(first + per_leaf))
        .filter(|number| database.has_record(*number))
    {
        let key = number_key(number);
        let record = page.push(KEY_PREFIX_BYTES, &key[KEY_PREFIX_BYTES..], database.form.bytes());
        database.form.write(number, 0, record);
    }
}

fn push_entries(database: &PreparedDatabase, page: &mut PageBuilder<'_>, leaf: u64, per_leaf: u64) {
    let first = leaf * per_leaf;
    for scatter in first..database.records().min(first + per_leaf) {
        let bookmark = number_key(database.form.permutation.inverse(scatter));
        let key = number_key(scatter);
        page.push(KEY_PREFIX_BYTES, &key[KEY_PREFIX_BYTES..], bookmark.len())
            .copy_from_slice(&bookmark);
    }
}

fn push_values(
    database: &PreparedDatabase,
    page: &mut PageBuilder<'_>,
    leaf: u64,
    form: &ValueForm,
) {
    let Some(long_values) = database.plan.long_values else {
        return;
    };
    let values = value_count(long_values, database.records());
    for part in form.parts(leaf, values) {
        let id = id_of(part.value).to_be_bytes();
        if part.has_head {
            let head = page.push(0, &id, 8);
            head[..4].copy_from_slice(&1u32.to_le_bytes());
            head[4..].copy_from_slice(&long_values.bytes.to_le_bytes());
        }
        for chunk in part.first_chunk..part.first_chunk + part.chunks {
            let mut key = [0; 8];
            key[..4].copy_from_slice(&id);
            key[4..].copy_from_slice(&form.offset_of(chunk).to_be_bytes());
            let data = page.push(0, &key, form.length_of(chunk));
            let number = part.value * long_values.every;
            write_chunk(database.value_key, number, 0, chunk, database.random_percent(), data);
        }
    }
}
