//! The load must be the load that was asked for, and the same one every time.

use std::collections::BTreeMap;

use plimsoll_io::Random;
use plimsoll_workload::Done as Result;
use plimsoll_workload::records::{
    Commit, Kind, Mix, MixError, Operation, Population, Previous, Session, Step,
};

const MIX_2010: Mix = Mix {
    insert_percent: 40,
    delete_percent: 20,
    replace_percent: 5,
    read_percent: 35,
    lazy_commit_percent: 70,
};

fn done(step: Step, took_ns: u64) -> Previous {
    Previous {
        intended: step.intended,
        finished: step.intended + took_ns,
        operation: step.operation,
        result: Result::Done,
    }
}

fn run(seed: u64, count: usize) -> Vec<Operation> {
    let mut population = Population::prepared(1000);
    let mut session = Session::new(Random::from_seed(seed), MIX_2010, 0.0);
    let mut previous = None;
    (0..count)
        .map(|_| {
            let step = session.next(&mut population, 0, previous);
            previous = Some(done(step, 1000));
            step.operation
        })
        .collect()
}

/// A published result is only comparable if the mix is the published one.
#[test]
fn shares_come_out_as_asked() {
    let operations = run(7, 100_000);
    let mut counts = BTreeMap::new();
    for operation in &operations {
        *counts.entry(operation.kind).or_insert(0u32) += 1;
    }
    for (kind, percent) in
        [(Kind::Insert, 40), (Kind::Delete, 20), (Kind::Replace, 5), (Kind::Read, 35)]
    {
        let share = f64::from(counts[&kind]) / 1000.0;
        assert!(
            (share - f64::from(percent)).abs() < 0.6,
            "{kind:?}: {share} percent instead of {percent}"
        );
    }
    let lazy = operations.iter().filter(|operation| operation.commit == Commit::Lazy).count();
    assert!((lazy as f64 / 1000.0 - 70.0).abs() < 0.6, "{lazy} of 100000 lazy");
}

/// Replaying a failure needs the same operations from the same seed.
#[test]
fn the_seed_decides() {
    assert_eq!(run(1, 1000), run(1, 1000));
    assert_ne!(run(1, 1000), run(2, 1000));
}

/// With sluggishness 1 a session rests as long as it worked: the published duty of one half.
#[test]
fn think_time_is_a_multiple_of_the_service_time() {
    let mut population = Population::prepared(10);
    let mut session = Session::new(Random::from_seed(1), MIX_2010, 1.0);
    let first = session.next(&mut population, 500, None);
    assert_eq!(first.intended, 500);
    let second = session.next(&mut population, 0, Some(done(first, 2_000_000)));
    assert_eq!(second.intended, 500 + 4_000_000);
}

/// Missing records must not change the mix: the same kind is tried again, at once, on another
/// record.
#[test]
fn an_operation_that_found_nothing_is_repeated() {
    let mut population = Population::prepared(1_000_000);
    let mut session = Session::new(Random::from_seed(3), MIX_2010, 5.0);
    let mut step = session.next(&mut population, 0, None);
    while step.operation.kind != Kind::Delete {
        let previous = done(step, 10);
        step = session.next(&mut population, 0, Some(previous));
    }
    let missing = Previous {
        intended: step.intended,
        finished: step.intended + 10,
        operation: step.operation,
        result: Result::Missing,
    };
    let again = session.next(&mut population, 0, Some(missing));
    assert_eq!(again.operation.kind, Kind::Delete);
    assert_eq!(again.operation.commit, step.operation.commit);
    assert_ne!(again.operation.record, step.operation.record);
    // Whoever waits for the transaction has waited since its first attempt, as for arrivals.
    assert_eq!(
        again.intended, step.intended,
        "the response time goes on, and there is no think time"
    );
}

/// Two inserts of one number would be a duplicate key, that is a failure of the load and not of the
/// disk.
#[test]
fn inserted_records_are_new() {
    let mut operations = run(5, 10_000);
    operations.retain(|operation| operation.kind == Kind::Insert);
    let mut records: Vec<_> = operations.iter().map(|operation| operation.record).collect();
    records.sort_unstable();
    records.dedup();
    assert_eq!(records.len(), operations.len());
    assert!(records.iter().all(|record| *record >= 1000));
}

/// A mix that does not add up must be refused, not silently completed.
#[test]
fn impossible_mixes_are_refused() {
    assert_eq!(MIX_2010.check(), Ok(()));
    let short = Mix { read_percent: 34, ..MIX_2010 };
    assert_eq!(short.check(), Err(MixError::SharesSumTo(99)));
    let lazy = Mix { lazy_commit_percent: 101, ..MIX_2010 };
    assert_eq!(lazy.check(), Err(MixError::LazyAbove100(101)));
}
