//! A page is a small sorted map. Whatever is done to it, it must agree with a `BTreeMap` and keep
//! its books straight, because the checksum protects only what was written, not what was meant.

use std::collections::BTreeMap;

use plimsoll_engine::PageSize;
use plimsoll_engine::page::{PageMut, PageView, node_flags, page_flags};
use plimsoll_io::Random;

fn check(bytes: &[u8], size: PageSize, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let view = PageView::new(bytes, size);
    view.check_structure().unwrap();
    assert_eq!(view.lines(), expected.len());
    for (line, (key, data)) in expected.iter().enumerate() {
        let node = view.node(line).unwrap();
        assert_eq!((&node.key(), node.data), (key, &data[..]));
        assert_eq!(view.find(key).unwrap(), Ok(line));
    }
}

fn random_bytes(random: &mut Random, below: u64) -> Vec<u8> {
    let mut bytes = vec![0; 1 + random.below(below) as usize];
    random.fill(&mut bytes);
    bytes
}

#[test]
fn random_changes_agree_with_a_map_on_every_page_size() {
    for size in PageSize::ALL {
        for seed in 0..6 {
            let mut random = Random::from_seed(seed);
            let mut bytes = vec![0; size.bytes()];
            let prefix = b"shared-prefix".to_vec();
            PageMut::new(&mut bytes, size).format(7, 8, page_flags::LEAF, &prefix);
            let mut model = BTreeMap::new();
            for _ in 0..2000 {
                change_once(&mut bytes, size, &mut model, &prefix, &mut random);
            }
            check(&bytes, size, &model);
        }
    }
}

fn change_once(
    bytes: &mut [u8],
    size: PageSize,
    model: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    prefix: &[u8],
    random: &mut Random,
) {
    let mut page = PageMut::new(bytes, size);
    let mut key =
        if random.chance(0.7) { prefix[..random.below(14) as usize].to_vec() } else { Vec::new() };
    key.extend(random_bytes(random, 6));
    let data = random_bytes(random, 200);
    match page.view().find(&key).unwrap() {
        Err(line) => {
            if page.cost_here_bytes(&key, &data) <= page.view().free_bytes() {
                page.insert(line, 0, &key, &data);
                model.insert(key, data);
            } else if page.view().lines() > 0 {
                let line = random.below(page.view().lines() as u64) as usize;
                let removed = page.view().node(line).unwrap().key();
                page.remove(line);
                model.remove(&removed);
            }
        }
        Ok(line) => {
            let old = model[&key].clone();
            let at = random.below(old.len() as u64 + 1) as usize;
            let removed = random.below((old.len() - at) as u64 + 1) as usize;
            if data.len() <= page.view().free_bytes() + removed
                && old.len() - removed + data.len() > 0
            {
                page.splice(line, at, removed, &data);
                model.insert(key, [&old[..at], &data, &old[at + removed..]].concat());
            }
        }
    }
}

#[test]
fn deleting_by_flag_keeps_key_and_data_on_small_and_large_pages() {
    for size in PageSize::ALL {
        let mut bytes = vec![0; size.bytes()];
        let mut page = PageMut::new(&mut bytes, size);
        page.format(5, 8, page_flags::LEAF, b"prefix");
        page.insert(0, 0, b"prefix-one", b"1");
        page.insert(1, 0, b"x", b"2");
        for line in 0..2 {
            page.set_node_flags(line, node_flags::DELETED);
        }
        let view = page.view();
        assert!(view.node(0).unwrap().is_deleted() && view.node(1).unwrap().is_deleted());
        assert_eq!(view.node(0).unwrap().key(), b"prefix-one");
        assert_eq!(view.node(1).unwrap().data, b"2");
        page.set_node_flags(0, 0);
        assert!(!page.view().node(0).unwrap().is_deleted());
        page.view().check_structure().unwrap();
    }
}

#[test]
fn an_empty_root_has_the_free_space_that_windows_writes() {
    // Check values read from databases made by Windows (16-byte space header in tag 0).
    for (size, free_bytes) in [(PageSize::KIB_4, 4036), (PageSize::KIB_32, 32668)] {
        let mut bytes = vec![0; size.bytes()];
        let mut page = PageMut::new(&mut bytes, size);
        page.format(1, 1, page_flags::ROOT | page_flags::LEAF, &[0; 16]);
        assert_eq!(page.view().free_bytes(), free_bytes);
    }
}

#[test]
fn garbage_never_panics() {
    for seed in 0..300 {
        let mut random = Random::from_seed(seed);
        for size in PageSize::ALL {
            let mut bytes = vec![0; size.bytes()];
            random.fill(&mut bytes);
            let view = PageView::new(&bytes, size);
            let _ = view.check_structure();
            let _ = view.find(b"key");
            let _ = view.find_child(b"key");
            for line in 0..view.lines() {
                let _ = view.node(line).map(|node| node.key());
            }
        }
    }
}

