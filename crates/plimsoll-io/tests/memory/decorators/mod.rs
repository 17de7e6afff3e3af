//! The decorators of a disk: what they count and hold back, and that they keep the contract of the
//! disk below.

mod held;
mod recorded;
mod throttled;

use std::rc::Rc;

use plimsoll_io::conformance::{Subject, check_all};
use plimsoll_io::{
    Clock, Context, Disk, Latency, LatencyPlan, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND,
    Purpose, Random,
};

/// A label with a purpose.
fn label(purpose: Purpose) -> Context {
    Context::of(purpose)
}

/// A memory disk that takes a millisecond for everything.
fn millisecond_disk() -> (Rc<Clock>, Rc<MemoryDisk>) {
    let clock = Rc::new(Clock::simulated());
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(NANOS_PER_MILLISECOND)),
        ..MemoryOptions::default()
    };
    (clock.clone(), MemoryDisk::new(clock, Random::from_seed(1), options))
}

/// Holds a decorator to the conformance suite, over memory in virtual and in real time.
fn check_decorator(decorate: impl Fn(Rc<MemoryDisk>, Rc<Clock>) -> Rc<dyn Disk>) {
    let ram = MemoryOptions::ram();
    for (clock, options) in [
        (Clock::simulated as fn() -> Clock, MemoryOptions::default()),
        (Clock::simulated, ram.clone()),
        (Clock::real, ram),
    ] {
        check_all(|case| {
            let clock = Rc::new(clock());
            let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options.clone());
            disk.create_directory(case);
            Subject { disk: decorate(disk, clock.clone()), clock, folder: case.into() }
        });
    }
}
