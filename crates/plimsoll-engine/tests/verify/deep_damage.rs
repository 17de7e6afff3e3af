//! Every invariant of trees and space has one test here that breaks exactly it, with right
//! checksums, and wants exactly that finding. A check that stays silent on damage, or that buries
//! it under its consequences, is of no use to anybody.

use crate::patient::{INDEX, PAGE_BYTES, Patient, TABLE, VALUES};
use plimsoll_engine::DatabaseHeader;
use plimsoll_engine::deep::{DeepOptions, Finding, verify_deep};
use plimsoll_engine::page::{PageFault, page_flags};

#[test]
fn the_patient_is_sound_before_it_is_damaged() {
    let patient = Patient::new();
    let report = patient.report();
    assert_eq!(report.findings, []);
    assert!(report.is_sound());
    assert!(patient.leaves(TABLE).len() > 100);
}

#[test]
fn a_damaged_page_is_named_and_its_consequences_are_not() {
    for object in [TABLE, INDEX, VALUES] {
        let mut patient = Patient::new();
        let leaves = patient.leaves(object);
        for page in [leaves[0], leaves[leaves.len() / 2], *leaves.last().unwrap()] {
            let before = patient.raw(page).to_vec();
            patient.raw(page)[100..200].fill(0xA5);
            let report = patient.report();
            let is_it = |finding: &Finding| {
                matches!(finding, Finding::PageDamaged { page: found,
                .. } if *found == page)
            };
            assert!(
                report.findings.len() == 1 && is_it(&report.findings[0]),
                "{:?}",
                report.findings
            );
            assert!(!report.unchecked.is_empty(), "what could not be checked is said");
            patient.raw(page).copy_from_slice(&before);
        }
    }
}

/// The space of a tree is known from all of its extents or not at all: half of them make every page
/// beyond look stolen or lost.
#[test]
fn a_damaged_page_of_a_space_tree_is_the_only_finding() {
    for object in [1, TABLE] {
        let mut patient = Patient::new();
        for page in [patient.owned_page(object), patient.free_page(object)] {
            let before = patient.raw(page).to_vec();
            patient.raw(page)[100..200].fill(0xA5);
            let report = patient.report();
            assert!(
                matches!(report.findings[..], [Finding::PageDamaged { page: found,
                    .. }] if found == page),
                "{:?}",
                report.findings
            );
            assert!(!report.unchecked.is_empty(), "what could not be checked is said");
            patient.raw(page).copy_from_slice(&before);
        }
    }
}

#[test]
fn an_empty_page_in_use_is_damage() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[5];
    patient.raw(page).fill(0);
    assert!(matches!(patient.report().findings[..], [Finding::PageDamaged { .. }]));
}

#[test]
fn a_flipped_bit_is_corrected_and_counted() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[5];
    patient.raw(page)[500] ^= 4;
    let report = patient.report();
    assert_eq!((report.findings, report.pages_correctable), (vec![], 1));
}

#[test]
fn a_wrong_count_of_free_bytes_is_malformed() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[3];
    let found = patient.view(page).free_bytes();
    patient.poke(page, 28, &(found as u16 + 1).to_le_bytes());
    let fault = PageFault::FreeMiscounted { counted: found + 1, found };
    patient.expect(Finding::PageMalformed { page, fault });
}

#[test]
fn overlapping_nodes_are_malformed() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[3];
    // Tag 2 is made to begin where tag 1 begins.
    let first = patient.raw(page)[PAGE_BYTES - 6..PAGE_BYTES - 4].to_vec();
    patient.poke(page, PAGE_BYTES - 10, &first);
    let fault = PageFault::Overlap;
    patient.expect(Finding::PageMalformed { page, fault });
}

#[test]
fn a_page_of_another_object() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[3];
    patient.poke(page, 24, &77u32.to_le_bytes());
    patient.expect(Finding::WrongObject { page, found: 77, expected: TABLE });
}

#[test]
fn a_page_of_another_kind() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[3];
    patient.change(page, |page| page.set_flags(page.view().flags() | page_flags::INDEX));
    patient.expect(Finding::WrongKind {
        page,
        found: page_flags::LEAF | page_flags::INDEX,
        expected: page_flags::LEAF,
    });
}