#[test]
fn a_branch_sends_each_key_below_its_strict_upper_bound() {
    let size = PageSize::KIB_8;
    let mut bytes = vec![0; size.bytes()];
    let mut page = PageMut::new(&mut bytes, size);
    page.format(9, 8, page_flags::PARENT_OF_LEAF, b"");
    page.insert(0, 0, b"f", &10u32.to_le_bytes());
    page.insert(1, 0, b"p", &11u32.to_le_bytes());
    page.insert(2, 0, b"", &12u32.to_le_bytes());
    page.view().check_structure().unwrap();
    for (key, child) in [("a", 10), ("e", 10), ("f", 11), ("o", 11), ("p", 12), ("z", 12)] {
        let line = page.view().find_child(key.as_bytes()).unwrap();
        assert_eq!(page.view().child(line).unwrap(), child, "key {key}");
    }
}

/// Keys as branches have them: spread evenly, in clusters, ever closer, of different lengths, few.
fn separators(spread: usize, prefix: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
    let count = [40, 90, 700][random.below(3) as usize];
    let number = |index: u64, random: &mut Random| match spread {
        0 => index * 1_000_003,
        1 => (index / 30) << 40 | index,
        2 => 1 << (index % 60),
        3 => u64::MAX - (1 << (index % 60)),
        _ => random.below(u64::MAX),
    };
    let mut keys: Vec<Vec<u8>> = (0..count)
        .map(|index| {
            let word = number(index, random).to_be_bytes();
            let bytes = if spread == 5 { 1 + random.below(8) as usize } else { 8 };
            [prefix, &word[..bytes]].concat()
        })
        .collect();
    if spread == 6 {
        // Some begin with nothing or a part of what the page's other keys share.
        for key in keys.iter_mut().take(30) {
            key.drain(..random.below(prefix.len() as u64 + 1) as usize);
        }
    }
    keys.sort();
    keys.dedup();
    keys.retain(|key| !key.is_empty());
    keys
}

/// The child of a key is looked for near where evenly spread keys would have it. However they are
/// spread, it must be the first whose separator is above the key, or rows are looked for on pages
/// that do not have them.
#[test]
fn the_child_of_a_key_is_the_first_with_a_separator_above_it() {
    let (size, mut random) = (PageSize::KIB_32, Random::from_seed(12));
    for round in 0..70 {
        let prefix = [&b""[..], b"\x7F\x80\0\0"][round % 2];
        let keys = separators(round % 7, prefix, &mut random);
        let mut bytes = vec![0; size.bytes()];
        let mut page = PageMut::new(&mut bytes, size);
        page.format(7, 8, page_flags::PARENT_OF_LEAF, prefix);
        for (line, key) in keys.iter().enumerate() {
            page.insert(line, 0, key, &(line as u32).to_le_bytes());
        }
        page.insert(keys.len(), 0, &[], &(keys.len() as u32).to_le_bytes());
        let view = page.view();
        let mut wanted = keys.clone();
        wanted.extend(keys.iter().map(|key| [key, &[0][..]].concat()));
        wanted.extend(keys.iter().map(|key| key[..key.len() - 1].to_vec()));
        wanted.extend((0..200).map(|_| [prefix, &random_bytes(&mut random, 9)].concat()));
        wanted.extend([vec![], vec![0], vec![0xFF; 12], prefix.to_vec()]);
        for key in wanted {
            let expected = keys.iter().position(|separator| *separator > key);
            let found = view.find_child(&key).unwrap();
            assert_eq!(
                found,
                expected.unwrap_or(keys.len()),
                "round {round}, {key:02x?} of {keys:02x?}"
            );
        }
    }
}

/// A page that says so has no room between data and tags, however much it says is free: the next
/// node would be written over the tags.
#[test]
fn a_page_whose_data_end_beyond_its_tags_is_refused() {
    const DATA_END: usize = 32;
    for size in PageSize::ALL {
        let mut bytes = vec![0; size.bytes()];
        let mut page = PageMut::new(&mut bytes, size);
        page.format(7, 8, page_flags::LEAF, &[]);
        page.insert(0, 0, b"key", b"data");
        let area_bytes = size.bytes() - size.header_bytes();
        for (end, is_sound) in [(area_bytes - 8, true), (area_bytes - 7, false), (0xFFFF, false)] {
            bytes[DATA_END..DATA_END + 2].copy_from_slice(&(end as u16).to_le_bytes());
            assert_eq!(
                PageView::new(&bytes, size).check_bounds().is_ok(),
                is_sound,
                "{end} of {area_bytes}"
            );
        }
    }
}
