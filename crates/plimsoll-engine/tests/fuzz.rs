//! Every decoder of the engine under mutated and random bytes: whatever is on a disk, decoding ends, without a panic and in bounded time.
//!
//! Sound encodings of every kind are mutated (bits, bytes, numbers at their limits, pieces moved, cut off) and, where a checksum guards them, half
//! of the time given a fitting one, so that what lies behind the checksum is reached. The short form runs with every `cargo test`;
//! `make fuzz SECONDS=n` goes on. A failure prints the seed of the input, which makes it anew.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plimsoll_engine::checkpoint::{decode_checkpoint, encode_checkpoint};
use plimsoll_engine::edit::{Edit, NewNode, RowChange};
use plimsoll_engine::flushmap::{decode_map_header, map_page_is_whole};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::record::{ImageRecord, LogRecord, PageEdits, RowRecord, StructureRecord};
use plimsoll_engine::page::PageView;
use plimsoll_engine::prepare::{Extent, LongValues, Plan, PreparedDatabase};
use plimsoll_engine::{
    DatabaseHeader, FileType, LogTime, PageSize, Record, RecordLayout, Signature, classify, header_checksum,
    mend, set_checksum,
};
use plimsoll_io::Random;

/// Sound inputs of every decoder.
struct Corpus {
    headers: Vec<Vec<u8>>,
    log_headers: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    units: Vec<(Framing, Vec<u8>)>,
    checkpoints: Vec<Vec<u8>>,
    map_pages: Vec<Vec<u8>>,
    pages: Vec<(PageSize, Vec<u8>)>,
    prepared: PreparedDatabase,
}

fn log_records() -> Vec<Vec<u8>> {
    let row = |change| {
        LogRecord::Row(RowRecord {
            transaction: 7,
            database: 1,
            root: 31,
            object: 8,
            page: 40,
            dbtime: 99,
            dbtime_before: 98,
            line: 3,
            compensation: false,
            key: b"a key".to_vec(),
            change,
        })
    };
    let node = NewNode {
        flags: 0,
        key: b"key".to_vec(),
        data: vec![5; 40],
    };
    let edits = vec![
        Edit::Format {
            object: 8,
            flags: 2,
            previous: 0,
            next: 9,
            external: vec![1; 16],
            nodes: vec![node.clone(), node.clone()],
        },
        Edit::Insert { line: 1, node },
        Edit::SetSiblings { previous: 3, next: 4 },
        Edit::SetExternal {
            external: vec![2; 16],
        },
    ];
    let structure = LogRecord::Structure(StructureRecord {
        database: 1,
        dbtime: 100,
        pages_owned: 300,
        pages: vec![PageEdits {
            page: 40,
            dbtime_before: 99,
            edits,
        }],
    });
    let image = LogRecord::Image(ImageRecord {
        database: 1,
        page: 40,
        front: vec![1; 300],
        back: vec![2; 20],
    });
    let splice = RowChange::Splice {
        at: 4,
        old: vec![1; 9],
        new: vec![2; 12],
    };
    let delta = RowChange::Delta {
        at: 4,
        width: 8,
        amount: -3,
    };
    let insert = RowChange::Insert { data: vec![3; 60] };
    let records = [
        structure,
        image,
        row(splice),
        row(delta),
        row(insert),
        LogRecord::Term,
    ];
    records.iter().map(LogRecord::encode).collect()
}

fn corpus() -> Corpus {
    let plan = Plan {
        long_values: Some(LongValues {
            every: 5,
            bytes: 9_000,
        }),
        ..Plan::new(PageSize::KIB_4, Extent::Records(200), 4)
    };
    let prepared = PreparedDatabase::new(plan).expect("a possible plan");
    let mut pages = Vec::new();
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        let plan = Plan::new(size, Extent::Records(100), 5);
        let database = PreparedDatabase::new(plan).expect("a possible plan");
        for page in 1..=database.pages().min(80) {
            let mut bytes = vec![0; size.bytes()];
            database.page(page, &mut bytes);
            pages.push((size, bytes));
        }
    }
    let signature = Signature::new(5, LogTime::default());
    let framings = [Framing::Sectors512, Framing::Segments4096];
    let log_header = |framing| GenerationHeader {
        generation: 3,
        created: LogTime::default(),
        previous_created: LogTime::default(),
        previous_end: Lsn::ZERO,
        signature,
        framing,
        page_size: PageSize::KIB_4,
        flush: 9,
        circular: true,
    };
    let unit = |framing: Framing| {
        let mut unit = vec![0; framing.unit_bytes()];
        framing.encode(&mut unit, 3, 12, 9, &[7; 100], LogTime::default());
        (framing, unit)
    };
    Corpus {
        headers: vec![prepared.header_page()],
        log_headers: framings.map(|framing| log_header(framing).encode()).to_vec(),
        records: log_records(),
        units: framings.map(unit).to_vec(),
        checkpoints: vec![encode_checkpoint(Lsn::new(3, 99), signature, Framing::Sectors512)],
        map_pages: vec![vec![0x55; 8192]],
        pages,
        prepared,
    }
}

