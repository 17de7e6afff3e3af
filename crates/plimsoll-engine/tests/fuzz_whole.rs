//! Whole databases with mutated pages whose checksums fit: what reads tables, records, catalogs, multi-values, long values and compressed bytes
//! ends with an error or an answer, without a panic, in bounded time and memory. So do the deep check and the repair.
//!
//! The corpus is the golden databases of an independent prototype (`tests/golden/ese`) and values made here. The short form runs with every
//! `cargo test`; `make fuzz SECONDS=n` goes on. A failure prints the seed of the input, which makes it anew.

#[expect(dead_code, reason = "each test file uses its part of the golden module")]
mod golden;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use golden::{DATABASE, golden, on_memory_disk};
use plimsoll_engine::catalog::CatalogDecoder;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::reader::{DatabaseReader, TextFormat, WhenDirty, decompress, write_table};
use plimsoll_engine::repair::repair;
use plimsoll_engine::{PageSize, Record, RecordLayout, StoredValue, Table, header_checksum, set_checksum};
use plimsoll_io::{Files, Handle, Random};

/// Text that one table may give: a thousand times what the sound ones give.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Resident memory the whole program may come to need.
const MEMORY_KIB_MAX: u64 = 1 << 20;
const SECONDS_MAX: u64 = 60;

struct Corpus {
    databases: Vec<(PageSize, Vec<u8>)>,
    catalog_rows: Vec<Vec<u8>>,
    packed: Vec<Vec<u8>>,
}

/// The rows of the catalog of a database, as they lie on its pages.
fn catalog_rows(bytes: &[u8]) -> Vec<Vec<u8>> {
    on_memory_disk(bytes, |files, handle| async move {
        let reader = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse)
            .await
            .expect("a sound database");
        let place = reader.table("MSysObjects").expect("every database has it").place;
        let (mut scan, mut rows) = (reader.scan(place), Vec::new());
        while let Some(leaf) = scan.next_leaf().await.expect("a sound tree") {
            for line in 0..leaf.view().lines() {
                rows.push(leaf.view().node(line).expect("a sound node").data.to_vec());
            }
        }
        rows
    })
}

fn corpus() -> Corpus {
    let small = golden("syn4k.edb");
    // Seven-bit text, the same as two bytes a character, and LZ77 with a match that reaches into itself.
    let lz77 = [
        &[0x18, 40, 0, 0, 0, 0, 0x40, b'a', 0x07, 0x00, 0x0F, 12][..],
        &[0; 30],
    ]
    .concat();
    Corpus {
        catalog_rows: catalog_rows(&small),
        databases: vec![
            (PageSize::KIB_4, small),
            (PageSize::from_bytes(8192).expect("a size"), golden("syn8k.edb")),
            (PageSize::KIB_32, golden("syn32k.edb")),
        ],
        packed: vec![vec![0x0F; 60], vec![0x15; 60], lz77],
    }
}

fn pick<'a, T>(from: &'a [T], random: &mut Random) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// Changes a few bytes: single bits, whole bytes, numbers at their limits, pieces moved.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let length = bytes.len() as u64;
        if length < 4 {
            return;
        }
        let at = random.below(length - 3) as usize;
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => {
                let limits = [0u16, 1, 0x1FFF, 0x4000, 0x7FFF, 0x8000, 0xFFFF];
                bytes[at..at + 2].copy_from_slice(&pick(&limits, random).to_le_bytes());
            }
            3 => bytes[at..at + 4].copy_from_slice(&(random.below(300) as u32).to_le_bytes()),
            _ => {
                let count = random.below(length - at as u64).min(200) as usize;
                let to = random.below(length - count as u64) as usize;
                bytes.copy_within(at..at + count, to);
            }
        }
    }
}

/// Damages pages, tags more often than not, and gives most of them the checksum that fits.
fn damage_pages(size: PageSize, bytes: &mut [u8], random: &mut Random) {
    let pages = bytes.len() / size.bytes();
    for _ in 0..1 + random.below(4) {
        // The first pages hold the catalog and the roots.
        let likely = if random.chance(0.5) { pages.min(60) } else { pages };
        let page = random.below(likely as u64) as usize;
        let content = &mut bytes[page * size.bytes()..(page + 1) * size.bytes()];
        let from = if random.chance(0.5) { size.bytes() - 128 } else { 8 };
        mutate(&mut content[from..], random);
        match page {
            0 | 1 if random.chance(0.8) => {
                let checksum = header_checksum(content);
                content[..4].copy_from_slice(&checksum.to_le_bytes());
            }
            _ if page > 1 && random.chance(0.9) => set_checksum(content, page as u32 - 1),
            _ => {}
        }
    }
}

