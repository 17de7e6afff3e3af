//! Checks whether a clean database makes sense as a whole: its trees, its space, its indexes, its
//! long values, its catalog.
//!
//! `verify` asks of every page whether its checksum is right; this asks whether all pages together
//! are the database they claim to be. It reads every tree from its root, so a page is checked by
//! the place it has in its tree:
//!
//! - trees: structure of every page, keys rising across pages, separators strict upper bounds,
//!   leaves equally deep, neighbours pointing at each other, kinds and object numbers right, no
//!   database time above the header's;
//! - space: extents of a tree do not overlap, free ones are owned, a child's lie within its
//!   parent's and are not free there, every owned page is free or reached, and reached once;
//! - indexes: the entries are exactly those the records call for, told by order-independent sums,
//!   so memory stays bounded;
//! - long values: chunks without gaps, lengths and reference counts right, none without a
//!   reference;
//! - catalog: equal to its shadow, MSysObjids lists exactly its objects.
//!
//! Memory is bounded by the number of pages (one bit each) and of extents. Damage becomes a
//! [`Finding`]; whatever a page holds, nothing here panics. What cannot be decided, such as an
//! index over Unicode text, is listed as not checked.

mod catalog_check;
mod extents;
mod finding;
mod long_values;
mod map;
mod outline;
mod pages;
mod rows;
mod space;
mod sums;
mod walk;

use std::path::Path;

use plimsoll_io::{Context, Files, Handle, Purpose};
use serde::Serialize;

use self::catalog_check::SystemTables;
use self::extents::Extents;
pub(crate) use self::extents::Range as PageRange;
pub use self::finding::{Finding, Findings, Unchecked};
use self::pages::PageSource;
use self::space::Space;
use self::walk::{Walk, Walker};
use crate::catalog::{Place, PlacedTable, system};
use crate::page::page_flags;
use crate::reader::{DatabaseReader, ReadError, WhenDirty};
use crate::{DatabaseHeader, PageNumber};

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct DeepOptions {
    /// For whom the I/O is done; the purpose is set here.
    pub context: Context,
    /// Bytes per read where pages lie side by side.
    pub read_bytes: usize,
    /// Reads in flight at a time.
    pub reads_outstanding: usize,
    /// Findings listed; further ones are counted only.
    pub findings_max: usize,
}

