//! Power cuts in virtual time. The power fails at a random moment of a busy run, or at an operation
//! it was aimed at; what the disk lost is drawn; the databases are recovered, sometimes with
//! further cuts during recovery; then the auditor compares. The promise: every acknowledged commit
//! is there, and the state is exactly that of an unbroken run of commits. What the cuts met is
//! counted and printed: a promise kept where nothing was at stake is worth nothing. For as long as
//! told, one run is cut at many moments (`forked.rs`).

#[path = "../support/mod.rs"]
mod support;

mod coverage;
mod forked;
mod history;
mod lives;
mod moments;
mod sizes;
mod tables;
mod world;

use std::collections::BTreeSet;

use coverage::{ALWAYS, Coverage, IN_THE_LONG_RUN, check_met, check_met_often};
use support::{SHARE_OF_HARD_TIMES, first_seed, side_by_side, wanted};

/// What many worlds came to.
#[derive(Default)]
struct Tally {
    /// Cuts of one world share its history, so there are fewer of these.
    worlds: u64,
    /// Worlds in which a process was killed before a cut, and those in which one was closed or
    /// backed up under load.
    worlds_with_kills: u64,
    worlds_with_closes: u64,
    cuts: u64,
    cuts_in_recovery: u64,
    /// Cuts after which the databases were closed, too, and their files deeply checked.
    closed: u64,
    checked_deeply: u64,
    /// Of these, those where no page of the database may be lost but to the tree of the serial
    /// numbers.
    space_checked: u64,
    commits_kept: u64,
    commits_lost: u64,
    simulated_ns: u64,
    coverage: Coverage,
    started: Started,
}

/// When the first world began, in real time, for the count of cuts per second.
struct Started(std::time::Instant);

impl Default for Started {
    #[expect(
        clippy::disallowed_methods,
        reason = "how fast cuts are is measured in real time and decides nothing"
    )]
    fn default() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.worlds += other.worlds;
        self.worlds_with_kills += other.worlds_with_kills;
        self.worlds_with_closes += other.worlds_with_closes;
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.closed += other.closed;
        self.checked_deeply += other.checked_deeply;
        self.space_checked += other.space_checked;
        self.commits_kept += other.commits_kept;
        self.commits_lost += other.commits_lost;
        self.simulated_ns += other.simulated_ns;
        for (name, cuts) in other.coverage {
            *self.coverage.entry(name).or_default() += cuts;
        }
    }

    /// Adds what the lives before the cuts of a world were.
    fn note_lives(&mut self, lived: &BTreeSet<&'static str>) {
        let [kill, close, backup, _] = lives::OF_LIVES;
        self.worlds_with_kills += u64::from(lived.contains(kill));
        self.worlds_with_closes += u64::from(lived.contains(close) || lived.contains(backup));
    }

    /// Fails where too few worlds had more than one life before their cuts.
    fn check_lives(&self) {
        let (kills, closes) = (self.worlds_with_kills, self.worlds_with_closes);
        assert!(3 * kills >= self.worlds, "kills in {kills} of {} worlds", self.worlds);
        assert!(10 * closes >= self.worlds, "closes in {closes} of {} worlds", self.worlds);
        check_met(&self.coverage, &lives::OF_LIVES);
    }

    fn print_summary(&self) {
        println!(
            "{} of {} worlds with a kill before a cut, {} with a close or a backup under load",
            self.worlds_with_kills, self.worlds, self.worlds_with_closes
        );
        println!(
            "{} power cuts of {} worlds, {} of them in recovery; {} closed again, {} of them \
             checked deeply, {} in all their space; {} commits kept, {} unacknowledged ones lost; \
             in {:.3} simulated seconds",
            self.cuts,
            self.worlds,
            self.cuts_in_recovery,
            self.closed,
            self.checked_deeply,
            self.space_checked,
            self.commits_kept,
            self.commits_lost,
            self.simulated_ns as f64 / 1e9
        );
        let seconds = self.started.0.elapsed().as_secs_f64();
        println!("{:.1} power cuts per second of real time", self.cuts as f64 / seconds);
    }

    fn print(&self) {
        self.print_summary();
        for (name, cuts) in &self.coverage {
            println!("  {cuts:>8} cuts met: {name}");
        }
    }
}

fn many(first_seed: u64, worlds: u64, tally: &mut Tally) {
    for seed in first_seed..first_seed + worlds {
        println!("seed {seed}");
        world::run(seed, 4, tally);
        tally.worlds += 1;
    }
}

