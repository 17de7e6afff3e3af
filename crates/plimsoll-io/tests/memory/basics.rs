//! Operations as the contract of the seam words them.

use plimsoll_io::{
    Buffer, DiskErrorKind, Durability, Executor, Files, MemoryDisk, MemoryOptions, OpenMode,
    Random, Tracking,
};
use std::rc::Rc;

use crate::rig::{Rig, label};

/// What was written is read, across chunk borders and in parts of chunks; holes read as zero.
#[test]
fn reads_return_what_was_written() {
    for chunk_bytes in [512, 4096, 65536] {
        let rig = Rig::new(MemoryOptions { chunk_bytes, ..MemoryOptions::default() });
        let file = rig.settled_file("a", 100_352);
        rig.write(&file, 3584, &[7; 9728], Durability::Volatile);
        rig.write(&file, 4096, &[9; 512], Durability::Durable);
        let mut expected = vec![0; 100_352];
        expected[3584..3584 + 9728].fill(7);
        expected[4096..4608].fill(9);
        assert_eq!(rig.read(&file, 0, 100_352), expected, "chunks of {chunk_bytes}");
    }
}

/// Every refusal has its own kind, because callers decide by it.
#[test]
fn refusals_name_their_kind() {
    let rig = Rig::new(MemoryOptions { capacity_bytes: Some(8192), ..MemoryOptions::default() });
    let files = rig.files.clone();
    rig.run(async move {
        let kind = |mode, path: &'static str| {
            let files = files.clone();
            async move { files.open(path, mode, label()).await.err().map(|error| error.kind) }
        };
        assert_eq!(kind(OpenMode::Write, "missing").await, Some(DiskErrorKind::NotFound));
        assert_eq!(kind(OpenMode::Create, "no/parent").await, Some(DiskErrorKind::NotFound));
        let file = files.open("/a", OpenMode::Create, label()).await.unwrap();
        assert_eq!(kind(OpenMode::Create, "a").await, Some(DiskErrorKind::AlreadyExists));
        assert_eq!(kind(OpenMode::Write, "a").await, Some(DiskErrorKind::Locked));
        assert_eq!(kind(OpenMode::Read, "a").await, None);

        let write = |offset, length| {
            let pending = file.write(offset, Buffer::zeroed(length), Durability::Volatile, label());
            async move { pending.await.err().map(|error| error.kind) }
        };
        assert_eq!(write(1, 512).await, Some(DiskErrorKind::Misaligned));
        assert_eq!(write(0, 100).await, Some(DiskErrorKind::Misaligned));
        assert_eq!(write(0, 8192).await, None);
        assert_eq!(write(8192, 512).await, Some(DiskErrorKind::Full));
        assert_eq!(
            file.extend(8704, label()).await.err().map(|error| error.kind),
            Some(DiskErrorKind::Full)
        );
        let read = file.read(4096, Buffer::zeroed(8192), label()).await;
        assert_eq!(read.err().map(|error| error.kind), Some(DiskErrorKind::Short));

        let reader = files.open("a", OpenMode::Read, label()).await.unwrap();
        let refused = reader.write(0, Buffer::zeroed(512), Durability::Volatile, label());
        assert_eq!(
            refused.await.err().map(|error| error.kind),
            Some(DiskErrorKind::PermissionDenied)
        );
        file.close(label()).await.unwrap();
        assert_eq!(kind(OpenMode::Write, "a").await, None);
    });
}

/// Deleted space can be used again, or a circular log would fill any disk.
#[test]
fn deleting_frees_capacity() {
    let rig = Rig::new(MemoryOptions { capacity_bytes: Some(4096), ..MemoryOptions::default() });
    let files = rig.files.clone();
    rig.run(async move {
        for _ in 0..3 {
            let file = files.open("a", OpenMode::Create, label()).await.unwrap();
            file.extend(4096, label()).await.unwrap();
            file.close(label()).await.unwrap();
            files.delete("a".as_ref(), label()).await.unwrap();
        }
    });
}

