//! An open load is worth nothing unless its schedule is kept whatever the storage does.

use plimsoll_io::{NANOS_PER_SECOND, Random};
use plimsoll_workload::{Arrivals, Kind, Mix, Population, Previous, Result, Spacing, Step};

const MIX: Mix = Mix {
    insert_percent: 40,
    delete_percent: 20,
    replace_percent: 5,
    read_percent: 35,
    lazy_commit_percent: 70,
};

fn arrivals(seed: u64, spacing: Spacing, per_s: f64) -> Arrivals {
    Arrivals::new(&Random::from_seed(seed), MIX, spacing, per_s, 0)
}

fn steps(arrivals: &mut Arrivals, count: usize) -> Vec<Step> {
    let mut population = Population::prepared(1000);
    (0..count).map(|_| arrivals.next(&mut population, None)).collect()
}

/// The rate that was asked for is the rate of the test: a per cent off would be a per cent of the users.
#[test]
fn the_rate_is_exact_in_the_long_run() {
    let regular = steps(&mut arrivals(1, Spacing::Regular, 7.0), 7000);
    assert_eq!(regular[6999].intended / 1000, 1000 * NANOS_PER_SECOND / 1000);
    let poisson = steps(&mut arrivals(1, Spacing::Poisson, 240.0), 100_000);
    let seconds = poisson[99_999].intended as f64 / NANOS_PER_SECOND as f64;
    // The standard deviation of 100000 arrivals is 316, a third of a per cent.
    assert!((100_000.0 / seconds - 240.0).abs() < 240.0 * 0.01, "{seconds}");
}

/// Queues depend on how arrivals bunch: for independent users the gaps' standard deviation is their mean.
#[test]
fn poisson_gaps_vary_as_independent_users_do() {
    let steps = steps(&mut arrivals(2, Spacing::Poisson, 1000.0), 50_000);
    let gaps: Vec<f64> = steps
        .windows(2)
        .map(|pair| (pair[1].intended - pair[0].intended) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = variance.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.03, "{variation}");
}

/// An arrival that met a deleted record is tried again as the same arrival: its user has been waiting since it was due.
#[test]
fn a_repeated_operation_keeps_the_time_it_was_due() {
    let mut population = Population::prepared(1_000_000);
    let mut arrivals = arrivals(3, Spacing::Poisson, 100.0);
    let step = std::iter::repeat_with(|| arrivals.next(&mut population, None))
        .find(|step| step.operation.kind == Kind::Delete)
        .expect("deletes come");
    let missed = Previous {
        intended: step.intended,
        finished: step.intended + 5_000_000,
        operation: step.operation,
        result: Result::Missing,
    };
    let again = arrivals.next(&mut population, Some(missed));
    assert_eq!(again.intended, step.intended);
    assert_eq!(
        (again.operation.kind, again.operation.commit),
        (step.operation.kind, step.operation.commit)
    );
    assert_ne!(again.operation.record, step.operation.record);
    let next = arrivals.next(&mut population, None);
    assert!(next.intended > step.intended, "the schedule goes on behind it");
}

/// A search tries one rate after the other: what was due at the old one must not be served at the new one.
#[test]
fn a_new_rate_begins_now() {
    let mut arrivals = arrivals(4, Spacing::Regular, 10.0);
    steps(&mut arrivals, 3);
    arrivals.set_rate(1000.0, 5 * NANOS_PER_SECOND);
    let next = steps(&mut arrivals, 1)[0];
    assert_eq!(next.intended, 5 * NANOS_PER_SECOND + NANOS_PER_SECOND / 1000);
    assert!((arrivals.rate_per_s() - 1000.0).abs() < 1e-6);
}

/// A failure can only be replayed if the seed decides the schedule.
#[test]
fn the_seed_decides() {
    let one = steps(&mut arrivals(5, Spacing::Poisson, 50.0), 1000);
    assert_eq!(one, steps(&mut arrivals(5, Spacing::Poisson, 50.0), 1000));
    assert_ne!(one, steps(&mut arrivals(6, Spacing::Poisson, 50.0), 1000));
}
