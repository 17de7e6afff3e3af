//! Who owns which page.

use super::Findings;
use super::extents::Extents;
use super::walk::{Walk, walk};
use crate::PageNumber;
use crate::catalog::{Place, system};
use crate::page::page_flags;
use crate::reader::{DatabaseReader, ReadError};

/// Bit of a space header: owned and available extents are trees of their own.
const MULTIPLE_EXTENTS: u32 = 1;
/// Bit of a space header: the first field is not the number of pages but the size of the last request.
const SECOND_VERSION: u32 = 4;
/// Length of a space header with a leading flag byte and a trailing counter, in later formats.
const LONG_HEADER_BYTES: usize = 25;

/// One tree and its pages.
pub(super) struct Space {
    pub place: Place,
    /// Which bits of [`page_flags::TREE_KIND`] its pages carry.
    pub kind: u32,
    /// Root of the tree whose space it lives in, 0 for the database root.
    parent: PageNumber,
    owned: Extents,
    available: Extents,
    /// Owned, not free and not given to children.
    own: Extents,
}

/// The space of the whole database, and which pages were reached.
pub(super) struct SpaceMap {
    spaces: Vec<Space>,
    /// One bit per page.
    reached: Vec<u64>,
    page_max: PageNumber,
}

/// What a root page says of its space.
struct SpaceHeader {
    first_field: u32,
    parent: PageNumber,
    flags: u32,
    owned_root_or_bitmap: u32,
}

impl SpaceHeader {
    fn decode(external: &[u8]) -> Option<Self> {
        let bytes = if external.len() == LONG_HEADER_BYTES {
            &external[1..]
        } else {
            external
        };
        let [a, b, c, d, ..] = *bytes.as_chunks::<4>().0 else {
            return None;
        };
        Some(Self {
            first_field: u32::from_le_bytes(a),
            parent: u32::from_le_bytes(b),
            flags: u32::from_le_bytes(c),
            owned_root_or_bitmap: u32::from_le_bytes(d),
        })
    }
}

/// A tree and where its space comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTree {
    /// Object and root.
    pub place: Place,
    /// Which bits of [`page_flags::TREE_KIND`] its pages carry.
    pub kind: u32,
    /// Root of the tree whose space it lives in, 0 for the database root.
    pub parent: PageNumber,
}

impl KnownTree {
    /// The tree that owns the whole file.
    pub const DATABASE: KnownTree = KnownTree {
        place: Place {
            object: system::DATABASE_OBJECT,
            root: system::DATABASE_ROOT,
        },
        kind: 0,
        parent: 0,
    };
}

/// Every tree that the catalog names, parents first.
pub(super) fn catalog_trees(reader: &DatabaseReader) -> Vec<KnownTree> {
    let tree = |place: &Place, kind, parent| KnownTree {
        place: *place,
        kind,
        parent,
    };
    let mut trees = vec![KnownTree::DATABASE];
    for placed in reader.tables() {
        trees.push(tree(&placed.place, 0, system::DATABASE_ROOT));
        let secondaries = placed.index_places.iter().filter(|place| **place != placed.place);
        trees.extend(secondaries.map(|place| tree(place, page_flags::INDEX, placed.place.root)));
        let long_values = placed.long_values.iter();
        trees.extend(long_values.map(|place| tree(place, page_flags::LONG_VALUE, placed.place.root)));
    }
    trees
}

impl SpaceMap {
    /// Reads the extents of every tree and checks that they fit into one another.
    pub async fn read(reader: &DatabaseReader, trees: &[KnownTree], findings: &mut Findings) -> Self {
        let page_max = reader.page_max();
        let mut map = Self {
            spaces: Vec::new(),
            reached: vec![0; page_max as usize / 64 + 1],
            page_max,
        };
        for tree in trees {
            match map.read_space(reader, *tree, findings).await {
                Ok(space) => map.spaces.push(space),
                Err(error) => findings.add_error(tree.place.object, &error),
            }
        }
        map.check_nesting(findings);
        map
    }

