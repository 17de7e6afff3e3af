//! Damaged pages: every page that was ever written, whatever it is there for, of databases with
//! pages of each size.

use std::ops::Bound;

use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::error::{EngineError, PageDamage};
use plimsoll_engine::page::PageView;
use plimsoll_engine::{PageClass, PageSize, classify, set_checksum};
use plimsoll_io::Random;

use crate::damage::patient::Patient;
use crate::damage::{Fate, Table};
use crate::seeds::seeds;
use crate::support::*;

/// The first eight bytes are the checksum, and this bit says which checksum a page has: it cannot
/// correct a flip of itself.
const CHECKSUM_BITS: u64 = 64;
const FLAG_BIT: u64 = 36 * 8 + 13;

const KINDS: [&str; 13] = [
    "one flipped bit",
    "one flipped bit of the checksum",
    "several flipped bits, one to a block",
    "two flipped bits of a block",
    "three or more flipped bits of a block, an odd number",
    "four or more flipped bits of a block, an even number",
    "swapped with another page",
    "another page written to its place",
    "stale",
    "stale by three writes",
    "zeroed",
    "torn",
    "a sector of garbage",
];

fn flip(bytes: &mut [u8], bit: u64) {
    bytes[bit as usize / 8] ^= 1 << (bit % 8);
}

/// Flips so many different bits. A page of more than 8 KiB has four blocks, each with a checksum of
/// its own.
fn flip_some(page: &mut [u8], count: usize, random: &mut Random) -> &'static str {
    let blocks = if page.len() > 8192 { 4 } else { 1 };
    let bits_per_block = page.len() as u64 * 8 / blocks;
    let (mut bits, mut in_block) = (Vec::new(), [0; 4]);
    while bits.len() < count {
        let bit = CHECKSUM_BITS + random.below(page.len() as u64 * 8 - CHECKSUM_BITS);
        if bit != FLAG_BIT && !bits.contains(&bit) {
            flip(page, bit);
            bits.push(bit);
            in_block[(bit / bits_per_block) as usize] += 1;
        }
    }
    match in_block {
        _ if count == 1 => "one flipped bit",
        _ if in_block.iter().all(|flips| *flips <= 1) => "several flipped bits, one to a block",
        _ if in_block.contains(&2) => "two flipped bits of a block",
        _ if in_block.iter().any(|flips| *flips > 0 && flips % 2 == 0) => {
            "four or more flipped bits of a block, an even number"
        }
        _ => "three or more flipped bits of a block, an odd number",
    }
}

/// Damages a page; what kind of damage it was, or `None` where this page cannot be damaged in the
/// way drawn.
fn damage_page(
    patient: &Patient,
    bytes: &mut [u8],
    page: u32,
    random: &mut Random,
) -> Option<&'static str> {
    let range = patient.place(page);
    let other = patient.pages[random.below(patient.pages.len() as u64) as usize];
    let sectors = patient.size.bytes() as u64 / 512;
    let kind = match random.below(11) {
        0 => flip_some(&mut bytes[range.clone()], 1, random),
        1 => {
            let bit = random.below(CHECKSUM_BITS + 1);
            let bit = if bit == CHECKSUM_BITS { FLAG_BIT } else { bit };
            flip(&mut bytes[range.clone()], bit);
            "one flipped bit of the checksum"
        }
        2 => flip_some(&mut bytes[range.clone()], 2, random),
        3 => flip_some(&mut bytes[range.clone()], 3, random),
        4 => {
            let count = 4 + random.below(5) as usize;
            flip_some(&mut bytes[range.clone()], count, random)
        }
        5 => {
            let other = patient.place(other);
            bytes[range.clone()].copy_from_slice(&patient.new[other.clone()]);
            bytes[other].copy_from_slice(&patient.new[range.clone()]);
            "swapped with another page"
        }
        6 => {
            bytes.copy_within(patient.place(other), range.start);
            "another page written to its place"
        }
        7 => {
            let before = patient.before(page, random)?;
            bytes[range.clone()].copy_from_slice(before);
            let flush_type = |page| PageView::new(page, patient.size).flush_type();
            if flush_type(before) == flush_type(&patient.new[range.clone()]) {
                // Three writes later the flush type is the same again.
                "stale by three writes"
            } else {
                "stale"
            }
        }
        8 => {
            bytes[range.clone()].fill(0);
            "zeroed"
        }
        9 => {
            let before = patient.before(page, random)?;
            let from = 512 * (1 + random.below(sectors - 1)) as usize;
            // The head or the tail is what was written.
            let lost = if random.chance(0.5) { from..before.len() } else { 0..from };
            let at = range.start + lost.start;
            bytes[at..at + lost.len()].copy_from_slice(&before[lost]);
            if bytes[range.clone()] == *before {
                return None;
            }
            "torn"
        }
        _ => {
            let at = range.start + 512 * random.below(sectors) as usize;
            random.fill(&mut bytes[at..at + 512]);
            "a sector of garbage"
        }
    };
    (bytes[range.clone()] != patient.new[range]).then_some(kind)
}

