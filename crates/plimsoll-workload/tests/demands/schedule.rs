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

/// A day has busy and calm hours: each arrival keeps the rate of the moment at which it is due, and
/// one that is waited for long does not sleep through the change.
#[test]
fn announced_rates_begin_when_they_were_announced_for() {
    let second = NANOS_PER_SECOND;
    let mut regular = schedule(7, Spacing::Regular, 2.0);
    regular.set_rate_at(10.0, 1_250 * second / 1_000);
    regular.set_rate_at(0.5, 2 * second);
    let found: Vec<_> = due(&mut regular, 12).iter().map(|due| due / 1_000_000).collect();
    // Half of a gap of 500 ms has passed at 1,250 ms; half of one of 100 ms passes by 1,300 ms.
    assert_eq!(found, [500, 1000, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 4000, 6000]);
    let mut poisson = schedule(8, Spacing::Poisson, 100.0);
    for minute in 1..=40 {
        let per_s = if minute % 2 == 1 { 1.0 } else { 100.0 };
        poisson.set_rate_at(per_s, minute * 60 * second);
    }
    let mut counts = [0.0; 2];
    loop {
        let minute = poisson.next_due() / (60 * second);
        if minute >= 40 {
            break;
        }
        counts[(minute % 2) as usize] += 1.0;
    }
    for (count, expected) in counts.into_iter().zip([120_000.0_f64, 1_200.0]) {
        assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count} of {expected}");
    }
}