    async fn read_space(
        &mut self,
        reader: &DatabaseReader,
        tree: KnownTree,
        findings: &mut Findings,
    ) -> Result<Space, ReadError> {
        let KnownTree { place, kind, parent } = tree;
        let root = reader.read_page(place.root).await?;
        let external = root.view().external().unwrap_or_default();
        let mut space = Space {
            place,
            kind,
            parent,
            owned: Extents::default(),
            available: Extents::default(),
            own: Extents::default(),
        };
        let Some(header) = SpaceHeader::decode(external) else {
            findings.add(place.object, place.root, "its root has no space header");
            return Ok(space);
        };
        if header.parent != parent {
            let problem = format!(
                "its root names page {} as its parent, not {parent}",
                header.parent
            );
            findings.add(place.object, place.root, problem);
        }
        if header.flags & MULTIPLE_EXTENTS == 0 {
            (space.owned, space.available) = single_extent(place.root, &header, findings, place.object);
            return Ok(space);
        }
        for (root, free) in [
            (header.owned_root_or_bitmap, false),
            (header.owned_root_or_bitmap.wrapping_add(1), true),
        ] {
            let name = if free { "available" } else { "owned" };
            let extents = self
                .read_extents(reader, Place { root, ..place }, kind, name, findings)
                .await?;
            *if free {
                &mut space.available
            } else {
                &mut space.owned
            } = extents;
        }
        Ok(space)
    }

    async fn read_extents(
        &mut self,
        reader: &DatabaseReader,
        place: Place,
        kind: u32,
        name: &str,
        findings: &mut Findings,
    ) -> Result<Extents, ReadError> {
        let mut ranges = Vec::new();
        let mut malformed = Vec::new();
        let page_max = self.page_max;
        let plan = Walk {
            place,
            kind: kind | page_flags::SPACE,
        };
        let mut take = |page: PageNumber, key: &[u8], data: &[u8]| match extent(key, data) {
            Some((first, last)) if last <= page_max => ranges.push((first, last)),
            _ => malformed.push(page),
        };
        walk(reader, &plan, self, findings, &mut take).await?;
        for page in malformed {
            findings.add(
                place.object,
                page,
                format!("an {name} extent is malformed or leads outside the file"),
            );
        }
        let (extents, shared) = Extents::of(ranges);
        if let Some(page) = shared {
            findings.add(place.object, page, format!("two {name} extents hold this page"));
        }
        Ok(extents)
    }

    /// Free pages are owned; children's pages are their parent's and not free there; what remains is the tree's own.
    fn check_nesting(&mut self, findings: &mut Findings) {
        for at in 0..self.spaces.len() {
            let space = &self.spaces[at];
            let (object, root) = (space.place.object, space.place.root);
            if let Some((page, _)) = space.available.without(&space.owned).ranges().first() {
                findings.add(object, *page, "a free page is not owned");
            }
            let mut given = Vec::new();
            for child in self.spaces.iter().filter(|child| child.parent == root) {
                given.extend_from_slice(child.owned.ranges());
                if let Some((page, _)) = child.owned.without(&space.owned).ranges().first() {
                    findings.add(child.place.object, *page, "its page is not owned by its parent");
                }
            }
            let (given, shared) = Extents::of(given);
            if let Some(page) = shared {
                findings.add(object, page, "two of its children own this page");
            }
            let kept = space.owned.without(&space.available);
            if space.available.without(&given) != space.available {
                let free = space
                    .available
                    .ranges()
                    .iter()
                    .find(|(first, last)| (*first..=*last).any(|page| given.contains(page)));
                let page = free.map_or(0, |(first, _)| *first);
                findings.add(object, page, "an extent is free here and owned by a child");
            }
            let own = kept.without(&given);
            findings.report.pages_free += space.available.pages();
            self.spaces[at].own = own;
        }
        self.check_database_root(findings);
    }

