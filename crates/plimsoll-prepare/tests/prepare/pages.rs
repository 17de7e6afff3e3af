//! A prepared database is only worth something if the rule that makes its pages makes the same
//! trees that inserting every record would have made: structure sound, keys complete, content
//! self-checking, every page its own.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_engine::page::{PageMut, PageView, page_flags};
use plimsoll_engine::{PageClass, PageSize, classify};
use plimsoll_prepare::{Extent, LongValues, Plan, PlanError, PreparedDatabase, Secondary, Sharing};

const TABLE_OBJECT: u32 = 8;

fn plan(size: PageSize, records: u64) -> Plan {
    Plan {
        long_values: Some(LongValues { every: 7, bytes: 3 * size.bytes() as u32 }),
        free_pages: 40,
        ..Plan::new(size, Extent::Records(records), 11)
    }
}

fn page_of(database: &PreparedDatabase, page: u32) -> Vec<u8> {
    let mut bytes = vec![0xEE; database.page_size().bytes()];
    database.page(page, &mut bytes);
    bytes
}

/// Every node of the leaf level, by walking down from the root.
fn nodes(database: &PreparedDatabase, page: u32, found: &mut Vec<(Vec<u8>, Vec<u8>)>) -> usize {
    let bytes = page_of(database, page);
    let view = PageView::new(&bytes, database.page_size());
    view.check_structure().unwrap();
    assert_eq!(view.flush_type(), 1);
    if view.is_leaf() {
        found.extend((0..view.lines()).map(|line| {
            let node = view.node(line).unwrap();
            (node.key(), node.data.to_vec())
        }));
        return 1;
    }
    assert_eq!((view.previous(), view.next()), (0, 0), "branch pages have no siblings");
    let depths: BTreeSet<usize> =
        (0..view.lines()).map(|line| nodes(database, view.child(line).unwrap(), found)).collect();
    assert_eq!(depths.len(), 1, "all leaves are equally deep");
    1 + depths.first().unwrap()
}

/// Root pages of the table's trees, found by their flags.
fn roots(database: &PreparedDatabase) -> BTreeMap<u32, u32> {
    let mut roots = BTreeMap::new();
    for page in 1..=database.pages() {
        let bytes = page_of(database, page);
        let view = PageView::new(&bytes, database.page_size());
        let is_tree = view.is_root() && view.flags() & page_flags::SPACE == 0;
        if is_tree && view.object() >= TABLE_OBJECT {
            roots.insert(view.object(), page);
        }
    }
    roots
}

#[test]
fn every_tree_holds_exactly_the_keys_and_bytes_its_rule_states() {
    for size in PageSize::ALL {
        let database = PreparedDatabase::new(plan(size, 1000)).unwrap();
        let roots = roots(&database);
        let mut records = Vec::new();
        nodes(&database, roots[&8], &mut records);
        let expected: Vec<_> = (0..1000)
            .map(|number| (database.record_key(number), database.record(number, 0)))
            .collect();
        assert_eq!(records, expected, "{size}");

        let mut entries = Vec::new();
        nodes(&database, roots[&9], &mut entries);
        let mut expected: Vec<_> = (0..1000)
            .map(|number| (database.scatter_key(number), database.record_key(number)))
            .collect();
        expected.sort();
        assert_eq!(entries, expected, "{size}");

        let mut values = Vec::new();
        nodes(&database, roots[&10], &mut values);
        check_values(&database, &values);
    }
}

fn check_values(database: &PreparedDatabase, nodes: &[(Vec<u8>, Vec<u8>)]) {
    let mut values: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (key, data) in nodes {
        let id = u32::from_be_bytes(key[..4].try_into().unwrap());
        let value = values.entry(id).or_default();
        if let Some(offset) = key.get(4..8) {
            assert_eq!(offset, (value.len() as u32).to_be_bytes());
            value.extend(data);
        }
    }
    let expected: BTreeMap<u32, Vec<u8>> = (0..database.records())
        .step_by(7)
        .map(|number| (number as u32 / 7 + 1, database.long_value(number, 0)))
        .collect();
    assert_eq!(values, expected);
}

