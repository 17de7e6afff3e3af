//! Damaged flush maps, headers and checkpoints.

use plimsoll_engine::PageSize;
use plimsoll_engine::flushmap::flush_map_path;
use plimsoll_io::{Loss, Random};

use crate::damage::logs::{Stop, cut_off, recovered};
use crate::damage::patient::Patient;
use crate::damage::{Fate, Table};
use crate::seeds::seeds;
use crate::support::*;

/// A damaged flush map accuses no sound page; neither does the map of another database.
fn maps(first: u64, count: u64) {
    let patient = Patient::new(PageSize::KIB_4);
    let map = flush_map_path(&database_path(1));
    let sound = patient.disk.bytes(&map).unwrap();
    let mut table = Table::default();
    for seed in first..first + count {
        let mut random = Random::from_seed(seed).child("map");
        let mut bytes = sound.clone();
        let kind = match random.below(5) {
            0 => {
                for _ in 0..2 + random.below(200) {
                    let at = match random.below(3) {
                        0 => random.below(bytes.len() as u64),
                        // Where the types of the first pages lie.
                        1 => 8192 + 40 + random.below(200),
                        // The signature of the database.
                        _ => 16 + random.below(28),
                    };
                    bytes[at as usize] ^= 1 << random.below(8);
                }
                "many flipped bits"
            }
            1 => {
                let at = 8192 + random.below(240) as usize;
                bytes[at] ^= 1 << random.below(8);
                "one flipped bit among the types"
            }
            2 => {
                let at = 512 * random.below(bytes.len() as u64 / 512) as usize;
                random.fill(&mut bytes[at..at + 512]);
                "a sector of garbage"
            }
            3 => {
                bytes.truncate(512 * random.below(bytes.len() as u64 / 512) as usize);
                "cut short"
            }
            _ => {
                of_another_database(&mut bytes, &mut random);
                "of another database"
            }
        };
        if bytes == sound {
            continue;
        }
        let damaged = patient.copy(&patient.new);
        damaged.load(&map, &bytes);
        let fate = patient.examine(&damaged).0;
        assert_eq!(fate, Fate::Harmless, "seed {seed}: {kind}");
        table.note(kind, fate, "flush map");
    }
    table.print("flush maps");
}

/// Sound by itself, but with another signature, and all its types are wrong.
fn of_another_database(bytes: &mut [u8], random: &mut Random) {
    bytes[16 + random.below(28) as usize] ^= 1 << random.below(8);
    bytes[8192 + 40..8192 + 400].iter_mut().for_each(|byte| *byte ^= 0xFF);
    let checksum = plimsoll_engine::header_checksum(&bytes[..8192]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    let checksum = plimsoll_engine::block_checksum(&bytes[8192..16384], 1, true);
    bytes[8192..8200].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_damaged_flush_map_accuses_nobody() {
    maps(0, seeds(20));
}

/// Either copy of a header is enough; without both the database is refused.
fn headers(first: u64, count: u64) {
    let mut table = Table::default();
    for (size, tenths) in [(PageSize::KIB_4, 8), (PageSize::KIB_32, 2)] {
        let patient = Patient::new(size);
        for seed in first..first + (count * tenths).div_ceil(10) {
            let mut random = Random::from_seed(seed).child("header");
            let mut bytes = patient.new.clone();
            let (copies, kind) = match seed % 3 {
                0 => (&[0][..], "the first copy"),
                1 => (&[1][..], "the second copy"),
                _ => (&[0, 1][..], "both copies"),
            };
            for copy in copies {
                let start = copy * size.bytes();
                match random.below(4) {
                    0 => random.fill(&mut bytes[start..start + 512]),
                    1 => bytes[start..start + size.bytes()].fill(0),
                    _ => {
                        let at = start + random.below(700) as usize;
                        bytes[at] ^= 1 << random.below(8);
                    }
                }
            }
            let fate = patient.examine(&patient.copy(&bytes)).0;
            let is_right = match copies.len() {
                2 => fate == Fate::Refused,
                _ => fate == Fate::Harmless,
            };
            assert!(is_right, "{size:?}, seed {seed}: {kind}: {fate:?}");
            table.note(kind, fate, "header");
        }
    }
    table.print("headers");
}

#[test]
fn one_damaged_header_is_harmless_and_two_are_refused() {
    headers(0, seeds(12));
}

/// With one block of the checkpoint damaged redo starts where it would have; with both it starts
/// earlier and comes to the same.
fn checkpoints(first: u64, count: u64) {
    let Stop { disk, field, ledger } = cut_off(96);
    let chk = "/log/E00.chk";
    let sound = disk.bytes(chk).unwrap();
    let whole = disk.crash_image(Loss::Nothing, &mut Random::from_seed(1));
    let (start, all) = recovered(&whole, &field, &ledger).unwrap();
    let mut table = Table::default();
    for seed in first..first + count {
        let mut random = Random::from_seed(seed).child("checkpoint");
        let mut bytes = sound.clone();
        let (blocks, kind) = match seed % 3 {
            0 => (&[0][..], "the first block"),
            1 => (&[1][..], "the second block"),
            _ => (&[0, 1][..], "both blocks"),
        };
        for block in blocks {
            // The generation and offset that count, or anything.
            let at = if random.chance(0.7) { 48 + random.below(8) } else { random.below(700) };
            bytes[block * 4096 + at as usize] ^= 1 << random.below(8);
        }
        let damaged = disk.crash_image(Loss::Nothing, &mut random);
        damaged.load(chk, &bytes);
        let (started, survived) = recovered(&damaged, &field, &ledger)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(survived, all, "seed {seed}");
        if blocks.len() == 1 {
            assert_eq!(started, start, "seed {seed}: the other block was not used");
        } else {
            assert!(started <= start, "seed {seed}: redo started too late");
        }
        table.note(kind, Fate::Harmless, "checkpoint");
    }
    table.print("checkpoints");
}

#[test]
fn a_damaged_checkpoint_costs_time_and_no_data() {
    checkpoints(0, seeds(12));
}

#[test]
#[ignore = "slow: thousands of damages; `make slow`, `make damage`"]
fn thousands_of_damages_to_flush_maps_headers_and_checkpoints() {
    maps(1_000_000, 3_000);
    headers(1_000_000, 3_000);
    checkpoints(1_000_000, 1_500);
}
