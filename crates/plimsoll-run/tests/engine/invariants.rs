//! The ratios of the published runs, as bands, from the engine's own counters: nobody tells the
//! engine any of them.
//!
//! The bands are those derived from the four EMC VNXe3300 runs (2010 profile), see
//! `docs/decisions/0005-placement.md`, which also says what was fitted and what was not. Time is
//! virtual, reads take 12 ms, each of the two databases has 100 GiB and the cache holds 0.026 % of
//! it, so that branch pages do not all fit.

use crate::figures::{Case, Figures, GIB, MIB, Redo, measure, recover};

/// A ratio and where it must lie.
type Band = (&'static str, f64, f64);

const EDITION_2010: [Band; 12] = [
    ("read_write_ratio", 1.55, 1.70),
    ("pages_per_read", 1.00, 1.05),
    ("pages_per_write", 1.05, 1.20),
    ("db_io_per_log_write", 3.1, 4.3),
    ("log_write_bytes", 4500.0, 7000.0),
    ("log_bytes_per_db_io", 1450.0, 1700.0),
    // A twentieth less than the file grows by: records of several sessions do not quite arrive in
    // order.
    ("appended_per_log", 0.245, 0.29),
    ("reads_per_batch", 18.5, 21.5),
    ("maintenance_read_bytes", 262_144.0, 262_144.0),
    // The pause of 20 ms and a read of 12 ms.
    ("maintenance_period_ms", 31.5, 32.5),
    ("page_fault_stalls", 0.0, 0.0),
    ("missing_per_operation", 0.0, 0.01),
];

/// What needs many log generations or many steps of file growth to be told.
const EDITION_2010_LONG: [Band; 2] =
    [("growth_per_log", 0.26, 0.29), ("replication_per_log", 0.94, 0.98)];

fn check(figures: &Figures, bands: &[Band], title: &str) {
    figures.print(title);
    let outside: Vec<String> = bands
        .iter()
        .map(|(name, least, most)| (name, figures.ratio(name), least, most))
        .filter(|(_, found, least, most)| !(*least..=*most).contains(&found))
        .map(|(name, found, least, most)| format!("{name} is {found:.3}, not {least} to {most}"))
        .collect();
    assert_eq!(outside, [] as [String; 0], "{title}");
}

fn check_redo(redo: &Redo, reads_least: f64, log_reads_most: f64) {
    println!("{redo:?}");
    assert!((reads_least..=800.0).contains(&redo.reads), "{redo:?}");
    assert!(redo.writes < 10.0, "redo must find nearly all pages as they should be: {redo:?}");
    // Published: 9. Our generations of 1 MiB have a header each, so two of them take one read more;
    // so does what opening looks at.
    assert!((9.0..=log_reads_most).contains(&redo.log_reads), "{redo:?}");
}

/// The performance run, short: whoever changes cache, log, space, batches or workload sees at once
/// what became of the ratios.
#[test]
fn a_short_run_of_2010_has_the_published_ratios() {
    let case = Case { settle_s: 6.0, measure_s: 24.0, ..Case::edition_2010() };
    check(&measure(&case), &EDITION_2010, "2010, short");
}

/// The same at full length.
#[test]
#[ignore = "slow: `make slow` runs it"]
fn a_run_of_2010_has_the_published_ratios() {
    let case = Case { settle_s: 30.0, measure_s: 250.0, ..Case::edition_2010() };
    let figures = measure(&case);
    check(&figures, &EDITION_2010, "2010");
    check(&figures, &EDITION_2010_LONG, "2010");
}

/// Held out: twice the sessions at 18 ms is the run that looked for the most IOPS. Batches must not
/// depend on who is waiting.
#[test]
#[ignore = "slow: `make slow` runs it"]
fn twice_the_sessions_at_slower_reads_keep_the_ratios() {
    let case =
        Case { settle_s: 30.0, measure_s: 150.0, sessions: 6, read_ms: 18, ..Case::edition_2010() };
    let mut bands = EDITION_2010.to_vec();
    bands.retain(|(name, ..)| *name != "maintenance_period_ms");
    bands.push(("maintenance_period_ms", 37.5, 38.5));
    check(&measure(&case), &bands, "2010, six sessions");
}

/// Held out: recovery was not looked at when the placement was fitted.
#[test]
#[ignore = "slow: `make slow` runs it"]
fn recovery_reads_much_and_writes_little() {
    let case = Case { maintenance: false, ..Case::edition_2010() };
    check_redo(&recover(&case, 250.0), 600.0, 11.0);
}

/// Recovery in short; a few generations hold fewer different pages, so the lower end is below the
/// published band.
#[test]
fn a_short_recovery_reads_much_and_writes_little() {
    let case = Case { maintenance: false, ..Case::edition_2010() };
    check_redo(&recover(&case, 20.0), 550.0, 14.0);
}

/// JST-21, STU-10: branch pages that do not fit the cache made the server of 2003 read twice for
/// each operation; with the larger pages and cache of 2007 they fit. Published by another paper, on
/// storage and sizes it does not tell: reads for each write from 2.25 to 1.24, and 0.72 to 0.16
/// reads a second for each of the same users, 4.5 times fewer.
#[test]
#[ignore = "slow: `make slow` runs it"]
fn reads_fall_from_2003_to_2007() {
    let anywhere = Case {
        maintenance: false,
        copies: 1,
        folder_records: 0,
        database_bytes: 25 * GIB,
        ..Case::edition_2010()
    };
    let of_2003 = Case {
        page_bytes: 4096,
        record_bytes: 999,
        mix: [17, 5, 68, 10, 90],
        sluggish: 0.0,
        vacancy_percent: 45,
        cache_bytes: 23 * MIB,
        settle_s: 60.0,
        measure_s: 30.0,
        ..anywhere.clone()
    };
    let of_2007 = Case {
        page_bytes: 8192,
        record_bytes: 1000,
        cache_bytes: 120 * MIB,
        settle_s: 700.0,
        measure_s: 30.0,
        ..anywhere
    };
    let (old, new) = (measure(&of_2003), measure(&of_2007));
    check(&old, &[("read_write_ratio", 1.9, 2.5)], "2003");
    check(&new, &[("read_write_ratio", 1.1, 1.75)], "2007");
    let each = |figures: &Figures| figures.ratio("reads_per_batch");
    let fewer = each(&old) / each(&new);
    println!("reads of an operation fall {fewer:.2} times");
    assert!(fewer > 1.5, "reads must fall, and not only beside the writes: {fewer:.2}");
}

/// One database, many sessions, the log framing and maintenance of 2013. The published ratios
/// (reads to writes 1.87 to 2.2, 5.7 to 9 database I/Os for a log write) are not reached, see the
/// decision record; this holds what is.
#[test]
#[ignore = "slow: `make slow` runs it"]
fn the_ratios_of_2013_are_what_is_documented() {
    let case = Case {
        databases: 1,
        copies: 1,
        sessions: 13,
        framing: "segment_4096",
        throttle_ms: 100,
        settle_s: 20.0,
        measure_s: 60.0,
        ..Case::edition_2010()
    };
    let bands = [
        ("read_write_ratio", 1.55, 1.87),
        ("db_io_per_log_write", 2.2, 3.2),
        ("maintenance_period_ms", 111.0, 113.0),
    ];
    check(&measure(&case), &bands, "2013");
}