#[test]
fn a_page_younger_than_the_header() {
    let mut patient = Patient::new();
    let page = patient.leaves(INDEX)[0];
    let dbtime_max = DatabaseHeader::decode(&patient.bytes[..PAGE_BYTES]).unwrap().dbtime_max;
    let dbtime = dbtime_max + 1;
    patient.change(page, |page| page.set_dbtime(dbtime));
    patient.expect(Finding::DbtimeAboveHeader { page, dbtime, dbtime_max });
}

/// A branch above leaves, not the root.
fn branch(patient: &Patient) -> u32 {
    let is_branch = |page: &u32| {
        let view = patient.view(*page);
        view.object() == TABLE
            && view.flags() & (page_flags::PARENT_OF_LEAF | page_flags::ROOT)
                == page_flags::PARENT_OF_LEAF
    };
    (1..=patient.pages()).find(is_branch).unwrap()
}

#[test]
fn a_child_outside_the_file() {
    let mut patient = Patient::new();
    let (parent, page_max) = (branch(&patient), patient.pages());
    patient.change(parent, |page| page.splice(2, 0, 4, &9_999_999u32.to_le_bytes()));
    let page = 9_999_999;
    patient.expect(Finding::PageOutside { parent, page, page_max });
}

#[test]
fn two_ways_to_one_page() {
    let mut patient = Patient::new();
    let parent = branch(&patient);
    let page = patient.view(parent).child(1).unwrap();
    patient.change(parent, |change| change.splice(2, 0, 4, &page.to_le_bytes()));
    patient.expect(Finding::ReachedTwice { page, object: TABLE });
}

#[test]
fn a_page_used_but_owned_by_another() {
    let mut patient = Patient::new();
    let (victim, (page, _)) = (patient.leaves(TABLE)[4], patient.free(INDEX));
    move_page(&mut patient, victim, page);
    let free = patient.free_page(TABLE);
    patient.add_extent(free, victim, 1);
    patient.expect(Finding::NotOwned { page, object: TABLE });
}

/// Moves a leaf of the table to another place, neighbours and parent adjusted.
fn move_page(patient: &mut Patient, from: u32, to: u32) {
    let content = patient.raw(from).to_vec();
    patient.raw(to).copy_from_slice(&content);
    patient.change(to, |_| ());
    let (previous, next) = (patient.view(from).previous(), patient.view(from).next());
    patient.change(previous, |page| page.set_siblings(page.view().previous(), to));
    patient.change(next, |page| page.set_siblings(to, page.view().next()));
    for page in 1..=patient.pages() {
        let view = patient.view(page);
        if view.object() != TABLE || view.is_leaf() {
            continue;
        }
        if let Some(line) = (0..view.lines()).find(|line| view.child(*line) == Ok(from)) {
            patient.change(page, |page| page.splice(line, 0, 4, &to.to_le_bytes()));
        }
    }
}

#[test]
fn a_moved_page_alone_is_no_damage() {
    // The test before relies on moving a page without any other harm.
    let mut patient = Patient::new();
    let (victim, (first, last)) = (patient.leaves(TABLE)[4], patient.free(TABLE));
    move_page(&mut patient, victim, first);
    let free = patient.free_page(TABLE);
    patient.add_extent(free, victim, 1);
    patient.change(free, |page| page.splice(1, 0, 4, &(last - first).to_le_bytes()));
    assert_eq!(patient.report().findings, []);
}

#[test]
fn a_page_used_and_free() {
    let mut patient = Patient::new();
    let (page, free) = (patient.leaves(TABLE)[4], patient.free_page(TABLE));
    patient.add_extent(free, page, 1);
    patient.expect(Finding::UsedWhileFree { page, object: TABLE });
}

#[test]
fn pages_neither_used_nor_free() {
    for object in [TABLE, INDEX, VALUES] {
        let mut patient = Patient::new();
        let ((first, last), free) = (patient.free(object), patient.free_page(object));
        patient.change(free, |page| page.remove(0));
        patient.expect(Finding::Leaked { first, last, object });
    }
}

#[test]
fn a_leaf_on_the_level_of_branches() {
    let mut patient = Patient::new();
    let root = patient.root(TABLE);
    let line = patient.view(root).lines() - 1;
    let bypassed = patient.view(root).child(line).unwrap();
    // The last branch is cut down to its first child, which the root then points to itself.
    let children = patient.view(bypassed).lines();
    let leaf = patient.view(bypassed).child(0).unwrap();
    assert_eq!(children, 1, "the plan of the patient leaves one leaf to the last branch");
    patient.change(root, |page| page.splice(line, 0, 4, &leaf.to_le_bytes()));
    let free = patient.free_page(TABLE);
    patient.add_extent(free, bypassed, 1);
    patient.expect(Finding::UnequalDepth { page: leaf, object: TABLE, found: 1, expected: 2 });
}