    fn check_database_root(&self, findings: &mut Findings) {
        let Some(database) = self.spaces.first().filter(|space| space.parent == 0) else {
            return;
        };
        let (pages, last) = (database.owned.pages(), database.owned.last().unwrap_or(0));
        if pages != u64::from(last) || last > self.page_max {
            let problem = format!(
                "the database owns {pages} pages up to page {last}, the file has {}",
                self.page_max
            );
            findings.add(system::DATABASE_OBJECT, 0, problem);
        }
        // A file may have been made longer in advance.
        findings.report.pages_beyond = u64::from(self.page_max.saturating_sub(last));
    }

    /// The tree at `root`.
    pub fn space_of(&self, root: PageNumber) -> Option<&Space> {
        self.spaces.iter().find(|space| space.place.root == root)
    }

    /// Notes that a page was reached; false if it had been reached before.
    pub fn reach(&mut self, page: PageNumber) -> bool {
        let Some(word) = self.reached.get_mut(page as usize / 64) else {
            return true;
        };
        let bit = 1 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether `page` may belong to the tree at `root`. While extents are still being read, any page may.
    pub fn may_hold(&self, object: u32, page: PageNumber) -> bool {
        let spaces = self.spaces.iter().filter(|space| space.place.object == object);
        let mut unknown = true;
        for space in spaces {
            if space.own.contains(page) {
                return true;
            }
            unknown = false;
        }
        unknown
    }

    /// Every page that is neither free nor somebody else's must have been reached.
    pub fn check_unreached(&self, findings: &mut Findings) {
        for space in &self.spaces {
            let (mut lost, mut first_lost) = (0u64, 0);
            for (first, last) in space.own.ranges() {
                for page in *first..=*last {
                    if self.reached[page as usize / 64] >> (page % 64) & 1 == 0 {
                        lost += 1;
                        first_lost = if first_lost == 0 { page } else { first_lost };
                    }
                }
            }
            if lost > 0 {
                let problem =
                    format!("{lost} of its pages, this one first, are neither free nor part of any tree");
                findings.add(space.place.object, first_lost, problem);
            }
        }
        findings.report.pages = self.reached.iter().map(|word| u64::from(word.count_ones())).sum();
    }
}

/// The pages of a small tree: its root and those behind it, free ones marked in a bitmap.
fn single_extent(
    root: PageNumber,
    header: &SpaceHeader,
    findings: &mut Findings,
    object: u32,
) -> (Extents, Extents) {
    const PAGES_MAX: u32 = 33;
    let bitmap = header.owned_root_or_bitmap;
    let highest_free = 32 - bitmap.leading_zeros();
    let pages = if header.flags & SECOND_VERSION == 0 {
        header.first_field
    } else {
        highest_free + 1
    };
    if pages == 0 || pages > PAGES_MAX || highest_free >= pages {
        findings.add(object, root, "its space header is impossible");
        return (Extents::of(vec![(root, root)]).0, Extents::default());
    }
    let free = (0..32)
        .filter(|bit| bitmap >> bit & 1 == 1)
        .map(|bit| root + 1 + bit);
    let (available, _) = Extents::of(free.map(|page| (page, page)).collect());
    (Extents::of(vec![(root, root + pages - 1)]).0, available)
}

/// First and last page of an entry of an extent tree. Later formats put a byte in front of the key of free extents.
fn extent(key: &[u8], data: &[u8]) -> Option<(PageNumber, PageNumber)> {
    let last: &[u8; 4] = key.last_chunk().filter(|_| (4..=5).contains(&key.len()))?;
    let count: &[u8; 4] = data.first_chunk()?;
    let (last, count) = (u32::from_be_bytes(*last), u32::from_le_bytes(*count));
    let first = last.checked_sub(count.checked_sub(1)?)?;
    (first > 0).then_some((first, last))
}
