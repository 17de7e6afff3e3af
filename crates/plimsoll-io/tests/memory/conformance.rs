//! The memory disk keeps the contract of every disk, whatever kind of disk it plays.

use std::rc::Rc;

use plimsoll_io::conformance::{Subject, check_all};
use plimsoll_io::{Clock, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Random, Tracking};

fn check(options: MemoryOptions, clock: impl Fn() -> Clock) {
    check_all(|case| {
        let clock = Rc::new(clock());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(5), options.clone());
        disk.create_directory(case);
        Subject { disk, clock, folder: case.into() }
    });
}

/// The strict disk the engine is tested on.
#[test]
fn the_default_keeps_the_contract() {
    check(MemoryOptions::default(), Clock::simulated);
}

/// Completions in any order, and a queue.
#[test]
fn random_latencies_keep_the_contract() {
    let latency = LatencyPlan::of(Latency::Exponential { fixed_ns: 0, mean_ns: 1_000_000 });
    let options = MemoryOptions {
        latency: latency.with_servers(7),
        tracking: Tracking::WriteThrough,
        chunk_bytes: 512,
        alignment_bytes: 4096,
        ..MemoryOptions::default()
    };
    check(options, Clock::simulated);
}

/// The RAM disk, in both kinds of time.
#[test]
fn the_ram_disk_keeps_the_contract() {
    check(MemoryOptions::ram(), Clock::simulated);
    check(MemoryOptions::ram(), Clock::real);
}
