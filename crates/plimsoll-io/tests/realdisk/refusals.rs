//! A kernel that says no: methods fall back and say so, errors reach the caller once and are never
//! retried.

use std::rc::Rc;

use plimsoll_io::conformance::{Subject, check_all};
use plimsoll_io::{
    Clock, Disk, DiskErrorKind, Durability, Method, MethodChoice, OpenMode, RealDisk,
    RealDiskOptions,
};

use super::place::Place;
use super::seccomp::{in_own_thread, refuse};
use super::{CONTEXT, Machine, methods_here, options_for};

/// The default profiles of containers forbid io_uring: the whole contract holds by the next method,
/// and the record says why.
#[test]
fn forbidden_io_uring_falls_back_to_libaio() {
    if !methods_here().contains(&Method::Libaio) {
        return;
    }
    in_own_thread(|| {
        refuse(&[(libc::SYS_io_uring_setup, libc::EPERM)]);
        let place = Place::new("no-uring");
        check_all(|case| {
            let clock = Rc::new(Clock::real());
            let disk =
                RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("libaio is left");
            let facts = disk.facts();
            assert_eq!(facts.method, "libaio");
            assert!(facts.remarks[0].contains("io_uring is not used"), "{facts:?}");
            assert!(facts.remarks[0].contains("forbidden"), "{facts:?}");
            Subject { disk, clock, folder: place.folder(case) }
        });
    });
}

/// An old or emulated kernel knows neither: threads do it.
#[test]
fn without_both_threads_are_used() {
    in_own_thread(|| {
        refuse(&[(libc::SYS_io_uring_setup, libc::ENOSYS), (libc::SYS_io_setup, libc::ENOSYS)]);
        let facts = Machine::with(RealDiskOptions::default()).disk.facts();
        assert_eq!(facts.method, "threads");
        assert_eq!(facts.remarks.len(), 2, "{facts:?}");
        assert!(facts.remarks.iter().all(|remark| remark.contains("unknown to this kernel")));
    });
}

/// A ring that can be made but not used is as good as none.
#[test]
fn a_ring_that_does_not_work_is_not_used() {
    if methods_here() != Method::ALL {
        return;
    }
    in_own_thread(|| {
        refuse(&[(libc::SYS_io_uring_enter, libc::EPERM)]);
        assert_eq!(Machine::with(RealDiskOptions::default()).disk.facts().method, "libaio");
    });
}

/// Who asks for one method gets it or an error, never another one.
#[test]
fn a_chosen_method_is_not_replaced() {
    for method in Method::ALL {
        let options = RealDiskOptions { refused_methods: vec![method], ..options_for(method) };
        let error =
            RealDisk::open(options, Rc::new(Clock::real())).err().expect("the method is refused");
        assert_eq!(error.kind, DiskErrorKind::Unsupported);
        assert!(error.to_string().contains(method.name()), "{error}");
    }
    let options = RealDiskOptions {
        refused_methods: vec![Method::IoUring, Method::Libaio],
        method: MethodChoice::Auto,
        ..RealDiskOptions::default()
    };
    assert_eq!(Machine::with(options).disk.facts().method, "threads");
}

/// Without RWF_DSYNC durable writes still happen, in two steps, and the record says so.
#[test]
fn a_refused_durable_flag_becomes_a_sync() {
    in_own_thread(|| {
        refuse(&[(libc::SYS_pwritev2, libc::EOPNOTSUPP)]);
        let place = Place::new("no-dsync");
        let machine = Machine::by(Method::Threads);
        let (files, path) = (machine.files(), place.root().join("log"));
        machine.run(async move {
            let file = files.open(path, OpenMode::Create, CONTEXT).await;
            let file = file.expect("a new file");
            let writes: Vec<_> = (0..4)
                .map(|block| {
                    let mut buffer = file.allocate(4096);
                    buffer.fill(block + 1);
                    file.write(u64::from(block) * 4096, buffer, Durability::Durable, CONTEXT)
                })
                .collect();
            for write in writes {
                write.await.expect("a durable write in two steps");
            }
            let read = file.read(0, file.allocate(16384), CONTEXT).await;
            let read = read.expect("a read");
            assert!(
                read.chunks(4096).zip(1..).all(|(block, byte)| block.iter().all(|b| *b == byte))
            );
        });
        let remarks = machine.disk.facts().remarks;
        let told = remarks.iter().filter(|remark| remark.contains("RWF_DSYNC"));
        assert_eq!(told.count(), 1, "said once: {remarks:?}");
    });
}

/// A durable write whose sync fails has failed.
#[test]
fn a_failing_sync_fails_the_durable_write() {
    in_own_thread(|| {
        refuse(&[(libc::SYS_pwritev2, libc::EOPNOTSUPP), (libc::SYS_fdatasync, libc::EIO)]);
        let place = Place::new("bad-sync");
        let machine = Machine::by(Method::Threads);
        let (files, path) = (machine.files(), place.root().join("log"));
        machine.run(async move {
            let file = files.open(path, OpenMode::Create, CONTEXT).await;
            let file = file.expect("a new file");
            let buffer = file.allocate(4096);
            let written = file.write(0, buffer, Durability::Durable, CONTEXT).await;
            assert_eq!(written.expect_err("the sync fails").kind, DiskErrorKind::Medium);
            assert_eq!(file.sync(CONTEXT).await.expect_err("it fails").kind, DiskErrorKind::Medium);
        });
    });
}

/// Every error number reaches the caller with its operation: also those that other programs like to
/// hide. EINTR is none of them: what a signal interrupts is repeated.
#[test]
fn errors_reach_the_caller() {
    for (errno, kind) in [
        (libc::EIO, DiskErrorKind::Medium),
        (libc::EAGAIN, DiskErrorKind::Other),
        (libc::ENODEV, DiskErrorKind::Gone),
    ] {
        in_own_thread(move || {
            refuse(&[(libc::SYS_pread64, errno), (libc::SYS_io_submit, errno)]);
            for method in methods_here().into_iter().filter(|method| *method != Method::IoUring) {
                let place = Place::new(&format!("errno-{errno}-{}", method.name()));
                let machine = Machine::by(method);
                let (files, path) = (machine.files(), place.root().join("file"));
                machine.run(async move {
                    let file = files.open(path, OpenMode::Create, CONTEXT).await;
                    let file = file.expect("a new file");
                    file.extend(4096, CONTEXT).await.expect("room");
                    let error = file.read(0, file.allocate(4096), CONTEXT).await;
                    let error = error.expect_err("the kernel says no");
                    assert_eq!((error.errno, error.kind), (Some(errno), kind));
                });
            }
        });
    }
}
