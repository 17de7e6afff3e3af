//! Hard times: the storage is slow, hangs, fails, fills up, forgets, misplaces, flips and loses
//! sectors while the engine works on it, over several rounds with power cuts and further cuts of
//! the recovery. Afterwards the storage behaves and the auditor reads everything.
//!
//! The promises: where nothing was damaged, every acknowledged commit is there and nothing else;
//! where something was, each row is what was committed, or refused with an error. What a world does
//! is a list of parts (`script.rs`), and a world that breaks a promise is reduced to the parts it
//! needs for that (`shrink.rs`).

mod books;
mod judge;
mod script;
mod shrink;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::{SHARE_OF_HARD_TIMES, first_seed, side_by_side, wanted};
use plimsoll_io::{Effect, FaultRule, OperationKind, Purpose};
use script::{Part, Script};
use shrink::shrink;

/// Every effect that a disk can have on its user, except those that are power cuts or lies about
/// flushes.
const EFFECTS: [&str; 12] = [
    "delay",
    "fail",
    "fail_partly",
    "flip_on_read",
    "flip_stored",
    "hang",
    "lose_sector",
    "lose_write",
    "misdirect_to_other_file",
    "misdirect_within_file",
    "slow",
    "tear_write",
];

/// A failing script is tried so often at most while it is made smaller.
const TRIES_MAX: u64 = 400;

/// What a script met; a broken promise is told with the smallest script that still breaks one.
fn met_by(script: &Script) -> BTreeMap<&'static str, u64> {
    let run = |script: &Script| catch_unwind(AssertUnwindSafe(|| world::run(script)));
    let broken = match run(script) {
        Ok(met) => return met,
        Err(broken) => broken,
    };
    println!("seed {} breaks a promise; making it smaller", script.seed);
    let parts = shrink(&script.parts, TRIES_MAX, |parts| run(&script.with(parts)).is_err());
    println!("seed {}: {} of {} parts are enough:", script.seed, parts.len(), script.parts.len());
    parts.iter().for_each(|part| println!("  {part:?}"));
    std::panic::resume_unwind(broken)
}

/// What many worlds met.
type AllMet = BTreeMap<&'static str, u64>;

/// Runs worlds and adds what they met.
fn run_worlds(seeds: std::ops::Range<u64>, all: &mut AllMet) {
    for seed in seeds {
        for (name, count) in met_by(&Script::drawn(seed)) {
            *all.entry(name).or_default() += count;
        }
    }
}

fn print(met: &AllMet) {
    for (name, count) in met {
        println!("  {count:>8} {name}");
    }
}

fn swarm(first: u64, worlds: u64) {
    let mut met = AllMet::new();
    run_worlds(first..first + worlds, &mut met);
    print(&met);
    check_met(&met);
}

fn check_met(met: &AllMet) {
    let wanted = EFFECTS.iter().chain(&world::FAILURES).chain(&world::FATES);
    let missing: Vec<_> = wanted.filter(|name| !met.contains_key(**name)).collect();
    assert!(missing.is_empty(), "never met, so nothing is shown about it: {missing:?}");
}

#[test]
fn nothing_damaged_is_returned_and_nothing_sound_is_lost_in_hard_times() {
    swarm(1, 100);
}

#[test]
#[ignore = "slow: `make simulate SEED=n` and `make slow`"]
fn hundreds_of_hard_times() {
    swarm(first_seed(1_000), 600);
}

/// Worlds that one thread runs before what they met is added up.
const WORLDS_OF_BATCH: u64 = 50;
/// So many worlds meet everything.
const WORLDS_ENOUGH: u64 = 500;

#[test]
#[ignore = "as long as told: `make simulate SEED=n HOURS=h`, `JOBS=n`"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long worlds have run is measured in real time and decides nothing in them"
)]
fn hard_times_for_as_long_as_told() {
    let started = std::time::Instant::now();
    // Without hours it only shows that it goes.
    let seconds =
        wanted("PLIMSOLL_HOURS").map_or(4.0, |hours| hours * 3600.0 * SHARE_OF_HARD_TIMES);
    let jobs = wanted("PLIMSOLL_JOBS").map_or(1, |jobs| jobs as u64);
    let (mut all, mut worlds) = (AllMet::new(), 0);
    let mut seed = first_seed(10_000);
    while started.elapsed().as_secs_f64() < seconds {
        let batch = |job: u64| {
            let mut met = AllMet::new();
            let first = seed + job * WORLDS_OF_BATCH;
            run_worlds(first..first + WORLDS_OF_BATCH, &mut met);
            met
        };
        for part in side_by_side(jobs, batch) {
            for (name, count) in part {
                *all.entry(name).or_default() += count;
            }
        }
        seed += jobs * WORLDS_OF_BATCH;
        worlds += jobs * WORLDS_OF_BATCH;
        println!(
            "{worlds} worlds, {} power cuts, {} recoveries cut, {} rows compared",
            all["power cuts"], all["recoveries cut"], all["rows compared"]
        );
    }
    print(&all);
    if worlds >= WORLDS_ENOUGH {
        check_met(&all);
    }
}

/// A disk that lies about flushes is more than the engine can bear, so such worlds break a promise:
/// the reduction must find out why.
fn world_on_a_lying_disk(seed: u64) -> Script {
    let mut script = Script::drawn(seed);
    script.parts.retain(|part| !matches!(part, Part::Fault { .. }));
    let lie = FaultRule::new(Effect::SkipSync)
        .with_kind(OperationKind::Write)
        .with_purpose(Purpose::LogWrite);
    script.parts.push(Part::Fault { round: 0, rule: lie });
    script
}

/// Why it matters: a world of some hundred parts that fails once in a million tells nobody what is
/// wrong.
#[test]
fn a_world_that_breaks_a_promise_is_reduced_to_what_it_needs() {
    let breaks = |script: &Script| catch_unwind(AssertUnwindSafe(|| world::run(script))).is_err();
    let broken = (1..40).map(world_on_a_lying_disk).find(breaks);
    let script = broken.expect("a disk that lies about flushes loses something");
    assert!(script.parts.len() > 100, "{} parts are no task", script.parts.len());
    let parts = shrink(&script.parts, TRIES_MAX, |parts| breaks(&script.with(parts)));
    println!("{parts:#?}");
    assert!(parts.len() <= 6, "{} parts are left", parts.len());
    assert!(breaks(&script.with(&parts)), "what is left does it again");
    assert!(
        parts.iter().any(|part| matches!(part, Part::Fault { .. })),
        "without the lie nothing is lost"
    );
}

#[test]
fn a_reduction_leaves_only_what_is_needed() {
    let needs = |parts: &[u32]| [3, 47, 48, 99].iter().all(|part| parts.contains(part));
    let all: Vec<u32> = (0..100).collect();
    assert_eq!(shrink(&all, 10_000, needs), [3, 47, 48, 99]);
    assert_eq!(shrink(&all, 10_000, |_| true), [] as [u32; 0]);
    let halves = shrink(&all, 12, needs);
    assert!(halves.len() < 100 && needs(&halves), "what it has by then is a success");
}

/// A page of serial numbers went into the flush map, so that both were as before and nobody could
/// know: rows newer than the last serial number that was left were taken for invented ones.
#[test]
fn a_write_that_hits_the_flush_map_leaves_the_end_of_the_log_unknown() {
    let mut script = Script::drawn(8_013_469);
    // It was found before processes were killed.
    script.parts.retain(|part| !matches!(part, Part::Kill { .. }));
    let met = world::run(&script);
    assert!(met.contains_key("ends of the log that nobody can tell"), "{met:?}");
}