#[test]
fn several_branch_levels_still_form_one_tree() {
    for size in PageSize::ALL {
        let mut plan = plan(size, 6000);
        plan.branch_fill_percent = if size.is_large() { 1 } else { 2 };
        plan.leaf_fill_percent = 40;
        let database = PreparedDatabase::new(plan).unwrap();
        let mut records = Vec::new();
        let depth = nodes(&database, roots(&database)[&8], &mut records);
        assert!(depth >= 4, "{size}: {depth} levels");
        assert_eq!(records.len(), 6000);
        assert!(records.is_sorted());
    }
}

#[test]
fn leaf_neighbours_point_at_each_other() {
    let database = PreparedDatabase::new(plan(PageSize::KIB_8, 700)).unwrap();
    for page in 1..=database.pages() {
        let bytes = page_of(&database, page);
        let view = PageView::new(&bytes, database.page_size());
        for (neighbour, is_next) in [(view.next(), true), (view.previous(), false)] {
            if neighbour != 0 {
                let other = page_of(&database, neighbour);
                let other = PageView::new(&other, database.page_size());
                let back = if is_next { other.previous() } else { other.next() };
                assert_eq!((back, other.object()), (page, view.object()));
            }
        }
    }
}

#[test]
fn a_page_is_what_inserting_its_nodes_in_order_gives() {
    for size in PageSize::ALL {
        let database = PreparedDatabase::new(plan(size, 300)).unwrap();
        for page in 31..=database.pages() {
            let bytes = page_of(&database, page);
            let view = PageView::new(&bytes, size);
            if view.object() == 0 {
                continue;
            }
            let mut built = vec![0; size.bytes()];
            let mut copy = PageMut::new(&mut built, size);
            copy.format(page, view.object(), view.flags(), view.external().unwrap());
            copy.set_flush_type(1);
            for line in 0..view.lines() {
                let node = view.node(line).unwrap();
                copy.insert(line, 0, &node.key(), node.data);
            }
            copy.set_dbtime(view.dbtime());
            copy.set_siblings(view.previous(), view.next());
            plimsoll_engine::set_checksum(&mut built, page);
            assert!(built == bytes, "{size} page {page}");
        }
    }
}

#[test]
fn every_page_is_whole_or_empty() {
    for size in PageSize::ALL {
        let database = PreparedDatabase::new(plan(size, 300)).unwrap();
        for page in 1..=database.pages() {
            let class = classify(&page_of(&database, page), page);
            assert!(
                matches!(class, PageClass::Ok | PageClass::Uninitialized),
                "{size} page {page}: {class:?}"
            );
        }
    }
}

#[test]
fn a_file_of_given_length_is_filled_and_never_longer() {
    for size in PageSize::ALL {
        for bytes in [16 << 20, (64 << 20) + 12_345, 1 << 40] {
            let mut plan = plan(size, 0);
            plan.extent = Extent::Bytes(bytes);
            let database = PreparedDatabase::new(plan.clone()).unwrap();
            assert!(database.file_bytes() <= bytes);
            assert!(database.file_bytes() + size.bytes() as u64 > bytes);
            plan.extent = Extent::Records(database.records() + 60);
            let larger = PreparedDatabase::new(plan).unwrap();
            assert!(larger.file_bytes() > database.file_bytes(), "{size}: room was wasted");
        }
    }
}

