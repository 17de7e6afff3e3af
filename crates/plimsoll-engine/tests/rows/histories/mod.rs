//! Isolation judged by an independent checker: sessions work on lists and registers of a simulated
//! engine, through crashes and recoveries, and what they did and saw goes to `adya`, which knows
//! nothing of this engine (`docs/decisions/isolation-checker.md`).
//!
//! The model is strong snapshot isolation: a transaction sees all that was committed before it
//! began and nothing that was committed after, and of two that change one row beside each other one
//! fails. Write skew is allowed. A clean history proves nothing about the next one, so there are
//! many.

mod checker;
mod lists;
mod plain;
mod record;
mod registers;
mod world;

use std::time::Duration;

use adya::{Opts, Report, Valid, Workload, check};

use crate::support::{first_seed, side_by_side, wanted};
use record::Record;
use world::{Counts, Kind};

/// Transactions of one history.
const TRANSACTIONS: usize = 1_000;

/// What the checker says of a history.
fn judge(record: &Record, kind: Kind) -> Report {
    let workload = match kind {
        Kind::Lists | Kind::Plain => Workload::ListAppend,
        Kind::Registers => Workload::RwRegister,
    };
    let options = Opts {
        models: vec!["strong-snapshot-isolation".into()],
        // Whoever writes a register has read it before.
        wfr_keys: true,
        timeout: Duration::from_secs(10),
        ..Opts::default()
    };
    check(&record.history(), workload, &options)
}

/// The anomalies of a report, as the checker explains them.
fn explained(report: &Report) -> String {
    let all = report.anomalies.iter();
    all.map(|(kind, found)| {
        format!("{} times {kind}; the first: {}\n", found.len(), found[0].explanation)
    })
    .collect()
}

/// Makes and judges histories; a failing one prints its seed.
fn all_are_isolated(kind: Kind, first_seed: u64, histories: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in first_seed..first_seed + histories {
        println!("seed {seed}");
        let (record, of_this, oddities) = world::run(seed, kind, TRANSACTIONS);
        let report = judge(&record, kind);
        assert_eq!(report.valid, Valid::True, "seed {seed}: {}", explained(&report));
        assert_eq!(oddities, [""; 0], "seed {seed}");
        counts.add(&of_this);
    }
    counts
}

/// Readers see one state, writers of one row exclude each other: in lists, whose every read tells
/// the order of all writes before it.
#[test]
fn twenty_histories_of_lists_are_isolated() {
    let counts = all_are_isolated(Kind::Lists, first_seed(1), 20);
    counts.print();
    counts.expect_met(20);
    assert!(counts.by_index > 1_000, "too few reads by index: {counts:?}");
    assert!(counts.separated > 100, "too few lists became long values: {counts:?}");
}

/// The same where a row is found through a unique secondary key, and a write may move it, or
/// replace it by another row with the same key.
#[test]
fn fifteen_histories_of_registers_are_isolated() {
    let counts = all_are_isolated(Kind::Registers, first_seed(1), 15);
    counts.print();
    counts.expect_met(15);
    assert!(counts.by_index > 1_000, "too few reads by index: {counts:?}");
}

/// The same where no index stands in the way of a lost update.
#[test]
fn fifteen_histories_of_plain_rows_are_isolated() {
    let counts = all_are_isolated(Kind::Plain, first_seed(1), 15);
    counts.print();
    counts.expect_met(15);
}

/// `make isolation HISTORIES=n`, with `JOBS` at once.
#[test]
#[ignore = "long: `make isolation`"]
fn histories_for_as_many_as_told_are_isolated() {
    let histories = wanted("PLIMSOLL_HISTORIES").unwrap_or(10_000.0) as u64;
    let jobs = wanted("PLIMSOLL_JOBS").unwrap_or(1.0) as u64;
    let first = first_seed(1_000);
    let share = histories.div_ceil(3 * jobs);
    let counts = side_by_side(jobs, |job| {
        let mut counts = all_are_isolated(Kind::Lists, first + job * share, share);
        counts.add(&all_are_isolated(Kind::Registers, first + job * share, share));
        counts.add(&all_are_isolated(Kind::Plain, first + job * share, share));
        counts
    });
    let mut total = Counts::default();
    counts.iter().for_each(|part| total.add(part));
    total.print();
    total.expect_met(3 * jobs * share);
}
