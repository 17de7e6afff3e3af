//! The real disk keeps the contract, by each of its methods, on a real file system.

mod place;

use std::rc::Rc;

use place::Place;
use plimsoll_io::conformance::{Subject, check_all};
use plimsoll_io::{Clock, Disk, DurableBy, Method, MethodChoice, RealDisk, RealDiskOptions};

fn check_method(name: &str, method: Method, adjust: fn(&mut RealDiskOptions)) {
    let place = Place::new(name);
    check_all(|case| {
        let clock = Rc::new(Clock::real());
        let mut options = RealDiskOptions {
            method: MethodChoice::Only(method),
            ..RealDiskOptions::default()
        };
        adjust(&mut options);
        let disk = RealDisk::open(options, clock.clone()).expect("this machine has the method");
        assert_eq!(disk.facts().method, method.name());
        Subject {
            disk,
            clock,
            folder: place.folder(case),
        }
    });
}

/// The method every container allows.
#[test]
fn threads_keep_the_contract() {
    check_method("threads", Method::Threads, |_| {});
}

/// With a single thread every order of completion is the order of submission: another schedule, the same contract.
#[test]
fn one_thread_keeps_the_contract() {
    check_method("one-thread", Method::Threads, |options| {
        options.threads_max = 1;
    });
}

/// Where RWF_DSYNC is refused, durable writes take two steps.
#[test]
fn writes_with_a_separate_sync_keep_the_contract() {
    check_method("separate-sync", Method::Threads, |options| {
        options.durable_by = DurableBy::WriteThenSync;
    });
}

/// The method of the published figures.
#[test]
fn io_uring_keeps_the_contract() {
    check_method("io-uring", Method::IoUring, |_| {});
}

/// A queue of four transfers: everything else waits its turn, in every case of the suite.
#[test]
fn a_short_queue_keeps_the_contract() {
    check_method("short-uring", Method::IoUring, |options| {
        options.queue_depth_max = 4
    });
    check_method("short-libaio", Method::Libaio, |options| {
        options.queue_depth_max = 4
    });
}

/// Where memory cannot be locked, transfers go without registered memory.
#[test]
fn unregistered_memory_keeps_the_contract() {
    check_method("unregistered", Method::IoUring, |options| {
        options.registered_bytes_max = 0;
    });
}

/// The method of containers that forbid io_uring.
#[test]
fn libaio_keeps_the_contract() {
    check_method("libaio", Method::Libaio, |_| {});
}
