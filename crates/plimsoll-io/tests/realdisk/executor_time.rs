//! How the executor accounts for its own time: what a verdict doubts a slow storage by.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_io::{
    Clock, Disk, DiskFacts, Executor, NANOS_PER_MILLISECOND, Nanos, Operation, RealDisk,
    RealDiskOptions,
};

use crate::support::work_for;

/// A disk whose kernel holds the thread for a while whenever it is looked at, as a full queue or a
/// FUSE server does.
struct Holding {
    disk: Rc<RealDisk>,
    held: Cell<Nanos>,
}

const HELD_NS: Nanos = 20 * NANOS_PER_MILLISECOND;

impl Disk for Holding {
    fn submit(&self, operation: Operation) {
        self.disk.submit(operation);
    }
    fn reap(&self) -> usize {
        let started = Instant::now();
        std::thread::sleep(Duration::from_nanos(HELD_NS));
        self.held.set(self.held.get() + started.elapsed().as_nanos() as Nanos);
        self.disk.reap()
    }
    fn wait(&self, deadline: Option<Nanos>) {
        self.disk.wait(deadline);
    }
    fn waker(&self) -> std::task::Waker {
        self.disk.waker()
    }
    fn next_event(&self) -> Option<Nanos> {
        None
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }
    fn facts(&self) -> DiskFacts {
        self.disk.facts()
    }
    fn inside_kernel_ns(&self) -> Nanos {
        self.held.get()
    }
}

/// Why: the generator was blamed for a disk of 300 IOPS, because the time the kernel held it
/// counted as its own work.
#[test]
fn time_inside_the_kernel_is_neither_work_nor_lateness() {
    let clock = Rc::new(Clock::real());
    let real =
        RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("some method works");
    let disk = Rc::new(Holding { disk: real, held: Cell::new(0) });
    let executor = Executor::new(clock, disk.clone());
    let handle = executor.handle();
    executor.take_statistics();
    executor
        .run(async move {
            for _ in 0..10 {
                handle.yield_now().await;
            }
        })
        .expect("nothing waits");
    let statistics = executor.take_statistics();
    assert!(disk.held.get() >= 10 * HELD_NS);
    assert!(statistics.busy_ns < 5 * HELD_NS, "{} ns of work", statistics.busy_ns);
    let median_ns = statistics.reap_gap.quantile_ns(0.5);
    assert!(median_ns < HELD_NS / 2, "looks were {median_ns} ns late");
}

/// Four rounds of 5 ms of work and 20 ms of sleep. Work is busy time and a gap between two looks;
/// sleep is neither, and the look after a sleep is no gap: gaps of nothing would hide the long ones
/// among them.
#[test]
fn work_is_a_gap_and_sleep_is_none() {
    let clock = Rc::new(Clock::real());
    let disk =
        RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("some method works");
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    executor.take_statistics();
    let started = Instant::now();
    executor
        .run(async move {
            for _ in 0..4 {
                work_for(Duration::from_millis(5));
                handle.sleep(20 * NANOS_PER_MILLISECOND).await;
            }
        })
        .expect("timers are due");
    let elapsed_ns = started.elapsed().as_nanos() as u64;
    let statistics = executor.take_statistics();
    assert!(statistics.busy_ns >= 20 * NANOS_PER_MILLISECOND, "{statistics:?}");
    assert!(
        statistics.busy_ns <= elapsed_ns - 60 * NANOS_PER_MILLISECOND,
        "{} of {elapsed_ns}",
        statistics.busy_ns
    );
    let median_ns = statistics.reap_gap.quantile_ns(0.4);
    assert!(
        median_ns >= 4 * NANOS_PER_MILLISECOND,
        "most gaps hold 5 ms of work, but {median_ns} ns is the median of {}",
        statistics.reap_gap.count()
    );
}
