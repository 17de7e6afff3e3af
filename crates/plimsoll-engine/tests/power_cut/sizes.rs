//! How large worlds are: page sizes, caches, disks, rows, and what the sessions do with them.

use plimsoll_engine::PageSize;
use plimsoll_engine::log::framing::Framing;
use plimsoll_io::{Latency, LatencyPlan, MemoryOptions, Random};

use crate::coverage::TRACED;
use crate::support::*;
use crate::tables;
use crate::world::Kind;

/// The smallest cache that an instance takes.
const CACHE_BYTES_MIN: u64 = 64 * 4096;

/// How much there is of everything. What a cut costs is mostly what there is to be redone and
/// compared, so a million of them are done in small worlds, a tenth of them in large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Small,
    Large,
}

/// How many rows, how long, and what the sessions do with them.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub keys: u64,
    pub bytes_max: u64,
    pub prefix_bytes: usize,
    /// See [`Field::keys_per_prefix`].
    pub keys_per_prefix: u64,
    /// Transactions of a session in a round.
    pub transactions: u64,
    /// The longest pause between two of them. Without pauses most of what lies between two cuts is
    /// work that needs no disk.
    pub pause_ns_max: u64,
}

fn setup_for(random: &mut Random, kind: Kind) -> Setup {
    let framing = if random.chance(0.5) { Framing::Sectors512 } else { Framing::Segments4096 };
    let sizes = [PageSize::KIB_4, PageSize::KIB_4, PageSize::KIB_8, PageSize::KIB_32];
    let size = sizes[random.below(4) as usize];
    Setup {
        size: if kind == Kind::Deep { PageSize::KIB_4 } else { size },
        framing,
        page_images: true,
        cache_frames: 64 + random.below(200),
        databases: 1 + random.below(2) as u8,
        checkpoint_generations: 1 + random.below(3),
        waypoint_generations: if random.chance(0.25) { 1 + random.below(2) as u32 } else { 0 },
        circular: true,
        ..Setup::default()
    }
}

/// Small pages for most, databases that grow often, and caches about as large as they are, so that
/// pages are written all the time. Branch pages keep whole keys, so that long ones make deep trees
/// of few rows.
pub fn small(random: &mut Random, kind: Kind) -> (Setup, Rows) {
    let drawn = match random.below(20) {
        0 => PageSize::KIB_32,
        1 => PageSize::KIB_16,
        2 | 3 => PageSize::KIB_8,
        _ => PageSize::KIB_4,
    };
    let size = if kind == Kind::Deep { PageSize::KIB_4 } else { drawn };
    let page_bytes = size.bytes() as u64;
    let setup = Setup {
        size,
        cache_frames: (CACHE_BYTES_MIN / page_bytes).max(16) + random.below(16),
        databases: 1 + u8::from(random.chance(0.2)),
        checkpoint_generations: 1,
        extension_pages: 4 << random.below(3),
        ..setup_for(random, kind)
    };
    let (keys, bytes_max, prefix_bytes) = match kind {
        Kind::Plain => (60 + random.below(250), 200 + random.below(page_bytes / 4), 0),
        Kind::Deep => {
            (100 + random.below(200), 300 + random.below(700), 400 + random.below(300) as usize)
        }
        Kind::Tables => (10 + random.below(25), 2_000 + random.below(2 * page_bytes), 0),
    };
    let rows = Rows {
        keys,
        bytes_max,
        prefix_bytes,
        keys_per_prefix: 0,
        transactions: 30,
        pause_ns_max: 1_000_000 << random.below(6),
    };
    (setup, rows)
}

/// The slow form has worlds with more rows and databases that grow.
pub fn large(random: &mut Random, kind: Kind, seed: u64) -> (Setup, Rows) {
    let setup = setup_for(random, kind);
    let (keys, rows_per_page_min) =
        if seed >= 1_000 && seed.is_multiple_of(3) { (8_000, 4) } else { (1_500, 8) };
    let bytes_max = setup.size.bytes() as u64 / rows_per_page_min;
    let (keys, bytes_max, prefix_bytes) = match kind {
        Kind::Plain => (keys, bytes_max, 0),
        Kind::Deep => (1_200, bytes_max, 250),
        Kind::Tables => (tables::ROWS, tables::BODY_BYTES_MAX, 0),
    };
    let rows = Rows {
        keys,
        bytes_max,
        prefix_bytes,
        keys_per_prefix: 0,
        transactions: 150,
        pause_ns_max: 0,
    };
    (setup, rows)
}

/// Gives keys different long beginnings, and hardly any data, in some of the small deep worlds.
/// Drawn by itself, so that everything else about a seed stays as it is.
pub fn draw_beginnings(seed: u64, kind: Kind, rows: &mut Rows) {
    if kind == Kind::Deep && seed % 8 == 5 {
        let mut random = Random::from_seed(seed).child("beginnings");
        rows.keys_per_prefix = 8 + random.below(40);
        rows.bytes_max = 1 + random.below(100);
    }
}

/// Gives large pages to some of the small plain worlds, and keys that are mostly what all of them
/// begin with: those of a page are as long as a generation of the log. Drawn by itself, so that
/// everything else about a seed stays as it is.
pub fn draw_wide_keys(seed: u64, kind: Kind, setup: &mut Setup, rows: &mut Rows) {
    if kind == Kind::Plain && seed % 16 == 14 {
        let mut random = Random::from_seed(seed).child("wide keys");
        setup.size = [PageSize::KIB_16, PageSize::KIB_32][random.below(2) as usize];
        setup.cache_frames = 16 + random.below(16);
        rows.keys *= 4;
        rows.bytes_max = 1 + random.below(20);
        let bytes = setup.size.bytes() as u64;
        rows.prefix_bytes = (bytes / 8 + random.below(bytes / 8 - 100)) as usize;
    }
}

/// The share of worlds without page images.
const WITHOUT_IMAGES: f64 = 0.25;

/// Whether the world of a seed logs page images.
pub fn has_images(seed: u64) -> bool {
    !Random::from_seed(seed).child("images").chance(WITHOUT_IMAGES)
}

/// Leaves out page images in a share of the worlds, as most plans do, and gives these a disk that
/// writes whole pages: nothing less is promised there. Drawn by itself, so that everything else
/// about a seed stays as it is.
pub fn leave_out_images(seed: u64, setup: &mut Setup, memory: &mut MemoryOptions) {
    if !has_images(seed) {
        setup.page_images = false;
        memory.atomic_write_bytes = setup.size.bytes() as u32;
    }
}

/// Gives a disk that may lose the whole physical sector a write covers a part of (512e) to every
/// world whose log is written in whole blocks of 4 KiB: such a disk must do no harm there. Under a
/// log of 512-byte sectors it may lose what was acknowledged.
pub fn break_sectors(setup: &Setup, memory: &mut MemoryOptions) -> bool {
    let writes_blocks = setup.framing == Framing::Segments4096 || memory.alignment_bytes == 4096;
    if writes_blocks {
        memory.physical_sector_bytes = 4096;
    }
    writes_blocks
}

pub fn memory_for(random: &mut Random) -> MemoryOptions {
    let latency =
        Latency::Exponential { fixed_ns: 20_000, mean_ns: 20_000 + random.below(2_000_000) };
    MemoryOptions {
        latency: LatencyPlan::of(latency),
        // Devices with 4 KiB blocks make the log write whole blocks; what tears is still a sector.
        alignment_bytes: if random.chance(0.3) { 4096 } else { 512 },
        trace_operations: TRACED,
        ..MemoryOptions::default()
    }
}
