//! Where operations go decides what they cost the disk, so it must be what the edition asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_io::Random;
use plimsoll_workload::Done as Result;
use plimsoll_workload::records::{
    Habits, Kind, Locality, Mix, Operation, Placement, Population, Previous, Session, Step,
};

const HABITS: Habits = Habits {
    mix: Mix {
        insert_percent: 40,
        delete_percent: 20,
        replace_percent: 5,
        read_percent: 35,
        lazy_commit_percent: 70,
    },
    locality: Locality {
        folder_records: 100,
        batch_operations: 16,
        replies: true,
        hot_percent: 0,
        hot_access_percent: 0,
    },
};

fn ended(step: Step, result: Result) -> Previous {
    Previous {
        intended: step.intended,
        finished: step.intended + 1000,
        operation: step.operation,
        result,
    }
}

/// So many operations of one session; `judge` says how each ends.
fn run(
    habits: Habits,
    count: usize,
    judge: impl Fn(&Operation) -> Result,
) -> Vec<(Operation, Result)> {
    let mut population = Population::prepared(1_000_000);
    let mut session = Session::new(Random::from_seed(4), habits, 0.0);
    let mut previous = None;
    let mut seen = Vec::new();
    for _ in 0..count {
        let step = session.next(&mut population, 0, previous);
        let result = judge(&step.operation);
        seen.push((step.operation, result));
        previous = Some(ended(step, result));
    }
    seen
}

/// One folder a batch is what makes one branch page do for it.
#[test]
fn a_batch_stays_in_one_folder_and_the_next_goes_elsewhere() {
    let operations = run(HABITS, 1600, |_| Result::Done);
    let mut folders = Vec::new();
    for batch in operations.chunks(16) {
        let looked_for = batch.iter().filter(|(operation, _)| operation.kind != Kind::Insert);
        let of_batch: BTreeSet<u64> =
            looked_for.map(|(operation, _)| operation.record / 100).collect();
        assert!(of_batch.len() <= 1, "{of_batch:?}");
        folders.extend(of_batch);
    }
    let different: BTreeSet<u64> = folders.iter().copied().collect();
    assert!(different.len() > 90, "{} folders in 100 batches", different.len());
}

/// Every read has one reply at most, and replies go where a read has just been: else they would
/// cost reads of their own.
#[test]
fn replies_go_beside_records_read_before_each_once() {
    let mut read: Vec<u64> = Vec::new();
    let mut replies = 0;
    for (operation, _) in run(HABITS, 20_000, |_| Result::Done) {
        match (operation.kind, operation.placement) {
            (Kind::Read, _) => read.push(operation.record),
            (Kind::Insert, Placement::Beside) => {
                let place = read.iter().rposition(|record| *record == operation.record);
                read.remove(place.expect("a reply to a record that was read and not answered"));
                replies += 1;
            }
            _ => {}
        }
    }
    // Reads are 35 of 100 and inserts 40: nearly every read is answered.
    assert!((6500..7200).contains(&replies), "{replies} replies");
}

/// A full leaf must not lose the insert: it follows at the end of the table, once.
#[test]
fn what_finds_no_room_is_appended() {
    let full = |operation: &Operation| match operation.placement {
        Placement::Beside => Result::NoRoom,
        Placement::Own => Result::Done,
    };
    let operations = run(HABITS, 10_000, full);
    for pair in operations.windows(2) {
        if pair[0].1 == Result::NoRoom {
            assert_eq!((pair[1].0.kind, pair[1].0.placement), (Kind::Insert, Placement::Own));
            assert_eq!(pair[1].0.commit, pair[0].0.commit);
        }
    }
    let done = operations.iter().filter(|(_, result)| *result == Result::Done);
    let inserts = operations
        .iter()
        .filter(|(operation, result)| operation.kind == Kind::Insert && *result == Result::Done);
    let share = inserts.count() as f64 / done.count() as f64;
    assert!((share - 0.4).abs() < 0.02, "{share} of what was done are inserts");
}

/// Without folders and replies a session works anywhere and appends, as before there were any.
#[test]
fn without_locality_records_are_anywhere_and_inserts_append() {
    let operations = run(HABITS.mix.into(), 1000, |_| Result::Done);
    assert!(operations.iter().all(|(operation, _)| operation.placement == Placement::Own));
    let folders: BTreeSet<u64> =
        operations.iter().map(|(operation, _)| operation.record / 100).collect();
    assert!(folders.len() > 500);
}

/// Drawing vacant places would cost a page read each for nothing.
#[test]
fn vacant_places_are_not_drawn() {
    let population =
        Population::with_vacancies(1000, Arc::new(|number: u64| number.is_multiple_of(3)));
    let mut random = Random::from_seed(9);
    for _ in 0..1000 {
        let drawn = population.draw_from(&mut random, 300, 100).expect("there are records");
        assert!((300..400).contains(&drawn) && drawn.is_multiple_of(3), "{drawn}");
    }
}

/// Tiers and caches hold what is hot: nine of ten operations must go to a tenth of the records,
/// folders or not, and the hot set must not wander with the records that are added.
#[test]
fn the_hot_set_gets_its_share() {
    for folder_records in [0, 100] {
        let habits = Habits {
            locality: Locality {
                folder_records,
                batch_operations: 4,
                replies: false,
                hot_percent: 10,
                hot_access_percent: 90,
            },
            ..HABITS
        };
        let operations = run(habits, 40_000, |_| Result::Done);
        let on_records = operations.iter().filter(|(operation, _)| operation.kind != Kind::Insert);
        let records: Vec<u64> = on_records.map(|(operation, _)| operation.record).collect();
        let hot_count = records.iter().filter(|record| **record < 100_000).count();
        let share = hot_count as f64 / records.len() as f64;
        assert!((share - 0.9).abs() < 0.02, "{share} with folders of {folder_records}");
    }
    assert_eq!(Population::prepared(1000).hot_count(10), 100);
}

#[test]
fn an_empty_folder_is_left() {
    // A long run deletes all that was appended to one, and nothing comes there again.
    let live = |record: u64| (record / 100).is_multiple_of(2);
    let done = run(HABITS, 60_000, |operation| match operation.kind {
        Kind::Insert if operation.placement == Placement::Beside => Result::NoRoom,
        Kind::Insert => Result::Done,
        _ if live(operation.record) => Result::Done,
        _ => Result::Missing,
    });
    let longest = done.split(|(_, result)| *result == Result::Done).map(<[_]>::len).max();
    assert!(longest.is_some_and(|longest| longest < 1100), "{longest:?} in a row came to nothing");
    let last = &done[done.len() - 5_000..];
    assert!(last.iter().filter(|(_, result)| *result == Result::Done).count() > 1_000);
}

#[test]
fn a_session_that_finds_nothing_anywhere_inserts() {
    for habits in [HABITS, Habits::from(HABITS.mix)] {
        let done = run(habits, 20_000, |operation| match operation.kind {
            Kind::Insert => Result::Done,
            _ => Result::Missing,
        });
        let last = &done[done.len() - 3_000..];
        assert!(last.iter().any(|(operation, _)| operation.kind == Kind::Insert));
    }
}
