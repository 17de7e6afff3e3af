//! How long a record can become. It never spans two generations, and a generation is 1 MiB whatever
//! the options say, so that everything the engine logs must stay below what one holds.
//!
//! - A row has one key and, at most, its data before and after: two pages and a key.
//! - An image is a page without its free space.
//! - A structure makes and changes pages. A page that is made costs no more than its own bytes:
//!   nodes are logged as they lie on it. How many there can be is counted here.
//! - All others have a few numbers, or a signature. What is attached stands in the header of each
//!   generation, not in a record.
//!
//! A transaction logs each of its rows by itself, pieces of long values and rows of the catalog
//! among them, and so does undo. An image is a record of its own, before that of the change.
//!
//! | page size | largest row | largest image | largest structure |
//! |---|---|---|---|
//! | 4 KiB | 16,482 B | 4,128 B | 232,013 B |
//! | 8 KiB | 24,674 B | 8,224 B | 361,946 B |
//! | 16 KiB | 41,058 B | 16,416 B | 676,640 B |
//! | 32 KiB | 73,826 B | 32,800 B | 989,148 B |
//!
//! A generation holds 1,020,000 bytes in sectors of 512 bytes and 1,030,224 in segments of 4,096.

use crate::PageSize;
use crate::page::KEY_BYTES_MAX;

/// No sound tree has more branches above a leaf: 16 levels of fan-out 2 already hold 65,536 pages
/// and real fan-outs are in the hundreds.
pub(crate) const DEPTH_MAX: usize = 24;
/// The numbers of a record and of one page in it, and those of the edit that makes the page.
const NUMBERS_BYTES: usize = 99;
/// What a split changes around the page it makes: the page that is split, its neighbour and its
/// parent, but for the separator.
const AROUND_BYTES: usize = 250;
/// Of an image there are fewer.
const IMAGE_NUMBERS_BYTES: usize = 32;
/// Half of a full page of extents has one, at least, for so many bytes of the page: an entry is 14
/// bytes.
const BYTES_PER_EXTENT_OF_HALF: usize = 32;
/// Pages are counted in 32 bits, and an extent is known by its last page.
const EXTENTS_MAX: u64 = 1 << 32;
/// Trees that take space from each other: long values or an index, their table, the database.
const TREES_MAX: usize = 3;
/// Owned and available extents.
const EXTENT_TREES: usize = 2;
/// A tree whose free pages were a bitmap gets two trees with an entry for each of 32 bits, and two.
const CONVERSION_BYTES: usize = 34 * 16 + 2 * NUMBERS_BYTES;
/// Extents that one step of a release gives back, see `space/release.rs`.
pub(crate) const EXTENTS_RELEASED_MAX: usize = 20;
/// Edits that take the place of an extent, or of a page that is unlinked, out of another page.
const REMOVAL_BYTES: usize = 100;

/// The longest record of a row.
pub(crate) fn row_bytes_max(size: PageSize) -> usize {
    NUMBERS_BYTES + KEY_BYTES_MAX + 2 * size.bytes()
}

/// The longest record of an image.
pub(crate) fn image_bytes_max(size: PageSize) -> usize {
    IMAGE_NUMBERS_BYTES + size.bytes()
}

/// The longest record of a structure.
pub(crate) fn structure_bytes_max(size: PageSize) -> usize {
    // A new page for a row, from trees each of which has just run out of space; the other edits
    // of rows make the same page, or the only one. To make a tree takes no more.
    let space_bytes = EXTENT_TREES * extents_bytes_max(size, 1) + CONVERSION_BYTES;
    let room = split_bytes(size.bytes(), KEY_BYTES_MAX) + TREES_MAX * space_bytes;
    // A leaf and all branches above it are unlinked, and each becomes free space.
    let unlinked = DEPTH_MAX + 1;
    let unlink = unlinked * REMOVAL_BYTES + extents_bytes_max(size, unlinked);
    let release = EXTENTS_RELEASED_MAX * REMOVAL_BYTES
        + extents_bytes_max(size, EXTENTS_RELEASED_MAX)
        + split_bytes(size.bytes(), 0);
    NUMBERS_BYTES + room.max(unlink).max(release)
}