impl Default for DeepOptions {
    fn default() -> Self {
        Self {
            context: Context::of(Purpose::Checksum),
            read_bytes: 256 * 1024,
            reads_outstanding: 4,
            findings_max: 1000,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeepReport {
    /// Pages the database owns.
    pub pages_owned: u64,
    /// Pages reached through a tree.
    pub pages_reached: u64,
    /// Pages free in some tree.
    pub pages_free: u64,
    /// Pages read with a flipped bit that their checksum could correct.
    pub pages_correctable: u64,
    /// Tables, the system's included.
    pub tables: u64,
    /// Records in all tables.
    pub records: u64,
    /// Entries in all secondary indexes.
    pub index_entries: u64,
    /// Long values.
    pub long_values: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How many more findings there were than are listed.
    pub findings_unlisted: u64,
    /// What could not be checked.
    pub unchecked: Vec<Unchecked>,
}

impl DeepReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A tree of a database and whose space it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTree {
    /// Object number and root page.
    pub place: Place,
    /// Root of the tree it is part of; 0 for the database root.
    pub parent: PageNumber,
    /// Bits of `page_flags::TREE_KIND` that all its pages carry.
    pub kind: u32,
}

impl KnownTree {
    /// The tree of the database root, which every database has.
    pub const DATABASE: KnownTree = KnownTree {
        place: Place { object: system::DATABASE_OBJECT, root: system::DATABASE_ROOT },
        parent: 0,
        kind: 0,
    };
}

/// Checks the database at `path`.
///
/// # Errors
/// When it cannot be read at all, is dirty, or neither copy of its catalog can be read.
pub async fn verify_deep(
    files: &Files,
    handle: &Handle,
    path: impl AsRef<Path>,
    options: DeepOptions,
) -> Result<DeepReport, ReadError> {
    let path = path.as_ref();
    let reader = DatabaseReader::open(files, handle, path, WhenDirty::Refuse).await?;
    let trees = catalog_trees(reader.tables());
    check(files, handle, path, reader, &trees, options).await
}

/// Checks trees and space of a clean database that has no catalog: every tree must be listed,
/// parents first, beginning with [`KnownTree::DATABASE`].
///
/// # Errors
/// When it cannot be read at all or is dirty.
pub async fn verify_trees(
    files: &Files,
    handle: &Handle,
    path: impl AsRef<Path>,
    trees: &[KnownTree],
    options: DeepOptions,
) -> Result<DeepReport, ReadError> {
    let path = path.as_ref();
    let reader =
        DatabaseReader::open_without_catalog(files, handle, path, WhenDirty::Refuse).await?;
    check(files, handle, path, reader, trees, options).await
}

/// The pages of a clean database that its tables, indexes and long values hold something on.
pub(crate) struct PagesInUse(Extents);

impl PagesInUse {
    /// Those of these stretches, which may come in any order.
    pub(crate) fn of(&self, pages: Vec<PageRange>) -> Vec<PageRange> {
        Extents::of(pages).0.within(&self.0).ranges().to_vec()
    }
}

/// Which pages are owned by some tree of the catalog and free in none; `None` where some space
/// cannot be read or contradicts itself. What only the database root owns may be lost to everybody
/// since a crash, which is no damage.
///
/// # Errors
/// When the database cannot be read at all, is dirty, or neither copy of its catalog can be read.
pub(crate) async fn pages_in_use(
    files: &Files,
    handle: &Handle,
    path: &Path,
    options: DeepOptions,
) -> Result<Option<PagesInUse>, ReadError> {
    let reader = DatabaseReader::open(files, handle, path, WhenDirty::Refuse).await?;
    let trees = catalog_trees(reader.tables());
    let source = PageSource::open(files, handle, path, &reader, options).await?;
    let mut walker = Walker::new(source.clone(), reader.header(), reader.page_max(), 1);
    let spaces = space::read_all(&mut walker, &trees).await;
    source.close().await?;
    reader.close().await?;
    let spaces: Option<Vec<Space>> = spaces?.into_iter().collect();
    let Some(spaces) = spaces.filter(|_| walker.findings.listed.is_empty()) else {
        return Ok(None);
    };
    let owned = spaces.iter().skip(1).flat_map(|space| space.owned.ranges().to_vec());
    let owned = Extents::of(owned.collect()).0;
    let free = spaces.iter().flat_map(|space| space.free.ranges().to_vec());
    Ok(Some(PagesInUse(owned.without(&Extents::of(free.collect()).0))))
}

async fn check(
    files: &Files,
    handle: &Handle,
    path: &Path,
    reader: DatabaseReader,
    trees: &[KnownTree],
    options: DeepOptions,
) -> Result<DeepReport, ReadError> {
    let source = PageSource::open(files, handle, path, &reader, options).await?;
    let mut check = Check {
        header: reader.header(),
        tables: reader.tables(),
        walker: Walker::new(
            source.clone(),
            reader.header(),
            reader.page_max(),
            options.findings_max,
        ),
        report: DeepReport::default(),
    };
    let outcome = check.check_database(trees).await;
    let report = check.finish();
    source.close().await?;
    reader.close().await?;
    outcome.map(|()| report)
}

struct Check<'a> {
    header: &'a DatabaseHeader,
    tables: &'a [PlacedTable],
    walker: Walker,
    report: DeepReport,
}

impl Check<'_> {
    async fn check_database(&mut self, trees: &[KnownTree]) -> Result<(), ReadError> {
        let spaces = space::read_all(&mut self.walker, trees).await?;
        space::check_all(&mut self.walker, trees, &spaces);
        self.walker.map.learn(trees, &spaces);
        self.count_space(trees, &spaces);
        space::check_space_pages(&mut self.walker, trees, &spaces);
        // The trees of tables follow with what they hold.
        let in_catalog = |tree: &&KnownTree| {
            let mut places = self.tables.iter().flat_map(PlacedTable::places);
            places.any(|place| place == tree.place)
        };
        let others: Vec<KnownTree> =
            trees.iter().filter(|tree| !in_catalog(tree)).copied().collect();
        for tree in others {
            self.walker.walk(tree.place, tree.kind, Walk::First, &mut walk::Ignore).await?;
        }
        let mut system_tables = SystemTables::default();
        for placed in self.tables {
            self.check_table(placed, &mut system_tables).await?;
        }
        catalog_check::check(&mut self.walker.findings, self.header, self.tables, &system_tables);
        space::check_reached(&mut self.walker, trees).await;
        Ok(())
    }

    fn count_space(&mut self, trees: &[KnownTree], spaces: &[Option<Space>]) {
        for (tree, space) in trees.iter().zip(spaces) {
            let Some(space) = space else { continue };
            self.report.pages_free += space.free.pages();
            if tree.parent == 0 {
                self.report.pages_owned = space.owned.pages();
            }
        }
    }

    async fn check_table(
        &mut self,
        placed: &PlacedTable,
        system_tables: &mut SystemTables,
    ) -> Result<(), ReadError> {
        let walker = &mut self.walker;
        let mut records = rows::Records::new(placed, walker.page_size(), walker.page_max());
        walker.walk(placed.place, 0, Walk::First, &mut records).await?;
        self.report.tables += 1;
        self.report.records += records.count;
        if records.has_bad {
            walker.incomplete.insert(placed.place.object);
        }
        for (index, place) in records.indexes.iter().zip(placed.secondary_places()) {
            let mut entries = rows::Entries::default();
            walker.walk(place, page_flags::INDEX, Walk::First, &mut entries).await?;
            self.report.index_entries += entries.sum.count();
            let is_whole = !walker.is_incomplete(&[placed.place.object, place.object]);
            index.compare(&mut walker.findings, placed, &entries, is_whole);
        }
        long_values::check(walker, placed, &mut records, &mut self.report).await?;
        if walker.is_incomplete(&[placed.place.object]) {
            return Ok(());
        }
        match placed.place.object {
            system::CATALOG_OBJECT => system_tables.catalog = Some(records.whole),
            system::SHADOW_OBJECT => system_tables.shadow = Some(records.whole),
            system::OBJECT_IDS_OBJECT => system_tables.objects = Some(records.objects),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> DeepReport {
        let Findings { listed, unlisted, unchecked, .. } = self.walker.findings;
        DeepReport {
            pages_reached: self.walker.map.reached_count(),
            pages_correctable: self.walker.source.correctable(),
            findings: listed,
            findings_unlisted: unlisted,
            unchecked,
            ..self.report
        }
    }
}

/// Every tree the catalog names, parents first.
fn catalog_trees(tables: &[PlacedTable]) -> Vec<KnownTree> {
    let mut trees = vec![KnownTree::DATABASE];
    for placed in tables {
        let table = placed.place;
        trees.push(KnownTree { place: table, parent: system::DATABASE_ROOT, kind: 0 });
        let indexes = placed.secondary_places().map(|place| (place, page_flags::INDEX));
        let values = placed.long_values.map(|place| (place, page_flags::LONG_VALUE));
        trees.extend(indexes.chain(values).map(|(place, kind)| KnownTree {
            place,
            parent: table.root,
            kind,
        }));
    }
    trees
}
