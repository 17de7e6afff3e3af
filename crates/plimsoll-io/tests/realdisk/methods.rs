//! Every method keeps the contract, also with little room, and a sleeping executor is woken.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_io::conformance::{Subject, check_all};
use plimsoll_io::{
    Action, Clock, Disk, Durability, DurableBy, Method, OpenMode, Operation, RealDisk,
    RealDiskOptions,
};

use super::place::Place;
use super::{CONTEXT, Machine, methods_here, options_for};

fn check(name: &str, method: Method, adjust: fn(&mut RealDiskOptions)) {
    if !methods_here().contains(&method) {
        return;
    }
    let place = Place::new(name);
    check_all(|case| {
        let clock = Rc::new(Clock::real());
        let mut options = options_for(method);
        adjust(&mut options);
        let disk = RealDisk::open(options, clock.clone()).expect("this machine has the method");
        assert_eq!(disk.facts().method, method.name());
        Subject { disk, clock, folder: place.folder(case) }
    });
}

/// The method of the published figures.
#[test]
fn io_uring_keeps_the_contract() {
    check("io-uring", Method::IoUring, |_| {});
}

/// The method of containers that forbid io_uring.
#[test]
fn libaio_keeps_the_contract() {
    check("libaio", Method::Libaio, |_| {});
}

/// The method every container allows.
#[test]
fn threads_keep_the_contract() {
    check("threads", Method::Threads, |_| {});
}

/// With a single thread every order of completion is the order of submission: another schedule, the
/// same contract.
#[test]
fn one_thread_keeps_the_contract() {
    check("one-thread", Method::Threads, |options| options.threads_max = 1);
}

/// A queue of four transfers: everything else waits its turn, in every case of the suite.
#[test]
fn a_short_queue_keeps_the_contract() {
    check("short-uring", Method::IoUring, |options| options.queue_depth_max = 4);
    check("short-libaio", Method::Libaio, |options| options.queue_depth_max = 4);
}

/// Where memory cannot be locked, transfers go without registered memory.
#[test]
fn unregistered_memory_keeps_the_contract() {
    check("unregistered", Method::IoUring, |options| {
        options.registered_bytes_max = 0;
    });
}

/// Where RWF_DSYNC is refused, durable writes take two steps.
#[test]
fn writes_with_a_separate_sync_keep_the_contract() {
    for (name, method) in [
        ("two-step-uring", Method::IoUring),
        ("two-step-libaio", Method::Libaio),
        ("two-step-threads", Method::Threads),
    ] {
        check(name, method, |options| {
            options.durable_by = DurableBy::WriteThenSync;
        });
    }
}

/// Whoever reads a result must be able to see which way its durable writes went. What came out is a
/// matter of this machine; that it is told is not.
#[test]
fn the_way_of_durable_writes_is_told_once() {
    for method in methods_here() {
        let place = Place::new(&format!("faster-{}", method.name()));
        let machine = Machine::by(method);
        let (files, path) = (machine.files(), place.root().join("log"));
        machine.run(async move {
            let file = files.open(path, OpenMode::Create, CONTEXT).await;
            let file = file.expect("a new file");
            for number in 0..80 {
                let offset = number % 4 * 4096;
                let written = file.write(offset, file.allocate(4096), Durability::Durable, CONTEXT);
                written.await.expect("a durable write");
            }
        });
        let facts = machine.disk.facts();
        let told: Vec<_> = facts
            .choices
            .iter()
            .filter(|choice| choice.contains("RWF_DSYNC") || choice.contains("fdatasync"))
            .collect();
        assert_eq!(told.len(), 1, "{}: {facts:?}", method.name());
    }
}

/// A disk that goes away in the middle of its work waits for the device: its memory must not be
/// freed under it.
#[test]
fn dropping_a_disk_waits_for_its_transfers() {
    for method in methods_here() {
        let place = Place::new(&format!("dropped-{}", method.name()));
        let machine = Machine::by(method);
        let (files, path) = (machine.files(), place.root().join("file"));
        let opened = path.clone();
        let file = machine.run(async move {
            let file = files.open(opened, OpenMode::Create, CONTEXT).await.expect("a new file");
            file.extend(1 << 24, CONTEXT).await.expect("room");
            file
        });
        let called = Rc::new(Cell::new(false));
        for block in 0..256u64 {
            let called = called.clone();
            let mut buffer = machine.disk.allocate(65536);
            buffer.fill(1 + (block % 255) as u8);
            machine.disk.submit(Operation {
                action: Action::Write {
                    file: file.opened().file,
                    offset: block * 65536,
                    buffer,
                    durability: Durability::Durable,
                },
                context: CONTEXT,
                completion: Box::new(move |_| called.set(true)),
            });
        }
        drop((file, machine));
        let content = std::fs::read(path).expect("the file exists");
        for (block, bytes) in content.chunks(65536).enumerate() {
            let expected = 1 + (block % 255) as u8;
            assert!(bytes.iter().all(|byte| *byte == expected), "{}: block {block}", method.name());
        }
        assert!(!called.get(), "nobody reaped");
    }
}

/// Memory lent by one disk may be written by another, which knows its number as something else.
#[test]
fn disks_take_each_others_memory() {
    let place = Place::new("foreign-memory");
    let machine = || Machine::with(RealDiskOptions::default());
    let (lender, user) = (machine(), machine());
    let own = user.disk.allocate(4096);
    let (files, path) = (user.files(), place.root().join("file"));
    let mut foreign = lender.disk.allocate(4096);
    foreign.fill(9);
    user.run(async move {
        let file = files.open(path, OpenMode::Create, CONTEXT).await;
        let file = file.expect("a new file");
        let written = file.write(0, foreign, Durability::Durable, CONTEXT).await;
        written.expect("memory is memory");
        let read = file.read(0, own, CONTEXT).await.expect("a read");
        assert!(read.iter().all(|byte| *byte == 9));
    });
}