#[test]
fn databases_share_no_content_and_one_plan_always_gives_the_same() {
    let base = plan(PageSize::KIB_4, 200);
    let content = |plan: &Plan| -> Vec<Vec<u8>> {
        let database = PreparedDatabase::new(plan.clone()).unwrap();
        (0..200).map(|number| database.record(number, 0)).collect()
    };
    let first = content(&base);
    assert_eq!(first, content(&base));
    let other_database = Plan { database: 2, ..base.clone() };
    let other_seed = Plan { seed: 12, ..base.clone() };
    let windows = |records: &[Vec<u8>]| -> BTreeSet<Vec<u8>> {
        let pads = records.iter().flat_map(|record| record[39..].windows(16).step_by(1));
        pads.map(<[u8]>::to_vec)
            .filter(|window| window.iter().collect::<BTreeSet<_>>().len() > 4)
            .collect()
    };
    for other in [other_database, other_seed] {
        assert!(windows(&first).is_disjoint(&windows(&content(&other))));
    }
}

/// A storage that deduplicates finds exactly the leaves that were asked for, byte for byte with
/// their headers, and no other page of records: pages carry their number and checksum, so only the
/// same page of another database can be a duplicate.
#[test]
fn shared_leaves_are_the_same_in_every_database_and_no_other() {
    let with = |database: u32, seed: u64, sharing: Option<Sharing>| {
        let plan = Plan {
            database,
            seed,
            sharing,
            secondary: Secondary::Absent,
            vacancy_percent: 40,
            long_values: None,
            ..plan(PageSize::KIB_8, 8_000)
        };
        PreparedDatabase::new(plan).unwrap()
    };
    let sharing = |seed| Some(Sharing { seed, leaves_per_million: 300_000 });
    let leaves = |database: &PreparedDatabase| -> BTreeSet<Vec<u8>> {
        let mut page = vec![0; database.page_size().bytes()];
        let mut found = BTreeSet::new();
        for number in 34..34 + (database.records() / database.per_leaf()) as u32 - 1 {
            database.page(number, &mut page);
            found.insert(page.clone());
        }
        found
    };
    let common = |left: &PreparedDatabase, right: &PreparedDatabase| {
        let (left, right) = (leaves(left), leaves(right));
        left.intersection(&right).count() as f64 / left.len() as f64
    };
    let first = with(1, 11, sharing(5));
    for other in [with(2, 11, sharing(5)), with(1, 12, sharing(5))] {
        let share = common(&first, &other);
        assert!((0.27..0.33).contains(&share), "{share}");
    }
    assert_eq!(common(&first, &with(2, 11, sharing(6))), 0.0, "another sharing");
    assert_eq!(common(&first, &with(2, 11, None)), 0.0);
    assert_eq!(common(&with(1, 11, None), &with(2, 11, None)), 0.0);
    // What is added later is nobody else's, and who shares is told by its header.
    let (own, others) = (with(1, 11, sharing(5)), with(2, 11, sharing(5)));
    assert_ne!(own.record(8_001, 0), others.record(8_001, 0));
    assert_ne!(own.header().signature, with(1, 11, None).header().signature);
}

#[test]
fn the_check_column_is_the_sum_of_the_pads() {
    let database = PreparedDatabase::new(plan(PageSize::KIB_32, 100)).unwrap();
    for (number, version) in [(0, 0), (1, 0), (7, 3), (99, 1), (1234, 0)] {
        let columns = database.record_columns(number, version);
        let sum = [&columns.short_pad, &columns.long_pad]
            .into_iter()
            .flat_map(|pad| pad.chunks(8))
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .fold(0u64, u64::wrapping_add);
        assert_eq!(columns.check, sum as i64);
        assert_ne!(database.record(number, version), database.record(number, version + 1));
    }
}

#[test]
fn the_compressible_share_is_what_was_asked_for() {
    for percent in [0, 30, 100] {
        let plan = Plan { compressible_percent: percent, ..plan(PageSize::KIB_32, 10) };
        let columns = PreparedDatabase::new(plan).unwrap().record_columns(3, 0);
        let repeated = columns.long_pad.windows(16).filter(|pair| pair[..8] == pair[8..]).count();
        let share = repeated as f64 / columns.long_pad.len() as f64;
        assert!((share * 100.0 - f64::from(percent)).abs() < 3.0, "{percent}: {share}");
    }
}