/// What a damage may come to, by its kind.
fn check(kind: &str, fate: Fate, counted: (u64, u64), label: &str) {
    let (correctable, damaged) = counted;
    let is_told = matches!(fate, Fate::Refused | Fate::Noticed);
    match kind {
        "one flipped bit" | "several flipped bits, one to a block" => {
            assert!((fate, counted) == (Fate::Mended, (1, 0)), "{label}");
        }
        // The flush type is right again, or the damage looks like one flip.
        "stale by three writes" | "three or more flipped bits of a block, an odd number" => {}
        // A stale page is sound by itself: only the flush map knows.
        "stale" => assert!(is_told, "{label}"),
        _ => assert!(is_told && damaged > 0 && correctable == 0, "{label}"),
    }
}

/// Does as many damages, most of them to pages of 4 KiB.
fn campaign(first: u64, count: u64) {
    let mut table = Table::default();
    let shares =
        [(PageSize::KIB_4, 7), (PageSize::KIB_8, 1), (PageSize::KIB_16, 1), (PageSize::KIB_32, 1)];
    for (size, tenths) in shares {
        let patient = Patient::new(size);
        assert!(patient.pages.len() > 30, "{} pages", patient.pages.len());
        let (mut done, mut seed) = (0, first);
        while done < (count * tenths).div_ceil(10) {
            let mut random = Random::from_seed(seed).child("damage");
            let mut bytes = patient.new.clone();
            let page = patient.pages[random.below(patient.pages.len() as u64) as usize];
            if let Some(kind) = damage_page(&patient, &mut bytes, page, &mut random) {
                let role = patient.role(page);
                let (fate, seen) = patient.examine(&patient.copy(&bytes));
                let label = format!(
                    "{size:?}, seed {seed}: {kind}, page {page} ({role}): {fate:?}, {seen:?}"
                );
                check(kind, fate, (seen.correctable, seen.damaged), &label);
                table.note(kind, fate, role);
                done += 1;
            }
            seed += 1;
        }
    }
    table.print("pages");
    assert!(table.total() >= count);
    // So many meet everything.
    if count >= 400 {
        for kind in KINDS {
            assert!(table.met(kind), "no damage of the kind: {kind}");
        }
        for role in
            ["database root", "space", "catalog", "root", "branch", "leaf", "index", "long values"]
        {
            assert!(table.met_place(role), "no damage to: {role}");
        }
    }
}

#[test]
fn a_damaged_page_is_mended_or_refused_and_never_an_answer() {
    campaign(0, seeds(400));
}

#[test]
#[ignore = "slow: 100,000 damages; `make slow`, `make damage`"]
fn a_hundred_thousand_damages_are_mended_or_refused() {
    campaign(1_000_000, 100_000);
}

/// The patient's pages are what the campaign takes them for.
#[test]
fn the_patient_is_sound_before_it_is_damaged() {
    for size in PageSize::ALL {
        let patient = Patient::new(size);
        for page in &patient.pages {
            assert_eq!(classify(&patient.new[patient.place(*page)], *page), PageClass::Ok);
        }
        assert_eq!(patient.examine(&patient.copy(&patient.new)).0, Fate::Harmless);
    }
}

/// Leaves that are sound each by itself and lead to each other: whoever looks for a row behind them
/// all is told, and does not go around for ever.
///
/// Found by the slow campaign, in a page whose last three writes were lost.
#[test]
fn leaves_that_lead_around_in_circles_are_refused() {
    let patient = Patient::new(PageSize::KIB_4);
    let mut bytes = patient.new.clone();
    let view = |page: u32| PageView::new(&patient.new[patient.place(page)], patient.size);
    let is_last = |page: &&u32| {
        let (page, leaf) = (**page, view(**page));
        // Pages that were given back still say what they were.
        let is_linked = leaf.previous() != 0 && view(leaf.previous()).next() == page;
        leaf.object() == patient.tree.object && leaf.is_leaf() && leaf.next() == 0 && is_linked
    };
    let last = *patient.pages.iter().find(is_last).expect("a last leaf");
    let before = view(last).previous();
    let range = patient.place(last);
    bytes[range.start + 20..range.start + 24].copy_from_slice(&before.to_le_bytes());
    set_checksum(&mut bytes[range], last);
    let (tree, copy) = (patient.tree, patient.copy(&bytes));
    let found = run_on(&copy.clock().clone(), &copy, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &Setup::default(), 9).await.unwrap();
        let transaction = instance.begin();
        let range = KeyRange { low: Bound::Included(vec![b'z']), high: Bound::Unbounded };
        let mut cursor = Cursor::new(&transaction, tree, range, Direction::Forward);
        let found = cursor.next().await;
        drop(transaction);
        let _ = instance.close().await;
        found
    })
    .unwrap();
    assert!(
        matches!(&found, Err(EngineError::DamagedPage { damage: PageDamage::Link(_), .. })),
        "{found:?}"
    );
}
