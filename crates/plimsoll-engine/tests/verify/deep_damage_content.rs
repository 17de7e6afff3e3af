//! As `deep_damage`, for what trees hold: records, indexes, long values and the catalog.

use crate::patient::{INDEX, PAGE_BYTES, Patient, SIZE, TABLE, VALUE_BYTES, VALUES};
use plimsoll_engine::deep::Finding;
use plimsoll_engine::{DatabaseHeader, RecordFault};
use plimsoll_prepare::{Extent, Plan, PreparedDatabase};

fn table() -> String {
    "PlimsollMail".to_owned()
}

#[test]
fn a_record_that_is_none() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[2];
    patient.change(page, |change| change.splice(1, 2, 1, &[99]));
    patient.expect(Finding::BadRecord {
        page,
        line: 1,
        table: table(),
        fault: RecordFault::FixedEnd { found: 99, expected: 37 },
    });
}

#[test]
fn a_record_under_another_key() {
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[2];
    patient.change(page, |change| change.splice(1, 4, 8, &7u64.to_le_bytes()));
    patient.expect(Finding::WrongPrimaryKey { page, line: 1, table: table() });
}

#[test]
fn an_index_that_disagrees_with_its_records() {
    let disagrees = |entries| Finding::IndexDisagrees {
        table: table(),
        index: "ByScatter".to_owned(),
        entries,
        expected: 900,
    };
    // The record's key column changes, the entry does not.
    let mut patient = Patient::new();
    let page = patient.leaves(TABLE)[2];
    patient.change(page, |change| change.splice(1, 12, 8, &5000u64.to_le_bytes()));
    patient.expect(disagrees(900));
    // An entry points to another record.
    let mut patient = Patient::new();
    let page = patient.leaves(INDEX)[0];
    patient.change(page, |change| {
        let other = change.view().node(4).unwrap().data.to_vec();
        change.splice(3, 0, other.len(), &other);
    });
    patient.expect(disagrees(900));
    // An entry is missing.
    let mut patient = Patient::new();
    patient.change(page, |change| change.remove(3));
    patient.expect(disagrees(899));
}

/// The line of the last chunk of long value 2, and its page.
fn last_chunk(patient: &Patient) -> (u32, usize) {
    let key = 3u32.to_be_bytes();
    let page = patient
        .leaves(VALUES)
        .into_iter()
        .find(|page| patient.view(*page).find(&key).unwrap().is_ok())
        .unwrap();
    (patient.view(page).previous(), 0)
}

#[test]
fn a_long_value_whose_last_chunk_is_gone() {
    let mut patient = Patient::new();
    let (page, line) = last_chunk(&patient);
    let chunk_bytes = patient.view(page).node(line).unwrap().data.len() as u64;
    patient.change(page, |change| change.remove(line));
    patient.expect(Finding::LongValueLength {
        table: table(),
        long_value: 2,
        found_bytes: u64::from(VALUE_BYTES) - chunk_bytes,
        expected_bytes: VALUE_BYTES.into(),
    });
}

#[test]
fn a_long_value_with_a_hole() {
    let mut patient = Patient::new();
    let (last, _) = last_chunk(&patient);
    let page = patient.view(last).previous();
    patient.change(page, |change| change.remove(0));
    assert!(matches!(
        &patient.report().findings[..],
        [Finding::BadLongValue { page, .. }] if *page == last
    ));
}

#[test]
fn long_values_counted_wrongly() {
    let mut patient = Patient::new();
    let page = patient.leaves(VALUES)[0];
    patient.change(page, |change| change.splice(0, 0, 4, &2u32.to_le_bytes()));
    patient.expect(Finding::LongValueReferences {
        table: table(),
        long_value: 1,
        counted: 2,
        found: 1,
    });
}

#[test]
fn a_long_value_nobody_refers_to() {
    let mut patient = Patient::new();
    // Record 40 has long value 2; its reference, the last four bytes, is made to name value 3.
    let key = PreparedDatabase::new(Plan::new(SIZE, Extent::Records(1), 0)).unwrap().record_key(40);
    let page = patient.leaves(TABLE)[5];
    let line = patient.view(page).find(&key).unwrap().unwrap();
    patient.change(page, |change| {
        let record_bytes = change.view().node(line).unwrap().data.len();
        change.splice(line, record_bytes - 4, 4, &3u32.to_le_bytes());
    });
    let finding = |long_value, found| Finding::LongValueReferences {
        table: table(),
        long_value,
        counted: 1,
        found,
    };
    assert_eq!(patient.report().findings, [finding(2, 0), finding(3, 2)]);
}

#[test]
fn a_shadow_that_differs_from_its_catalog() {
    let mut patient = Patient::new();
    let (page, line) = patient.leaves(3).first().map_or((24, 3), |page| (*page, 3));
    // A byte of the flags of some row.
    patient.change(page, |change| {
        let byte = change.view().node(line).unwrap().data[22];
        change.splice(line, 22, 1, &[byte ^ 1]);
    });
    assert!(matches!(
        patient.report().findings[..],
        [Finding::ShadowDiffers { catalog_rows, shadow_rows }] if catalog_rows == shadow_rows
    ));
}

const OBJECT_IDS_PAGE: u32 = 29;

#[test]
fn an_object_that_is_not_listed() {
    let mut patient = Patient::new();
    let line = patient.view(OBJECT_IDS_PAGE).lines() - 1;
    patient.change(OBJECT_IDS_PAGE, |page| page.remove(line));
    patient.expect(Finding::ObjectUnlisted { object: VALUES, table_object: TABLE });
}

#[test]
fn an_object_that_is_listed_and_not_there() {
    let mut patient = Patient::new();
    let last = patient.view(OBJECT_IDS_PAGE).lines() - 1;
    patient.change(OBJECT_IDS_PAGE, |page| {
        let node = page.view().node(last).unwrap();
        let (mut key, mut record) = (node.key(), node.data.to_vec());
        assert_eq!(key.pop(), Some(VALUES as u8));
        key.push(11);
        let at = record.windows(4).position(|bytes| bytes == VALUES.to_le_bytes()).unwrap();
        record[at] = 11;
        page.insert(last + 1, 0, &key, &record);
    });
    patient.expect(Finding::ObjectUnknown { object: 11, table_object: TABLE });
}

#[test]
fn an_object_above_the_headers_highest() {
    let mut patient = Patient::new();
    let mut header = DatabaseHeader::decode(&patient.bytes[..PAGE_BYTES]).unwrap();
    header.object_max = VALUES - 1;
    let page = header.encode();
    patient.bytes[..PAGE_BYTES].copy_from_slice(&page);
    patient.bytes[PAGE_BYTES..2 * PAGE_BYTES].copy_from_slice(&page);
    patient.expect(Finding::ObjectAboveHeader { object: VALUES, object_max: VALUES - 1 });
}

#[test]
fn two_trees_with_one_object_number() {
    let mut patient = Patient::new();
    // The catalog row of the index says that it is the object of the long values.
    let page = [&patient.leaves(2)[..], &[4]].concat();
    let row = page.iter().find_map(|page| {
        let view = patient.view(*page);
        let line = (0..view.lines()).find(|line| {
            let data = view.node(*line).unwrap().data;
            data[4..14] == [8, 0, 0, 0, 3, 0, 9, 0, 0, 0]
        })?;
        Some((*page, line))
    });
    let (page, line) = row.unwrap();
    patient.change(page, |change| change.splice(line, 10, 1, &[10]));
    let findings = patient.report().findings;
    assert!(findings.contains(&Finding::ObjectTwice { object: VALUES }), "{findings:?}");
}