/// The capacity is shared by all files, and what a file has already is not asked for twice.
#[test]
fn files_share_the_capacity() {
    let rig = Rig::new(MemoryOptions { capacity_bytes: Some(8192), ..MemoryOptions::default() });
    rig.disk.load("a", &[0; 4096]);
    let files = rig.files.clone();
    rig.run(async move {
        let other = files.open("b", OpenMode::Create, label()).await.unwrap();
        let kind = |length| {
            let other = other.clone();
            async move { other.extend(length, label()).await.err().map(|error| error.kind) }
        };
        assert_eq!(kind(4608).await, Some(DiskErrorKind::Full));
        assert_eq!(kind(2048).await, None);
        assert_eq!(kind(4096).await, None);
        assert_eq!(kind(4608).await, Some(DiskErrorKind::Full));
    });
}

/// A rename replaces its target; a listing is sorted and shows directories.
#[test]
fn names_change_as_asked() {
    let rig = Rig::new(MemoryOptions::default());
    rig.disk.create_directory("logs/old");
    rig.disk.load("logs/b", b"bb");
    rig.disk.load("logs/a", b"a");
    let files = rig.files.clone();
    let entries = rig.run(async move {
        files.rename("logs/a".as_ref(), "logs/b".as_ref(), label()).await.unwrap();
        files.list("logs".as_ref(), label()).await.unwrap()
    });
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| (&*entry.name, entry.length_bytes, entry.is_directory))
        .collect();
    assert_eq!(shown, [("b", 1, false), ("old", 0, true)]);
    assert_eq!(rig.disk.bytes("logs/b").unwrap(), b"a");
}

/// A close waits for what is in flight on the file, or a late write would meet a closed file.
#[test]
fn close_comes_after_the_writes_before_it() {
    use plimsoll_io::{Latency, LatencyPlan, OperationKind};
    let latency = LatencyPlan::of(Latency::Constant(10))
        .with_kind(OperationKind::Write, Latency::Constant(1000));
    let rig = Rig::new(MemoryOptions { latency, ..MemoryOptions::default() });
    let file = rig.settled_file("a", 512);
    rig.run(async move {
        let write = file.write(0, Buffer::copy_of(&[5; 512]), Durability::Volatile, label());
        file.close(label()).await.unwrap();
        write.await.unwrap();
    });
    assert_eq!(rig.disk.bytes("a").unwrap(), [5; 512]);
}

/// On a real clock with no latency the disk is a RAM disk: everything completes at the next reap.
#[test]
fn works_as_a_ram_disk_in_real_time() {
    let clock = Rc::new(plimsoll_io::Clock::real());
    let options = MemoryOptions::ram();
    assert_eq!(options.tracking, Tracking::Nothing);
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options);
    let executor = Executor::new(clock, disk.clone());
    let files = Files::new(disk.clone());
    executor
        .run(async move {
            let file = files.open("a", OpenMode::Create, label()).await.unwrap();
            for page in 0..100u64 {
                let buffer = Buffer::copy_of(&[page as u8; 32768]);
                file.write(page * 32768, buffer, Durability::Durable, label()).await.unwrap();
            }
            let buffer = file.read(42 * 32768, Buffer::zeroed(32768), label()).await.unwrap();
            assert_eq!(&buffer[..], &[42; 32768]);
        })
        .unwrap();
    assert_eq!(disk.stored_bytes(), 99 * 32768, "a page of zeros takes no memory");
}

/// A completion that submits again gets its turn at the next reap, or a chain of them would keep
/// every task from running.
#[test]
fn a_reap_does_not_run_for_ever() {
    use plimsoll_io::{Action, Disk, Operation};
    fn list_again(disk: &Rc<MemoryDisk>, left: u32) {
        let next = disk.clone();
        disk.submit(Operation {
            action: Action::List { path: "".into() },
            context: label(),
            completion: Box::new(move |_| {
                if left > 0 {
                    list_again(&next, left - 1);
                }
            }),
        });
    }
    let rig = Rig::new(MemoryOptions::ram());
    list_again(&rig.disk, 3);
    let reaped: Vec<usize> = (0..5).map(|_| rig.disk.reap()).collect();
    assert_eq!(reaped, [1, 1, 1, 1, 0]);
}
