//! The checksum against vectors on which three independent implementations agree, and the classes a
//! page can have.
//!
//! Why it matters: a wrong checksum makes every database unreadable to every other tool, and a
//! wrong correction silently changes data.

use crate::golden::{golden, golden_json};
use plimsoll_engine::{
    PageClass, block_checksum, classify, copy_and_checksum, correct, header_checksum,
    page_checksums, set_checksum, stored_checksums,
};
use proptest::prelude::*;
use serde_json::Value;

fn splitmix64_bytes(mut state: u64, length_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length_bytes);
    while bytes.len() < length_bytes {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes
}

/// The definition, bit by bit: slow and obviously right.
fn checksum_by_definition(block: &[u8], page_number: u32, is_header_block: bool) -> u64 {
    let all_bits = block.len() as u32 * 8 - 1;
    let (mut low, mut high, mut xor) = (0, 0, page_number);
    for (index, byte) in block.iter().enumerate().skip(if is_header_block { 8 } else { 0 }) {
        xor ^= u32::from(*byte) << (index % 4 * 8);
        for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
            let number = index as u32 * 8 + bit;
            low ^= number;
            high ^= number ^ all_bits;
        }
    }
    u64::from(high << 16 | low) << 32 | u64::from(xor)
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("hexadecimal text"), 16).expect("hexadecimal")
}

fn number(value: &Value) -> u32 {
    value.as_u64().expect("a number") as u32
}

fn flip(page: &mut [u8], bit: usize) {
    page[bit / 8] ^= 1 << (bit % 8);
}

/// Blocks of every length, with and without the header rule, have exactly the published sums.
#[test]
fn blocks_have_the_golden_checksums() {
    let vectors = golden_json("vectors.json");
    let blocks = vectors["blocks"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 96);
    for vector in blocks {
        let block = splitmix64_bytes(
            vector["splitmix64_seed"].as_u64().expect("seed"),
            number(&vector["block_bytes"]) as usize,
        );
        let is_header_block = vector["header_block"].as_bool().expect("bool");
        let sum = block_checksum(&block, number(&vector["pgno"]), is_header_block);
        assert_eq!(sum, hex(&vector["checksum64"]), "{vector}");
    }
}

/// Every golden page, flipped as the case says, gets the expected class, sums and corrected
/// content.
#[test]
fn pages_have_the_golden_classes() {
    let vectors = golden_json("vectors.json");
    let mut cases = 0;
    for page in vectors["pages"].as_array().expect("pages") {
        let size = number(&page["page_size"]) as usize;
        let file = golden(page["file"].as_str().expect("file"));
        let index = number(&page["index"]) as usize;
        let original = &file[index * size..(index + 1) * size];
        for case in page["cases"].as_array().expect("cases") {
            check_case(original, case);
            cases += 1;
        }
    }
    assert_eq!(cases, 170);
}

fn check_case(original: &[u8], case: &Value) {
    let mut page = original.to_vec();
    if case["all_zero"].as_bool() == Some(true) {
        page.fill(0);
    }
    for bit in case["flip_bits"].as_array().expect("flips") {
        flip(&mut page, number(bit) as usize);
    }
    let page_number = number(&case["check_as_pgno"]);
    if let Some(computed) = case["computed"].as_array() {
        let sums = page_checksums(&page, page_number);
        let expected: Vec<u64> = computed.iter().map(hex).collect();
        assert_eq!(&sums[..expected.len()], expected, "{case}");
    }
    let class = classify(&page, page_number);
    let expected = case["expect"].as_str().expect("class");
    let fits = match class {
        PageClass::Ok => expected.starts_with("ok"),
        PageClass::Uninitialized => expected == "uninitialized",
        PageClass::Correctable { .. } => expected == "correctable",
        PageClass::Bad { .. } => expected == "bad",
        // The vectors know only the strict rule, which cannot tell a misplaced page from a damaged
        // one.
        PageClass::WrongPageNumber { .. } => {
            expected.starts_with("wrong_pgno")
                || (expected == "bad" && case["name"].as_str().unwrap().starts_with("checked_at"))
        }
    };
    assert!(fits, "{class:?} instead of {case}");
    check_correction(original, page, case);
}