#[test]
fn a_separator_that_is_no_strict_upper_bound() {
    let mut patient = Patient::new();
    let parent = branch(&patient);
    let page = patient.view(parent).child(1).unwrap();
    let line = patient.view(page).lines() - 1;
    let key = patient.view(page).node(line).unwrap().key();
    patient.change(parent, |change| {
        change.remove(1);
        change.insert(1, 0, &key, &page.to_le_bytes());
    });
    patient.expect(Finding::KeyOutsideSeparators { page, line });
}

#[test]
fn a_branch_that_ends_before_its_separator() {
    let mut patient = Patient::new();
    let page = patient.root(TABLE);
    let line = patient.view(page).lines() - 1;
    let child = patient.view(page).child(line).unwrap();
    patient.change(page, |change| {
        change.remove(line);
        change.insert(line, 0, &[0x80], &child.to_le_bytes());
    });
    patient.expect(Finding::BranchEndsEarly { page });
}

#[test]
fn keys_out_of_order() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[7];
    // Lines 2 and 3 change places: tags 3 and 4.
    let tags = patient.raw(page)[PAGE_BYTES - 20..PAGE_BYTES - 12].to_vec();
    let swapped = [&tags[4..], &tags[..4]].concat();
    patient.poke(page, PAGE_BYTES - 20, &swapped);
    patient.expect(Finding::KeyOrder { page, line: 3 });
}

#[test]
fn wrong_neighbours() {
    let mut patient = Patient::new();
    let leaves = patient.leaves(TABLE);
    let (page, previous, next) = (leaves[5], leaves[4], leaves[6]);
    patient.change(page, |change| change.set_siblings(leaves[9], next));
    patient.expect(Finding::WrongPrevious { page, found: leaves[9], expected: previous });
    patient.change(page, |change| change.set_siblings(previous, leaves[9]));
    patient.expect(Finding::WrongNext { page, found: leaves[9], expected: next });
    let mut patient = Patient::new();
    let page = *leaves.last().unwrap();
    patient.change(page, |change| change.set_siblings(change.view().previous(), 5));
    patient.expect(Finding::WrongNext { page, found: 5, expected: 0 });
    let mut patient = Patient::new();
    let page = branch(&patient);
    patient.change(page, |change| change.set_siblings(0, 7));
    patient.expect(Finding::WrongNext { page, found: 7, expected: 0 });
}

#[test]
fn a_space_header_that_names_another_parent() {
    let mut patient = Patient::new();
    let root = patient.root(INDEX);
    let mut header = patient.view(root).external().unwrap().to_vec();
    header[4..8].copy_from_slice(&5u32.to_le_bytes());
    patient.change(root, |page| page.set_external(&header));
    assert!(matches!(patient.report().findings[..], [Finding::SpaceHeader { object: INDEX, .. }]));
}

#[test]
fn a_space_header_of_unknown_length() {
    let mut patient = Patient::new();
    let root = patient.root(INDEX);
    patient.change(root, |page| page.set_external(&[1, 2, 3]));
    assert!(matches!(patient.report().findings[..], [Finding::SpaceHeader { object: INDEX, .. }]));
}

#[test]
fn an_entry_that_is_no_extent() {
    let mut patient = Patient::new();
    let page = patient.free_page(TABLE);
    patient.change(page, |change| change.splice(0, 0, 4, &[1, 2]));
    patient.expect(Finding::BadExtent { page, line: 0 });
    let mut patient = Patient::new();
    patient.change(page, |change| change.splice(0, 0, 4, &u32::MAX.to_le_bytes()));
    patient.expect(Finding::BadExtent { page, line: 0 });
}

#[test]
fn extents_that_overlap() {
    let mut patient = Patient::new();
    let ((first, last), owned) = (patient.free(INDEX), patient.owned_page(INDEX));
    patient.add_extent(owned, last - 1, last - first);
    patient.expect(Finding::ExtentsOverlap { first, last: last - 1, object: INDEX });
}

#[test]
fn free_pages_that_are_not_owned() {
    let mut patient = Patient::new();
    let ((first, last), free) = (patient.free(TABLE), patient.free_page(INDEX));
    patient.add_extent(free, last, last + 1 - first);
    patient.expect(Finding::FreeNotOwned { first, last, object: INDEX });
}

