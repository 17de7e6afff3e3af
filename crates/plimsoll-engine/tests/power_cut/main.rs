//! Power cuts in virtual time. The power fails at a random moment of a busy run, or at an operation it was aimed at; what the disk lost is drawn; the
//! databases are recovered, sometimes with further cuts during recovery; then the auditor compares. The promise: every acknowledged commit is there,
//! and the state is exactly that of an unbroken run of commits. What the cuts met is counted and printed: a promise kept where nothing was at
//! stake is worth nothing.

#[path = "../support/mod.rs"]
mod support;

mod coverage;
mod tables;
mod world;

use coverage::{ALWAYS, Coverage, IN_THE_LONG_RUN, check_met};
use support::first_seed;

/// What many worlds came to.
#[derive(Default)]
struct Tally {
    cuts: u64,
    cuts_in_recovery: u64,
    commits_kept: u64,
    commits_lost: u64,
    simulated_ns: u64,
    coverage: Coverage,
}

impl Tally {
    fn print(&self) {
        println!(
            "{} power cuts, {} of them in recovery; {} commits kept, {} unacknowledged ones lost; in {:.3} simulated seconds",
            self.cuts,
            self.cuts_in_recovery,
            self.commits_kept,
            self.commits_lost,
            self.simulated_ns as f64 / 1e9
        );
        for (name, cuts) in &self.coverage {
            println!("  {cuts:>8} cuts met: {name}");
        }
    }
}

fn many(first_seed: u64, worlds: u64, tally: &mut Tally) {
    for seed in first_seed..first_seed + worlds {
        println!("seed {seed}");
        world::run(seed, 4, tally);
    }
}

#[test]
fn two_hundred_power_cuts_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    many(1, 36, &mut tally);
    tally.print();
    assert!(tally.cuts >= 200, "only {} cuts", tally.cuts);
    assert!(
        tally.cuts_in_recovery > 20 && tally.commits_lost > 0,
        "the cuts must hurt to prove anything"
    );
    check_met(&tally.coverage, &ALWAYS);
}

/// Worlds in which something was lost once.
#[test]
fn worlds_that_found_a_fault() {
    let mut tally = Tally::default();
    many(1_001_103, 1, &mut tally);
    many(1_001_619, 1, &mut tally);
}

#[test]
#[ignore = "slow: `make simulate SEED=n` and `make slow`"]
fn ten_thousand_simulated_power_cuts_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    let mut seed = first_seed(1_000);
    while tally.cuts < 10_000 {
        many(seed, 50, &mut tally);
        seed += 50;
    }
    tally.print();
    check_met(&tally.coverage, &ALWAYS);
    check_met(&tally.coverage, &IN_THE_LONG_RUN);
}

/// Real seconds to go on for, from `PLIMSOLL_HOURS`; a few without.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to go on is chosen from outside"
)]
fn seconds_wanted() -> f64 {
    let hours = std::env::var("PLIMSOLL_HOURS").ok();
    let hours = hours
        .filter(|text| !text.is_empty())
        .map(|text| text.parse::<f64>().expect("PLIMSOLL_HOURS is a number"));
    hours.unwrap_or(0.001) * 3600.0
}

#[test]
#[ignore = "as long as told: `make simulate SEED=n HOURS=h`"]
#[expect(
    clippy::disallowed_methods,
    reason = "it goes on for real hours, whatever is simulated"
)]
fn power_cuts_for_as_long_as_told() {
    let started = std::time::Instant::now();
    let mut tally = Tally::default();
    let mut seed = first_seed(10_000);
    while started.elapsed().as_secs_f64() < seconds_wanted() {
        many(seed, 100, &mut tally);
        seed += 100;
        tally.print();
    }
    check_met(&tally.coverage, &ALWAYS);
}
