//! Tasks on the records of several databases: what came to nothing is repeated where it was,
//! everything else goes where chance says.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::Random;
use plimsoll_workload::records::{Habits, Kind, Mix, Population, RecordDemand, RecordPlace};
use plimsoll_workload::{Demand, Done, Seen};

const MIX: Mix = Mix {
    insert_percent: 40,
    delete_percent: 20,
    replace_percent: 5,
    read_percent: 35,
    lazy_commit_percent: 70,
};

fn demand(seed: u64, weights: &[f64]) -> RecordDemand {
    let places: Vec<RecordPlace> = weights
        .iter()
        .map(|weight| RecordPlace {
            weight: *weight,
            population: Rc::new(RefCell::new(Population::prepared(1_000_000))),
        })
        .collect();
    let positions: Vec<usize> = (0..places.len()).collect();
    let random = Random::from_seed(seed);
    RecordDemand::new(
        random.child("what"),
        random.child("where"),
        Habits::from(MIX),
        0.0,
        &places,
        &positions,
    )
}

/// An arrival that met a deleted record is tried again in the same database: the mix of each
/// database stays the one asked for.
#[test]
fn a_repeated_operation_keeps_its_kind_and_its_place() {
    let mut demand = demand(3, &[1.0, 1.0, 1.0, 1.0]);
    for _ in 0..100 {
        let first = demand.next(7, None).expect("there is always more");
        assert_eq!(first.intended, 7);
        if first.task.operation.kind == Kind::Insert {
            continue;
        }
        let seen =
            Seen { intended: 7, finished: 5_000_000, task: &first.task, done: Done::Missing };
        let again = demand.next(5_000_000, Some(seen)).expect("there is always more").task;
        let (was, is) = (first.task.operation, again.operation);
        assert_eq!((again.place, is.kind, is.commit), (first.task.place, was.kind, was.commit));
        assert_ne!(is.record, was.record);
    }
}

/// A database of twice the weight gets twice the work.
#[test]
fn places_are_drawn_by_weight() {
    let mut demand = demand(1, &[1.0, 2.0]);
    let second = (0..30_000)
        .filter(|_| demand.next(0, None).is_some_and(|step| step.task.place == 1))
        .count();
    assert!((19_500..20_500).contains(&second), "{second}");
}