/// A step that makes a page of so many bytes and puts a separator into its parent.
fn split_bytes(made_bytes: usize, separator_bytes: usize) -> usize {
    NUMBERS_BYTES + made_bytes + AROUND_BYTES + separator_bytes
}

/// What it takes to put so many extents into one tree of them where each needs a split at every
/// level. But no more pages can be split at a level than there are: a page got half of another's
/// extents, or children, when it was made. Children stay, and so do the numbers of pages between
/// which its extents must lie.
fn extents_bytes_max(size: PageSize, extents: usize) -> usize {
    let half = (size.bytes() / BYTES_PER_EXTENT_OF_HALF) as u64;
    let (mut splits, mut pages) = (0, 1 + EXTENTS_MAX / half);
    while pages > 1 {
        splits += extents.min(pages as usize);
        pages = if pages > half { 1 + pages / half } else { 1 };
    }
    // The root is moved to a page of its own, which is split then.
    let root_bytes = 2 * split_bytes(size.bytes(), 0);
    splits * split_bytes(size.bytes() / 2, 0) + root_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{Edit, NewNode};
    use crate::log::framing::Framing;
    use crate::page::{PageMut, node_flags, page_flags};
    use plimsoll_io::Random;

    /// Why it matters: what fits no generation cannot be logged at all. Where it comes while
    /// databases are opened, they never open again.
    #[test]
    fn every_record_fits_a_generation() {
        let bounds: Vec<_> = PageSize::ALL
            .map(|size| (row_bytes_max(size), image_bytes_max(size), structure_bytes_max(size)))
            .into();
        let told = [
            (16_482, 4_128, 232_013),
            (24_674, 8_224, 361_946),
            (41_058, 16_416, 676_640),
            (73_826, 32_800, 989_148),
        ];
        assert_eq!(bounds, told);
        let capacities = [Framing::Sectors512, Framing::Segments4096].map(Framing::capacity_bytes);
        assert_eq!(capacities, [1_020_000, 1_030_224]);
        for (row, image, structure) in bounds {
            assert!(row.max(image).max(structure) <= capacities[0] as usize);
        }
    }

    /// A page filled to its end with nodes that share nothing, everything or a part of the prefix.
    fn full_page(size: PageSize, random: &mut Random) -> Edit {
        let is_root = random.chance(0.2);
        let flags = if is_root { page_flags::ROOT } else { 0 } | page_flags::LEAF;
        let external_bytes = if is_root { 16 } else { random.below(size.bytes() as u64 / 3) };
        let external = vec![7; (external_bytes as usize).min(KEY_BYTES_MAX)];
        let mut bytes = vec![0; size.bytes()];
        let mut page = PageMut::new(&mut bytes, size);
        page.format(9, 8, flags, &external);
        let (key_max, data_max) = (1 + random.below(200), 1 + random.below(300));
        let mut nodes = Vec::new();
        loop {
            let shared = random.below(1 + external.len() as u64) as usize;
            let mut key =
                external[..if random.chance(0.5) { external.len() } else { shared }].to_vec();
            key.extend(vec![1; random.below(key_max) as usize]);
            key.truncate(KEY_BYTES_MAX);
            let data = vec![2; random.below(data_max) as usize];
            let cost = PageMut::node_cost_bytes(&external, is_root, &key, &data);
            if !page.view().has_room_for(cost) {
                return Edit::Format {
                    object: u32::MAX,
                    flags,
                    previous: u32::MAX,
                    next: u32::MAX,
                    external,
                    nodes,
                };
            }
            page.insert(nodes.len(), node_flags::DELETED, &key, &data);
            let node = NewNode { flags: node_flags::DELETED, key, data };
            nodes.push(node.laid(flags, &external));
        }
    }

    #[test]
    fn a_page_that_is_made_costs_no_more_than_its_own_bytes() {
        for seed in 0..200 {
            let mut random = Random::from_seed(seed);
            let size = PageSize::ALL[random.below(4) as usize];
            let mut wire = Vec::new();
            full_page(size, &mut random).encode(&mut wire);
            assert!(wire.len() <= size.bytes(), "seed {seed}: {} of {size}", wire.len());
        }
    }
}