fn check_correction(original: &[u8], mut page: Vec<u8>, case: &Value) {
    let damaged = page.clone();
    let page_number = number(&case["check_as_pgno"]);
    let bits = correct(&mut page, page_number);
    if case["expect"] != "correctable" {
        assert_eq!(bits, None, "{case}");
        assert_eq!(page, damaged, "a page that is not correctable stays as it is: {case}");
        return;
    }
    let bits = bits.expect("a correctable page is corrected");
    assert_eq!(bits.as_slice()[0], number(&case["first_corrected_bit"]), "{case}");
    assert_eq!(case["corrected_equals_original"], page == original, "{case}");
    assert_eq!(classify(&page, page_number), PageClass::Ok, "{case}");
}

/// A page found at the wrong place is recognised and the page it really is is named, although the
/// strict rule only sees damage.
#[test]
fn a_misplaced_page_is_named() {
    for size in [4096, 8192, 16384, 32768] {
        for (written_as, found_at) in [(7, 8), (1001, 1002), (0x1234, 0x4321)] {
            let mut page = splitmix64_bytes(size as u64, size);
            if size > 8192 {
                page[64..68].copy_from_slice(&u32::to_le_bytes(written_as));
            }
            page[37] |= 0x20;
            set_checksum(&mut page, written_as);
            let class = classify(&page, found_at);
            assert!(
                matches!(class, PageClass::WrongPageNumber { found, .. } if found == written_as),
                "{size}: {class:?}"
            );
        }
    }
}

/// On a small page, a flip in the stored sum looks the same as a misplacement by that bit. It is
/// called damage, and the page it might be is offered to callers who know more.
#[test]
fn a_difference_of_one_bit_on_a_small_page_is_damage_until_proven_otherwise() {
    let mut page = splitmix64_bytes(1, 4096);
    page[37] |= 0x20;
    set_checksum(&mut page, 40);
    let PageClass::Bad { damage } = classify(&page, 41) else {
        panic!("a misplaced small page is not sound");
    };
    assert_eq!(damage.page_if_misplaced(41), Some(40));
    let PageClass::Bad { damage } = ({
        page[100] ^= 3;
        classify(&page, 41)
    }) else {
        panic!("two flips cannot be corrected");
    };
    assert_eq!(damage.page_if_misplaced(41), None);
}

/// Copying and summing in one pass gives the same bytes as copying first.
#[test]
fn the_fused_copy_equals_copy_then_sum() {
    for size in [4096, 8192, 16384, 32768] {
        let source = splitmix64_bytes(99, size);
        let mut expected = source.clone();
        set_checksum(&mut expected, 12345);
        let mut target = vec![0xEE; size];
        copy_and_checksum(&source, &mut target, 12345);
        assert!(target == expected, "{size}");
        assert_eq!(stored_checksums(&target), page_checksums(&target, 12345));
    }
}

/// The header sum leaves out its own four bytes and nothing else.
#[test]
fn the_header_checksum_covers_all_but_itself() {
    let mut header = splitmix64_bytes(5, 4096);
    let sum = header_checksum(&header);
    header[..4].fill(0);
    assert_eq!(header_checksum(&header), sum);
    header[4095] ^= 0x80;
    assert_eq!(header_checksum(&header), sum ^ 0x8000_0000);
}

proptest! {
    /// The fast kernel computes the definition, whatever the content.
    #[test]
    fn the_kernel_computes_the_definition(seed: u64, exponent in 10u32..14, page_number: u32,
        is_header_block: bool) {
        let block = splitmix64_bytes(seed, 1 << exponent);
        prop_assert_eq!(
            block_checksum(&block, page_number, is_header_block),
            checksum_by_definition(&block, page_number, is_header_block)
        );
    }

    /// Any one flipped bit of a page is found and flipped back, except in the first eight bytes,
    /// where the sum itself lies, and in the bit that says which kind of sum it is.
    #[test]
    fn every_single_flip_is_corrected(seed: u64, bit in 64usize..32768) {
        prop_assume!(bit != 37 * 8 + 5);
        let mut page = splitmix64_bytes(seed, 4096);
        page[37] |= 0x20;
        set_checksum(&mut page, 77);
        let original = page.clone();
        flip(&mut page, bit);
        let bits = correct(&mut page, 77);
        prop_assert_eq!(bits.as_ref().map(|bits| bits.as_slice()), Some(&[bit as u32][..]));
        prop_assert!(page == original);
    }
}
