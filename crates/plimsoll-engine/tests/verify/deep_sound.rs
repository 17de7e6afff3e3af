//! Databases that are sound must be found sound, whoever wrote them: a check that cries wolf is
//! turned off.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::PageSize;
use plimsoll_engine::deep::{DeepOptions, DeepReport, verify_deep};
use plimsoll_engine::reader::ReadError;
use plimsoll_io::{Clock, Executor, Files, MemoryDisk, MemoryOptions, Random};
use plimsoll_prepare::{Extent, LongValues, Plan, PreparedContent, PreparedDatabase, Secondary};

fn check(place: impl FnOnce(&MemoryDisk)) -> DeepReport {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    place(&disk);
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk), executor.handle());
    executor
        .run(async move { verify_deep(&files, &handle, "/db.edb", DeepOptions::default()).await })
        .unwrap()
        .unwrap()
}

fn check_prepared(plan: Plan) -> DeepReport {
    let database = Arc::new(PreparedDatabase::new(plan).unwrap());
    check(|disk| {
        disk.load_sparse("/db.edb", database.file_bytes(), PreparedContent::sparse(&database))
    })
}

#[test]
fn prepared_databases_are_sound() {
    for size in PageSize::ALL {
        for (long_values, secondary, branch_fill_percent) in [
            (None, Secondary::Unique, 90),
            (Some(LongValues { every: 3, bytes: 50_000 }), Secondary::Unique, 2),
            (Some(LongValues { every: 1, bytes: 100 }), Secondary::Absent, 2),
        ] {
            let report = check_prepared(Plan {
                long_values,
                secondary,
                branch_fill_percent,
                ..Plan::new(size, Extent::Records(1500), 4)
            });
            assert_eq!(report.findings, [], "{size} {long_values:?}");
            assert_eq!(report.unchecked, []);
            assert_eq!(report.pages_reached + report.pages_free, report.pages_owned);
            let values = long_values.map_or(0, |values| 1500u64.div_ceil(values.every));
            assert_eq!(report.long_values, values);
            assert!(report.records > 1500);
        }
    }
}

/// Gaps must be where the rule says, as often as the plan says, and leave a database.
#[test]
fn a_prepared_database_with_vacancies_is_sound() {
    for size in PageSize::ALL {
        let plan = Plan {
            secondary: Secondary::Absent,
            vacancy_percent: 60,
            ..Plan::new(size, Extent::Records(3000), 4)
        };
        let database = PreparedDatabase::new(plan.clone()).unwrap();
        let records = (0..3000).filter(|number| database.has_record(*number)).count() as u64;
        let full = check_prepared(Plan { vacancy_percent: 0, ..plan.clone() });
        let report = check_prepared(plan);
        assert_eq!(report.findings, [], "{size}");
        assert_eq!(full.records - report.records, 3000 - records, "{size}: records reached");
        let per_leaf = database.per_leaf();
        let last_places = (0..3000 / per_leaf).map(|leaf| leaf * per_leaf + per_leaf - 1);
        let roomy = last_places.filter(|number| !database.has_record(*number)).count() as f64;
        let share = roomy / (3000 / per_leaf) as f64;
        assert!((share - 0.6).abs() < 0.12, "{size}: {share} of the leaves have room");
    }
}

#[test]
fn an_empty_prepared_database_is_sound() {
    let report = check_prepared(Plan::new(PageSize::KIB_8, Extent::Records(0), 4));
    assert_eq!(report.findings, []);
}

fn check_bytes(bytes: &[u8]) -> Result<DeepReport, ReadError> {
    crate::golden::on_memory_disk(bytes, |files, handle| async move {
        verify_deep(&files, &handle, crate::golden::DATABASE, DeepOptions::default()).await
    })
}

#[test]
fn databases_of_an_independent_writer_are_sound() {
    for (name, facts, bytes) in crate::golden::synthetic() {
        let report = check_bytes(&bytes).unwrap();
        let rows = facts["rows"].as_u64().unwrap();
        assert!(report.records > rows, "{name}: {} records", report.records);
        assert_eq!(report.findings, [], "{name}");
        assert_eq!(report.unchecked, [], "{name}");
    }
}

#[test]
fn databases_made_by_windows_are_sound() {
    for (name, _, bytes) in crate::golden::real() {
        match check_bytes(&bytes) {
            Ok(report) => {
                assert_eq!(report.findings, [], "{name}");
                println!("{name}: {} records, not checked: {:?}", report.records, report.unchecked);
            }
            Err(ReadError::Dirty { .. }) => println!("{name} was not shut down cleanly"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}