/// Changes bytes in one to eight ways.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        let length = bytes.len() as u64;
        if length == 0 {
            return;
        }
        let at = random.below(length) as usize;
        match random.below(8) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next_u64() as u8,
            3 => {
                let limits = [0u32, 1, 0x7FFF, 0x8000, 0xFFFF, u32::MAX, 0x7FFF_FFFF];
                let value = limits[random.below(7) as usize].to_le_bytes();
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            4 => {
                let end = (at + random.below(64) as usize).min(bytes.len());
                random.fill(&mut bytes[at..end]);
            }
            5 => {
                let count = random.below(length - at as u64) as usize;
                let to = random.below(length - count as u64) as usize;
                bytes.copy_within(at..at + count, to);
            }
            // Where pages have their tags.
            6 => {
                let back = 1 + random.below(length.min(64)) as usize;
                let last = bytes.len() - back;
                bytes[last] = random.next_u64() as u8;
            }
            _ => {}
        }
    }
}

fn fix_header(bytes: &mut [u8], random: &mut Random) {
    if bytes.len() > 8 && random.chance(0.5) {
        let checksum = header_checksum(bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    }
}

fn pick<'a, T>(from: &'a [T], random: &mut Random) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// Gives one decoder one input.
fn one(corpus: &Corpus, random: &mut Random) {
    match random.below(8) {
        0 => {
            let mut bytes = pick(&corpus.headers, random).clone();
            mutate(&mut bytes, random);
            fix_header(&mut bytes, random);
            let _ = DatabaseHeader::decode(&bytes).map(|header| header.encode());
            let _ = DatabaseHeader::choose(&[bytes.clone(), bytes.clone()].concat());
            let _ = FileType::of_header(&bytes);
        }
        1 => {
            let mut bytes = pick(&corpus.log_headers, random).clone();
            mutate(&mut bytes, random);
            fix_header(&mut bytes, random);
            let _ = GenerationHeader::decode(&bytes).map(|header| header.encode());
        }
        2 | 3 => {
            let mut bytes = pick(&corpus.records, random).clone();
            mutate(&mut bytes, random);
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            if let Ok(Some((record, used_bytes))) = LogRecord::decode(&bytes) {
                assert!(used_bytes <= bytes.len());
                let _ = record.encode();
            }
        }
        4 => {
            let (framing, mut unit) = pick(&corpus.units, random).clone();
            mutate(&mut unit, random);
            let _ = framing.decode(&unit, 3, 12);
        }
        5 => {
            let mut bytes = pick(&corpus.checkpoints, random).clone();
            mutate(&mut bytes, random);
            fix_header(&mut bytes, random);
            let _ = decode_checkpoint(&bytes);
            let mut bytes = pick(&corpus.map_pages, random).clone();
            mutate(&mut bytes, random);
            fix_header(&mut bytes, random);
            let _ = decode_map_header(&bytes);
            let _ = map_page_is_whole(random.below(4) as u32, &bytes);
        }
        6 => look_at_page(corpus, random),
        _ => {
            let table = corpus.prepared.schema();
            let mut bytes = corpus.prepared.record(random.below(200), 0);
            mutate(&mut bytes, random);
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            let layout = RecordLayout::of(&table);
            if let Ok(record) = Record::parse(&bytes, &layout, PageSize::KIB_4) {
                for column in &table.columns {
                    let _ = record.value(column.id);
                }
                let _ = record.tagged_columns().count();
            }
        }
    }
}

fn look_at_page(corpus: &Corpus, random: &mut Random) {
    let (size, mut bytes) = pick(&corpus.pages, random).clone();
    mutate(&mut bytes, random);
    bytes.resize(size.bytes(), 0);
    let number = random.below(100) as u32 + 1;
    if random.chance(0.5) {
        set_checksum(&mut bytes, number);
    }
    let _ = classify(&bytes, number);
    let _ = mend(&mut bytes.clone(), number);
    let view = PageView::new(&bytes, size);
    let _ = (view.external(), view.check_structure());
    // What the engine does with a page begins with its bounds.
    if view.check_bounds().is_err() {
        return;
    }
    for line in 0..view.lines() {
        if let Ok(node) = view.node(line) {
            let _ = (node.key(), node.is_deleted());
        }
        let _ = view.child(line);
    }
    let _ = (view.find(b"key"), view.find_child(b"key"));
}

/// Runs inputs `first..` until `enough` says so; returns how many.
fn fuzz(first: u64, mut enough: impl FnMut(u64) -> bool) -> u64 {
    let corpus = corpus();
    let mut seed = first;
    while !enough(seed - first) {
        let mut random = Random::from_seed(seed).child("fuzz");
        let ended = catch_unwind(AssertUnwindSafe(|| one(&corpus, &mut random)));
        assert!(ended.is_ok(), "input {seed} makes a decoder panic");
        seed += 1;
    }
    seed - first
}

#[test]
fn no_decoder_panics_on_mutated_bytes() {
    fuzz(0, |done| done >= 40_000);
}

#[test]
#[ignore = "as long as told: `make fuzz SECONDS=n`"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long to go on is chosen from outside, in real time"
)]
fn no_decoder_panics_for_as_long_as_told() {
    let number = |name: &str, usual: u64| {
        let text = std::env::var(name).ok().filter(|text| !text.is_empty());
        text.map_or(usual, |text| text.parse().expect("a number"))
    };
    let (seconds, seed) = (number("PLIMSOLL_FUZZ_SECONDS", 5), number("PLIMSOLL_SEED", 1));
    let started = std::time::Instant::now();
    let inputs = fuzz(seed * 1_000_000_000_000, |done| {
        done % 1_000 == 0 && started.elapsed().as_secs() >= seconds
    });
    println!("{inputs} inputs in {seconds} s, none of which makes a decoder panic");
}