/// The same number of worlds, each run cut at many moments.
fn many_moments(first_seed: u64, worlds: u64, tally: &mut Tally) {
    for seed in first_seed..first_seed + worlds {
        println!("seed {seed}");
        forked::run(seed, tally);
        tally.worlds += 1;
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

#[test]
fn a_hundred_cuts_of_few_runs_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    many_moments(2, 4, &mut tally);
    tally.print();
    assert!(tally.cuts >= 100, "only {} cuts", tally.cuts);
    assert!(
        tally.cuts_in_recovery > 10 && tally.commits_lost > 0,
        "the cuts must hurt to prove anything"
    );
}

/// See [`sizes::draw_wide_keys`].
#[test]
fn cuts_among_long_keys_that_begin_alike_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    many_moments(14, 1, &mut tally);
    many_moments(30, 1, &mut tally);
    tally.print();
    assert!(tally.cuts >= 50, "only {} cuts", tally.cuts);
}

/// Why it matters: a process finds what the one before it had written and not synced, and the power
/// takes that away from it.
#[test]
fn cuts_after_other_lives_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    many_moments(100, 10, &mut tally);
    // Here what a dead process had written is all that a checkpoint must not pass unsynced.
    many_moments(2_026_112_801_010_051, 1, &mut tally);
    tally.print();
    tally.check_lives();
}

#[test]
#[ignore = "slow: `make simulate SEED=n` and `make slow`"]
fn five_thousand_cuts_after_other_lives_lose_nothing_acknowledged() {
    let mut tally = Tally::default();
    let mut seed = first_seed(20_000);
    while tally.cuts < 5_000 {
        many_moments(seed, 20, &mut tally);
        seed += 20;
    }
    tally.print();
    tally.check_lives();
}

/// Worlds in which something was lost once.
#[test]
fn worlds_that_found_a_fault() {
    let mut tally = Tally::default();
    for seed in [1_001_103, 1_001_619] {
        assert!(sizes::has_images(seed), "{seed} is another world than the one in which it was");
        many(seed, 1, &mut tally);
    }
    // A page changed while recovery wrote it was held dirty since too late, and the checkpoint
    // passed its image. A tree was released after a kill, and the checkpoint passed the note of its
    // drop before the log of the release was durable, in two worlds. A reader and the purge waited
    // for each other in a cache full of what the reader held.
    for seed in [
        20_261_123_010_008,
        20_261_124_010_112,
        20_261_123_011_831,
        2_026_112_801_010_023,
        20_261_127_013_401,
    ] {
        many_moments(seed, 1, &mut tally);
    }
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

/// Worlds that one thread runs before its counts are added up.
const WORLDS_OF_BATCH: u64 = 20;
/// Cuts after which all counts are printed, so that little is lost when the rest is stopped.
const CUTS_OF_REPORT: u64 = 20_000;

#[test]
#[ignore = "as long as told: `make simulate SEED=n HOURS=h`, `CUTS=n`, `JOBS=n`"]
fn power_cuts_for_as_long_as_told() {
    let share = 1.0 - SHARE_OF_HARD_TIMES;
    let seconds = wanted("PLIMSOLL_HOURS").map(|hours| hours * 3600.0 * share);
    let cuts = wanted("PLIMSOLL_CUTS").map(|cuts| cuts as u64);
    let jobs = wanted("PLIMSOLL_JOBS").map_or(1, |jobs| jobs as u64);
    // Without either it only shows that it goes.
    let seconds = seconds.unwrap_or(if cuts.is_some() { f64::INFINITY } else { 4.0 });
    let (mut tally, mut reported) = (Tally::default(), 0);
    let mut seed = first_seed(10_000);
    while tally.started.0.elapsed().as_secs_f64() < seconds
        && cuts.is_none_or(|cuts| tally.cuts < cuts)
    {
        let batch = |job: u64| {
            let mut tally = Tally::default();
            many_moments(seed + job * WORLDS_OF_BATCH, WORLDS_OF_BATCH, &mut tally);
            tally
        };
        for part in side_by_side(jobs, batch) {
            tally.add(part);
        }
        seed += jobs * WORLDS_OF_BATCH;
        if tally.cuts >= reported + CUTS_OF_REPORT {
            reported = tally.cuts;
            tally.print();
        } else {
            tally.print_summary();
        }
    }
    tally.print();
    check_met(&tally.coverage, &ALWAYS);
    if let Some(cuts) = cuts {
        check_met_often(&tally.coverage, &ALWAYS, cuts / 1_000);
        check_met_often(&tally.coverage, &IN_THE_LONG_RUN, cuts / 1_000);
        check_met_often(&tally.coverage, &lives::OF_LIVES, cuts / 1_000);
        tally.check_lives();
    }
}