#[test]
fn a_child_that_owns_what_its_parent_does_not() {
    let mut patient = Patient::new();
    let (owned, free, last) =
        (patient.owned_page(INDEX), patient.free_page(INDEX), patient.pages() + 3);
    patient.bytes.resize(patient.bytes.len() + 3 * PAGE_BYTES, 0);
    patient.add_extent(owned, last, 3);
    patient.add_extent(free, last, 3);
    patient.expect(Finding::NotOwnedByParent { first: last - 2, last, object: INDEX });
}

#[test]
fn a_database_that_owns_more_than_its_file() {
    let mut patient = Patient::new();
    let pages = patient.pages();
    patient.bytes.truncate(patient.bytes.len() - PAGE_BYTES);
    patient.expect(Finding::NotOwnedByParent { first: pages, last: pages, object: 1 });
}

#[test]
fn a_child_that_owns_what_is_free_in_its_parent() {
    let mut patient = Patient::new();
    let (first, last) = patient.free(TABLE);
    let (owned, free) = (patient.owned_page(VALUES), patient.free_page(VALUES));
    patient.add_extent(owned, last, last + 1 - first);
    patient.add_extent(free, last, last + 1 - first);
    patient.expect(Finding::FreeInParent { first, last, object: VALUES });
}

#[test]
fn two_children_that_own_the_same() {
    let mut patient = Patient::new();
    let (first, last) = patient.free(INDEX);
    let (owned, free) = (patient.owned_page(VALUES), patient.free_page(VALUES));
    patient.add_extent(owned, last, last + 1 - first);
    patient.add_extent(free, last, last + 1 - first);
    patient.expect(Finding::OwnedTwice { first, last, object: VALUES });
}

#[test]
fn a_chain_of_branches_is_no_tree() {
    let mut patient = Patient::new();
    let (first, _) = patient.free(TABLE);
    let root = patient.root(TABLE);
    let tail = patient.view(root).child(0).unwrap();
    patient.change(root, |page| page.splice(0, 0, 4, &first.to_le_bytes()));
    for step in 0..30 {
        let next = if step < 29 { first + step + 1 } else { tail };
        patient.change(first + step, |page| {
            page.format(first + step, TABLE, 0, &[]);
            page.insert(0, 0, &[], &next.to_le_bytes());
        });
    }
    let findings = patient.report().findings;
    assert!(
        findings.iter().any(|finding| matches!(finding, Finding::TooDeep { .. })),
        "{findings:?}"
    );
}

#[test]
fn the_list_of_findings_has_an_end() {
    let mut patient = Patient::new();
    for page in patient.leaves(TABLE) {
        patient.change(page, |change| change.set_dbtime(1 << 40));
    }
    let options = DeepOptions { findings_max: 10, ..DeepOptions::default() };
    let report = crate::golden::on_memory_disk(&patient.bytes, move |files, handle| async move {
        verify_deep(&files, &handle, crate::golden::DATABASE, options).await.unwrap()
    });
    assert_eq!(report.findings.len(), 10);
    assert_eq!(report.findings_unlisted as usize, patient.leaves(TABLE).len() - 10);
}

/// Whatever the bytes, the check ends, and without a panic: it is run on files of unknown origin.
#[test]
fn arbitrary_damage_under_right_checksums_is_survived() {
    let mut random = plimsoll_io::Random::from_seed(2024);
    let sound = Patient::new().bytes;
    let mut sound_reports = 0;
    for _ in 0..150 {
        let mut patient = Patient { bytes: sound.clone() };
        for _ in 0..1 + random.below(6) {
            // Most of the sense is in the first pages, so they are hit more often.
            let pages = if random.chance(0.5) { 40 } else { u64::from(patient.pages()) };
            let page = 1 + random.below(pages) as u32;
            let at = if random.chance(0.5) {
                8 + random.below(64)
            } else {
                random.below(PAGE_BYTES as u64 - 8)
            };
            let mut junk = vec![0; 1 + random.below(8) as usize];
            random.fill(&mut junk);
            patient.poke(page, at as usize, &junk);
        }
        let outcome = crate::golden::on_memory_disk(&patient.bytes, |files, handle| async move {
            verify_deep(&files, &handle, crate::golden::DATABASE, DeepOptions::default()).await
        });
        sound_reports += usize::from(outcome.is_ok_and(|report| report.is_sound()));
    }
    assert!(
        sound_reports < 75,
        "{sound_reports} of 150 went unnoticed: content is not checked, structure is"
    );
}
