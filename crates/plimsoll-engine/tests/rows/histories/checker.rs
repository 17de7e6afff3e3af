//! The checker itself: whoever believes a judge that never finds anything believes nothing. Each
//! anomaly is written down by hand once.

use adya::{Report, Valid};

use super::judge;
use super::record::{Record, Step};
use super::world::Kind;

/// A history of transactions that begin and end as listed: `(process, steps, whether it commits)`
/// begin together, end in order.
fn beside_each_other(rounds: &[&[(i64, &[Step], bool)]], kind: Kind) -> Report {
    let mut record = Record::default();
    let mut there = std::collections::BTreeSet::new();
    for round in rounds {
        let entries: Vec<usize> =
            round.iter().map(|(process, _, _)| record.begin(*process)).collect();
        for (entry, (_, steps, commits)) in entries.into_iter().zip(*round) {
            steps.iter().for_each(|step| record.step(entry, step.clone()));
            if *commits {
                record.committing(entry, true);
                record.acknowledged(entry);
                there.insert(entry as u64);
            } else {
                record.fail(entry);
            }
        }
    }
    record.settle(&there);
    judge(&record, kind)
}

fn lists(rounds: &[&[(i64, &[Step], bool)]]) -> Report {
    beside_each_other(rounds, Kind::Lists)
}

fn expect_found(report: &Report, kind: &str) {
    assert_eq!(report.valid, Valid::False, "{report:?}");
    assert!(report.anomaly_types.iter().any(|found| found == kind), "{:?}", report.anomaly_types);
}

/// Write skew is what snapshot isolation allows; without it this would be another model.
#[test]
fn write_skew_is_allowed() {
    use Step::{Append, List};
    let report = lists(&[&[
        (0, &[List(1, vec![]), List(2, vec![]), Append(1, 1)], true),
        (1, &[List(1, vec![]), List(2, vec![]), Append(2, 2)], true),
    ]]);
    assert_eq!(report.valid, Valid::True, "{report:?}");
}

/// Two that change one row beside each other: the first writer wins, or an update is lost.
#[test]
fn a_lost_update_is_found() {
    use Step::{Append, Held, List, Set};
    let report = lists(&[
        &[(0, &[List(1, vec![]), Append(1, 1)], true), (1, &[List(1, vec![]), Append(1, 2)], true)],
        &[(2, &[List(1, vec![2])], true)],
    ]);
    assert_eq!(report.valid, Valid::False, "{report:?}");
    let report = beside_each_other(
        &[
            &[(0, &[Held(1, None), Set(1, 1)], true), (1, &[Held(1, None), Set(1, 2)], true)],
            &[(2, &[Held(1, Some(2))], true)],
        ],
        Kind::Registers,
    );
    expect_found(&report, "lost-update");
}

/// Half of what another transaction did.
#[test]
fn a_torn_snapshot_is_found() {
    use Step::{Append, List};
    let report = lists(&[
        &[
            (0, &[Append(1, 1), Append(2, 2)], true),
            (1, &[List(1, vec![1]), List(2, vec![])], true),
        ],
        &[(2, &[List(1, vec![1]), List(2, vec![2])], true)],
    ]);
    expect_found(&report, "G-single-item");
}

/// What was taken back, or lost in a crash, was seen by somebody.
#[test]
fn a_read_of_what_never_was_is_found() {
    use Step::{Append, List};
    let report = lists(&[
        &[(0, &[Append(1, 1)], false), (1, &[List(1, vec![1])], true)],
        &[(2, &[Append(1, 3), List(1, vec![3])], true)],
    ]);
    expect_found(&report, "G1a");
}

/// A snapshot older than what was committed before the transaction began.
#[test]
fn a_stale_snapshot_is_found() {
    use Step::{Append, List};
    let report = lists(&[
        &[(0, &[Append(1, 1)], true)],
        &[(1, &[List(1, vec![])], true)],
        &[(2, &[List(1, vec![1])], true)],
    ]);
    expect_found(&report, "G-single-item-realtime");
}

/// A transaction that does not see its own changes.
#[test]
fn an_own_change_that_is_not_seen_is_found() {
    use Step::{Append, List};
    let report =
        lists(&[&[(0, &[Append(1, 1), List(1, vec![])], true)], &[(2, &[List(1, vec![1])], true)]]);
    expect_found(&report, "internal");
}
