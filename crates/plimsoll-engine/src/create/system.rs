//! The pages before the table: database root, catalog with its shadow and indexes, object numbers,
//! sort-order versions. They are few and irregular, so they are built once, when the database is
//! worked out, by loading small trees. The page map is the one of a fresh database (see `catalog`).

use std::collections::BTreeMap;

use crate::catalog::{PlacedTable, catalog_rows, locale_rows, object_rows, system};
use crate::page::{PageBuilder, PageMut, node_bytes, page_flags};
use crate::{PageNumber, PageSize, set_checksum};

const TAG_BYTES: usize = 4;
/// Catalog leaves are filled so far; rows can be added to them.
const FILL_PERCENT: usize = 90;
/// What a single-extent tree of one page says about its space.
const ONE_PAGE: [u8; 16] = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Pages MSysObjects owns, and its shadow.
const CATALOG_PAGES: std::ops::RangeInclusive<PageNumber> = 4..=23;
const CATALOG_SPARE_FIRST: PageNumber = 13;
const SHADOW_PAGES: std::ops::RangeInclusive<PageNumber> = 24..=28;
const SHADOW_SPARE_FIRST: PageNumber = 27;

/// Key and data.
type Entry = (Vec<u8>, Vec<u8>);

/// Database time of page 0 of a fresh database, were there one; every page is a little younger than
/// the one before.
pub const FRESH_DBTIME_FIRST: u64 = 0x40;
/// Flag of a space header: the tree owns extents listed in its own space trees.
const MULTIPLE_EXTENTS: u32 = 1;

