//! A process that was stopped for a while, or whose machine was paused: the gap is named as that.
//!
//! Why it matters: whatever was under way looks as slow as the gap was long, and the log or the
//! disk was blamed for it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{
    Buffer, Clock, Disk, DiskFacts, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Nanos,
    Operation, Random, Tracking,
};
use serde_json::json;

/// Sleeps through its deadlines once for two seconds, as a process does that SIGSTOP has stopped.
struct Stopped {
    disk: Rc<MemoryDisk>,
    waits: Cell<u32>,
}

impl Disk for Stopped {
    fn submit(&self, operation: Operation) {
        self.disk.submit(operation);
    }

    fn reap(&self) -> usize {
        self.disk.reap()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the whole thread is to stand still, not one task"
    )]
    fn wait(&self, deadline: Option<Nanos>) {
        self.waits.set(self.waits.get() + 1);
        if self.waits.get() == 2_000 {
            std::thread::sleep(Duration::from_secs(2));
        }
        self.disk.wait(deadline);
    }

    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.disk.next_event()
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.disk.allocate(length_bytes)
    }
}

#[test]
fn a_gap_in_the_clock_of_the_sampler_is_named() {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(500_000)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    let stopped = Rc::new(Stopped { disk, waits: Cell::new(0) });
    let mut plan = crate::support::spec("raw_files", json!({"sessions": 2, "shared": false}), 4.0);
    plan["sample_interval_ms"] = json!(200);
    let ran = crate::support::run(&clock, stopped.clone(), &plan);
    assert_eq!(ran.outcome.error.as_ref().map(|error| error.text.as_str()), None);
    assert!(stopped.waits.get() > 2_000);
    let told = ran.told("clock_gap");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("was stopped"), "{told:?}");
    let longest_ns = ran.figures("clock_gap").iter().map(|figures| figures.latency_ns_max).max();
    assert!(
        longest_ns.is_some_and(|ns| (1_700_000_000..2_500_000_000).contains(&ns)),
        "{longest_ns:?}"
    );
}
