//! A page is a small sorted map. Whatever is done to it, it must agree with a `BTreeMap` and keep its books straight,
//! because the checksum protects only what was written, not what was meant.

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
    let mut key = if random.chance(0.7) {
        prefix[..random.below(14) as usize].to_vec()
    } else {
        Vec::new()
    };
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
            if data.len() <= page.view().free_bytes() + removed && old.len() - removed + data.len() > 0 {
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