/// The external header of a root whose owned-extent tree is the next page.
pub fn space_header(owned_pages: u32, parent: PageNumber, root: PageNumber) -> [u8; 16] {
    let mut header = [0; 16];
    for (place, word) in [owned_pages, parent, MULTIPLE_EXTENTS, root + 1].into_iter().enumerate() {
        header[place * 4..place * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// The pages of a fresh database that lie before its first user table.
#[derive(Clone, Debug, Default)]
pub struct SystemPages {
    /// The finished pages, from page 1 on.
    pub pages: Vec<Vec<u8>>,
}

impl SystemPages {
    /// The system pages of a database of `pages` pages whose catalog lists these tables and whose
    /// root has these extents (last page, pages) available.
    pub fn new(
        size: PageSize,
        pages: u32,
        tables: &[PlacedTable],
        available: &[(PageNumber, u32)],
    ) -> Self {
        let mut loader = Loader { size, pages: BTreeMap::new() };
        loader.load_database_root(pages, available);
        loader.load_catalog(tables);
        let object_entries = object_rows(tables, size);
        let locale_entries = locale_rows(size);
        for (object, root, entries) in [
            (system::OBJECT_IDS_OBJECT, system::OBJECT_IDS_ROOT, object_entries),
            (system::LOCALES_OBJECT, system::LOCALES_ROOT, locale_entries),
        ] {
            loader.load_tree(object, root, 0, &ONE_PAGE, &entries, &mut Spare::none());
        }
        let empty = vec![0; size.bytes()];
        let pages = (1..system::USER_PAGE_MIN)
            .map(|page| loader.pages.remove(&page).unwrap_or_else(|| empty.clone()))
            .collect();
        Self { pages }
    }
}

/// Pages a tree may still take.
struct Spare {
    next: PageNumber,
    end: PageNumber,
}

impl Spare {
    fn none() -> Self {
        Self { next: 1, end: 1 }
    }

    fn take(&mut self) -> PageNumber {
        assert!(self.next < self.end, "the catalog of a prepared table fits its pages");
        self.next += 1;
        self.next - 1
    }
}

struct Loader {
    size: PageSize,
    pages: BTreeMap<PageNumber, Vec<u8>>,
}

impl Loader {
    fn load_database_root(&mut self, pages: u32, available: &[(PageNumber, u32)]) {
        let external = space_header(pages, 0, system::DATABASE_ROOT);
        let object = system::DATABASE_OBJECT;
        self.load_tree(object, system::DATABASE_ROOT, 0, &external, &[], &mut Spare::none());
        self.load_space(object, system::DATABASE_ROOT, 0, &[(pages, pages)], available);
    }

    fn load_catalog(&mut self, tables: &[PlacedTable]) {
        let mut rows: Vec<_> =
            tables.iter().flat_map(|placed| catalog_rows(placed, self.size)).collect();
        rows.sort_by(|left, right| left.key.cmp(&right.key));
        let by = |key: &dyn Fn(&crate::catalog::CatalogRow) -> Option<Vec<u8>>| -> Vec<Entry> {
            let mut entries: Vec<_> =
                rows.iter().filter_map(|row| Some((key(row)?, row.key.clone()))).collect();
            entries.sort();
            entries
        };
        let names = by(&|row| Some(row.name_key.clone()));
        let roots = by(&|row| row.root_key.clone());
        let records: Vec<Entry> =
            rows.iter().map(|row| (row.key.clone(), row.record.clone())).collect();

        let mut spare = Spare { next: CATALOG_SPARE_FIRST, end: CATALOG_PAGES.end() + 1 };
        let root = system::CATALOG_ROOT;
        let external = space_header(CATALOG_PAGES.count() as u32, 1, root);
        self.load_tree(system::CATALOG_OBJECT, root, 0, &external, &records, &mut spare);
        self.load_catalog_index(
            system::NAME_INDEX_OBJECT,
            system::NAME_INDEX_ROOT,
            &names,
            &mut spare,
        );
        self.load_catalog_index(
            system::ROOT_INDEX_OBJECT,
            system::ROOT_INDEX_ROOT,
            &roots,
            &mut spare,
        );
        self.load_extent(system::CATALOG_OBJECT, root, CATALOG_PAGES, spare.next);

        let mut spare = Spare { next: SHADOW_SPARE_FIRST, end: SHADOW_PAGES.end() + 1 };
        let root = system::SHADOW_ROOT;
        let external = space_header(SHADOW_PAGES.count() as u32, 1, root);
        self.load_tree(system::SHADOW_OBJECT, root, 0, &external, &records, &mut spare);
        self.load_extent(system::SHADOW_OBJECT, root, SHADOW_PAGES, spare.next);
    }

    /// An index of three pages of its own, which takes more of the catalog's where it needs them.
    fn load_catalog_index(
        &mut self,
        object: u32,
        root: PageNumber,
        entries: &[Entry],
        spare: &mut Spare,
    ) {
        let external = space_header(3, system::CATALOG_ROOT, root);
        let first = spare.next;
        self.load_tree(object, root, page_flags::INDEX, &external, entries, spare);
        let mut owned = vec![(root + 2, 3)];
        if spare.next > first {
            owned.push((spare.next - 1, spare.next - first));
        }
        self.load_space(object, root, page_flags::INDEX, &owned, &[]);
    }

    /// Space trees of a table that owns one range, of which everything from `free_first` on is
    /// free.
    fn load_extent(
        &mut self,
        object: u32,
        root: PageNumber,
        pages: std::ops::RangeInclusive<PageNumber>,
        free_first: PageNumber,
    ) {
        let (last, count) = (*pages.end(), pages.count() as u32);
        let free_pages = last + 1 - free_first;
        let free = (free_pages > 0).then_some((last, free_pages));
        self.load_space(object, root, 0, &[(last, count)], free.as_slice());
    }

    /// The two space trees behind a root; extents are (last page, pages).
    fn load_space(
        &mut self,
        object: u32,
        root: PageNumber,
        kind: u32,
        owned: &[(PageNumber, u32)],
        free: &[(PageNumber, u32)],
    ) {
        for (page, extents) in [(root + 1, owned), (root + 2, free)] {
            let entries: Vec<Entry> = extents
                .iter()
                .map(|(last, pages)| (last.to_be_bytes().to_vec(), pages.to_le_bytes().to_vec()))
                .collect();
            let flags = kind | page_flags::SPACE;
            self.load_tree(object, page, flags, &[0; 16], &entries, &mut Spare::none());
        }
    }

    /// Loads a tree of a root and, where it does not suffice, one level of leaves.
    fn load_tree(
        &mut self,
        object: u32,
        root: PageNumber,
        kind: u32,
        external: &[u8],
        entries: &[Entry],
        spare: &mut Spare,
    ) {
        let (size, flags) = (self.size, kind | page_flags::ROOT);
        let area_bytes = size.bytes() - size.header_bytes() - TAG_BYTES;
        let entries_bytes: usize = entries
            .iter()
            .map(|(key, data)| PageMut::node_cost_bytes(external, true, key, data))
            .sum();
        if entries_bytes + external.len() <= area_bytes {
            let pushed = Page { object, flags: flags | page_flags::LEAF, external };
            self.add(root, &pushed, entries, (0, 0));
            return;
        }
        let leaves = self.split(entries, area_bytes * FILL_PERCENT / 100);
        let pages: Vec<PageNumber> = leaves.iter().map(|_| spare.take()).collect();
        let mut children = Vec::new();
        for (place, leaf) in leaves.iter().enumerate() {
            let next = pages.get(place + 1).copied().unwrap_or(0);
            let previous = place.checked_sub(1).map_or(0, |before| pages[before]);
            let leaf_page = Page { object, flags: kind | page_flags::LEAF, external: &leaf[0].0 };
            self.add(pages[place], &leaf_page, leaf, (previous, next));
            let separator = leaves.get(place + 1).map_or(Vec::new(), |after| {
                shortest_separator(&leaf[leaf.len() - 1].0, &after[0].0)
            });
            children.push((separator, pages[place].to_le_bytes().to_vec()));
        }
        let root_page = Page { object, flags: flags | page_flags::PARENT_OF_LEAF, external };
        self.add(root, &root_page, &children, (0, 0));
    }

    /// Cuts entries into leaves of at most so many bytes.
    fn split<'e>(&self, entries: &'e [Entry], bytes_max: usize) -> Vec<&'e [Entry]> {
        let mut leaves = Vec::new();
        let (mut first, mut used_bytes) = (0, 0);
        for (place, (key, data)) in entries.iter().enumerate() {
            let cost_bytes = PageMut::node_cost_bytes(&entries[first].0, false, key, data);
            if place > first && used_bytes + cost_bytes > bytes_max {
                leaves.push(&entries[first..place]);
                (first, used_bytes) = (place, 0);
            }
            if place == first {
                used_bytes = key.len();
            }
            used_bytes += PageMut::node_cost_bytes(&entries[first].0, false, key, data);
        }
        leaves.push(&entries[first..]);
        leaves
    }

    fn add(
        &mut self,
        number: PageNumber,
        page: &Page<'_>,
        entries: &[Entry],
        siblings: (PageNumber, PageNumber),
    ) {
        let mut bytes = vec![0; self.size.bytes()];
        let mut builder =
            PageBuilder::new(&mut bytes, self.size, number, page.object, page.flags, page.external);
        for (key, data) in entries {
            builder.push_stored(node_bytes(
                self.size,
                page.external,
                page.flags & page_flags::ROOT != 0,
                key,
                data,
            ));
        }
        builder.finish(FRESH_DBTIME_FIRST + u64::from(number), siblings.0, siblings.1);
        set_checksum(&mut bytes, number);
        self.pages.insert(number, bytes);
    }
}

/// What a page is besides its nodes.
struct Page<'a> {
    object: u32,
    flags: u32,
    external: &'a [u8],
}

/// The shortest beginning of `after` that is above `before`.
fn shortest_separator(before: &[u8], after: &[u8]) -> Vec<u8> {
    let shared = before.iter().zip(after).take_while(|(left, right)| left == right);
    after[..shared.count() + 1].to_vec()
}