async fn read_everything(files: Files, handle: Handle) {
    if let Ok(reader) = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Read).await {
        for (number, placed) in reader.tables().iter().enumerate() {
            let format = [TextFormat::Csv, TextFormat::JsonLines][number % 2];
            let mut given = 0;
            let mut sink = |piece: Vec<u8>| {
                given += piece.len();
                match given < TEXT_BYTES_MAX {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            let _ = write_table(&reader, placed, format, &mut sink).await;
        }
        let _ = reader.close().await;
    }
    let _ = verify_deep(&files, &handle, DATABASE, DeepOptions::default()).await;
    let _ = repair(&files, &handle, Path::new(DATABASE)).await;
}

fn one(corpus: &Corpus, random: &mut Random) {
    if random.chance(0.2) {
        let (size, mut bytes) = pick(&corpus.databases, random).clone();
        damage_pages(size, &mut bytes, random);
        on_memory_disk(&bytes, read_everything);
        return;
    }
    // What takes microseconds gets many inputs for each of the above.
    for _ in 0..50 {
        let mut packed = pick(&corpus.packed, random).clone();
        mutate(&mut packed, random);
        if let Ok(expanded) = decompress(&packed, 20_000) {
            assert!(expanded.len() <= 20_000);
        }
        let mut decoder = CatalogDecoder::new(PageSize::KIB_4);
        let first = random.below(corpus.catalog_rows.len() as u64) as usize;
        for row in &corpus.catalog_rows[first..] {
            let mut row = row.clone();
            if random.chance(0.3) {
                mutate(&mut row, random);
            }
            let _ = decoder.push(&row);
        }
        for placed in decoder.finish() {
            look_at_record(&placed.table, random);
        }
    }
}

/// Bytes that are nothing, read as a record of a table that is hardly anything, with every value of every multi-value.
fn look_at_record(table: &Table, random: &mut Random) {
    let mut bytes = vec![0; random.below(400) as usize];
    random.fill(&mut bytes);
    if let [last_fixed, last_variable, rest @ ..] = &mut bytes[..] {
        (*last_fixed, *last_variable) = (random.below(4) as u8, 126 + random.below(6) as u8);
        if let [low, high, ..] = rest {
            (*low, *high) = (4 + random.below(20) as u8, 0);
        }
    }
    let layout = RecordLayout::of(table);
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        let Ok(record) = Record::parse(&bytes, &layout, size) else {
            continue;
        };
        for column in record
            .tagged_columns()
            .chain(table.columns.iter().map(|column| column.id))
        {
            if let Ok(StoredValue::Multi(values)) = record.value(column) {
                for number in 0..values.count().unwrap_or(0) {
                    let _ = values.value(number);
                }
            }
        }
    }
}

/// The most memory this process has needed, where the system tells.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Runs inputs `first..` until `enough` says so; returns how many.
#[expect(
    clippy::disallowed_methods,
    reason = "how long an input takes is measured in real time"
)]
fn fuzz(first: u64, mut enough: impl FnMut(u64) -> bool) -> u64 {
    let corpus = corpus();
    let mut seed = first;
    while !enough(seed - first) {
        let started = std::time::Instant::now();
        let mut random = Random::from_seed(seed).child("fuzz whole");
        let ended = catch_unwind(AssertUnwindSafe(|| one(&corpus, &mut random)));
        assert!(ended.is_ok(), "input {seed} makes a decoder panic");
        let seconds = started.elapsed().as_secs();
        assert!(seconds < SECONDS_MAX, "input {seed} takes {seconds} s");
        seed += 1;
    }
    let memory_kib = memory_kib();
    assert!(
        memory_kib < MEMORY_KIB_MAX,
        "{memory_kib} KiB of memory were needed for files of at most 8 MiB"
    );
    seed - first
}

#[test]
fn no_damaged_database_makes_a_reader_panic() {
    fuzz(1, |done| done >= 60);
}

#[test]
#[ignore = "as long as told: `make fuzz SECONDS=n`"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long to go on is chosen from outside, in real time"
)]
fn no_damaged_database_makes_a_reader_panic_for_as_long_as_told() {
    let number = |name: &str, usual: u64| {
        let text = std::env::var(name).ok().filter(|text| !text.is_empty());
        text.map_or(usual, |text| text.parse().expect("a number"))
    };
    let (seconds, seed) = (number("PLIMSOLL_FUZZ_SECONDS", 5), number("PLIMSOLL_SEED", 1));
    let started = std::time::Instant::now();
    let inputs = fuzz(seed * 1_000_000_000_000, |_| {
        started.elapsed().as_secs() >= seconds
    });
    println!("{inputs} inputs in {seconds} s, none of which makes a reader panic");
}
