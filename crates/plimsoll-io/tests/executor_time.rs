//! How the executor accounts for its own time: what a verdict doubts a slow storage by.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_io::{Clock, Executor, NANOS_PER_MILLISECOND, RealDisk, RealDiskOptions};

/// Four rounds of 5 ms of work and 20 ms of sleep. Work is busy time and a gap between two looks; sleep is neither, and the
/// look after a sleep is no gap: gaps of nothing would hide the long ones among them.
#[test]
fn work_is_a_gap_and_sleep_is_none() {
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("some method works");
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    executor.take_statistics();
    let started = Instant::now();
    executor
        .run(async move {
            for _ in 0..4 {
                let until = Instant::now() + Duration::from_millis(5);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
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
