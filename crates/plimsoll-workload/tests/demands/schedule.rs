//! An open load is worth nothing unless its schedule is kept whatever the storage does.

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::{Schedule, Spacing};

fn schedule(seed: u64, spacing: Spacing, per_s: f64) -> Schedule {
    Schedule::new(Random::from_seed(seed), spacing, per_s, 0)
}

fn due(schedule: &mut Schedule, count: usize) -> Vec<Nanos> {
    (0..count).map(|_| schedule.next_due()).collect()
}

/// The rate that was asked for is the rate of the test: a per cent off would be a per cent of the
/// users.
#[test]
fn the_rate_is_exact_in_the_long_run() {
    let regular = due(&mut schedule(1, Spacing::Regular, 7.0), 7000);
    assert_eq!(regular[6999] / 1000, 1000 * NANOS_PER_SECOND / 1000);
    let poisson = due(&mut schedule(1, Spacing::Poisson, 240.0), 100_000);
    let seconds = poisson[99_999] as f64 / NANOS_PER_SECOND as f64;
    // The standard deviation of 100000 arrivals is 316, a third of a per cent.
    assert!((100_000.0 / seconds - 240.0).abs() < 240.0 * 0.01, "{seconds}");
}

/// Queues depend on how arrivals bunch: for independent users the gaps' standard deviation is their
/// mean.
#[test]
fn poisson_gaps_vary_as_independent_users_do() {
    let due = due(&mut schedule(2, Spacing::Poisson, 1000.0), 50_000);
    let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let variation = variance.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.03, "{variation}");
}

/// A search tries one rate after the other: what was due at the old one must not be served at the
/// new one.
#[test]
fn a_new_rate_begins_now() {
    let mut schedule = schedule(4, Spacing::Regular, 10.0);
    due(&mut schedule, 3);
    schedule.set_rate(1000.0, 5 * NANOS_PER_SECOND);
    let next = due(&mut schedule, 1)[0];
    assert_eq!(next, 5 * NANOS_PER_SECOND + NANOS_PER_SECOND / 1000);
    assert!((schedule.rate_per_s() - 1000.0).abs() < 1e-6);
}

/// A failure can only be replayed if the seed decides the schedule.
#[test]
fn the_seed_decides() {
    let one = due(&mut schedule(5, Spacing::Poisson, 50.0), 1000);
    assert_eq!(one, due(&mut schedule(5, Spacing::Poisson, 50.0), 1000));
    assert_ne!(one, due(&mut schedule(6, Spacing::Poisson, 50.0), 1000));
}