#[test]
fn long_values_of_every_length_keep_their_order() {
    for size in PageSize::ALL {
        for bytes in
            [1, 15, 400, size.bytes() as u32 / 3, size.bytes() as u32, 10 * size.bytes() as u32 + 1]
        {
            let mut plan = plan(size, 30);
            plan.long_values = Some(LongValues { every: 7, bytes });
            let database = PreparedDatabase::new(plan).unwrap();
            let mut values = Vec::new();
            nodes(&database, roots(&database)[&10], &mut values);
            assert!(values.is_sorted(), "{size} {bytes}");
            check_values(&database, &values);
        }
    }
}

#[test]
fn an_empty_table_and_a_missing_index_are_possible() {
    let mut plan = plan(PageSize::KIB_4, 0);
    plan.secondary = Secondary::Absent;
    let database = PreparedDatabase::new(plan).unwrap();
    assert_eq!(roots(&database).keys().copied().collect::<Vec<_>>(), [8, 9]);
    let mut records = Vec::new();
    assert_eq!(nodes(&database, roots(&database)[&8], &mut records), 1);
    assert!(records.is_empty());
}

#[test]
fn the_scatter_column_is_a_permutation_of_any_count() {
    for records in [1, 2, 3, 5, 16, 17, 1000, 4097] {
        let database = PreparedDatabase::new(plan(PageSize::KIB_32, records)).unwrap();
        let scatters: BTreeSet<i64> =
            (0..records).map(|number| database.record_columns(number, 0).scatter).collect();
        assert!(scatters.into_iter().eq(0..records as i64), "{records} records");
        // The index leaves are made with the inverse.
        let mut entries = Vec::new();
        nodes(&database, roots(&database)[&9], &mut entries);
        let expected =
            (0..records).map(|number| (database.scatter_key(number), database.record_key(number)));
        assert_eq!(entries, BTreeMap::from_iter(expected).into_iter().collect::<Vec<_>>());
        // Records inserted later keep their number, so that they append to the index.
        assert_eq!(database.record_columns(records + 7, 0).scatter, records as i64 + 7);
    }
}

#[test]
fn impossible_plans_say_what_is_wrong() {
    let good = plan(PageSize::KIB_4, 10);
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        PreparedDatabase::new(plan).map(|_| ()).unwrap_err()
    };
    assert!(matches!(
        refused(&|plan| plan.extent = Extent::Bytes(100_000)),
        PlanError::TooSmall { .. }
    ));
    assert!(matches!(
        refused(&|plan| plan.extent = Extent::Records(1 << 39)),
        PlanError::TooLarge { .. }
    ));
    assert!(matches!(
        refused(&|plan| plan.shape.long_pad_bytes = 4000),
        PlanError::RecordTooLong { .. }
    ));
    assert!(matches!(
        refused(&|plan| plan.shape.long_pad_bytes = 3),
        PlanError::PadTooShort { .. }
    ));
    assert!(matches!(refused(&|plan| plan.compressible_percent = 101), PlanError::Percent { .. }));
    assert!(matches!(refused(&|plan| plan.leaf_fill_percent = 0), PlanError::Percent { .. }));
    assert!(matches!(refused(&|plan| plan.vacancy_percent = 101), PlanError::Percent { .. }));
    assert!(matches!(refused(&|plan| plan.vacancy_percent = 10), PlanError::VacantWithOthers));
    let no_interval = LongValues { every: 0, bytes: 1 };
    assert!(matches!(
        refused(&|plan| plan.long_values = Some(no_interval)),
        PlanError::LongValues { .. }
    ));
}

/// Pages are written into memory that held others before: what shines through would make two runs
/// of one seed differ.
#[test]
fn a_page_does_not_depend_on_what_was_in_its_memory() {
    for size in PageSize::ALL {
        let database = PreparedDatabase::new(plan(size, 300)).unwrap();
        for page in 1..=database.pages() {
            let mut blank = vec![0; size.bytes()];
            database.page(page, &mut blank);
            assert!(page_of(&database, page) == blank, "page {page} of {size:?}");
        }
    }
}
