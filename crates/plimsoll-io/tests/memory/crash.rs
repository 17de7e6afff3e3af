//! What survives a power cut. Every rule of the fault model has a test here, on both sides: what
//! must survive is in every image, what may be lost is lost in some image and kept in another.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_io::{
    AfterLook, Buffer, Durability, Loss, MemoryDisk, MemoryOptions, OpenMode, Random, Stalled,
    Tracking,
};

use crate::rig::{Rig, label};

const IMAGES: u64 = 1000;

/// The distinct contents of a file over many images; `None` is a missing file.
fn found(disk: &MemoryDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    let mut random = Random::from_seed(99);
    (0..IMAGES).map(|_| disk.crash_image(Loss::Drawn, &mut random).bytes(path)).collect()
}

fn one(bytes: &[u8]) -> BTreeSet<Option<Vec<u8>>> {
    BTreeSet::from([Some(bytes.to_vec())])
}

/// Durable writes are in every image; volatile ones in some and not in others; after a sync they
/// are in every image.
#[test]
fn durable_stays_and_volatile_may_go() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 1024);
    rig.write(&file, 0, &[1; 512], Durability::Durable);
    let mut before = vec![1; 512];
    before.extend([0; 512]);
    assert_eq!(found(&rig.disk, "a"), one(&before));

    rig.write(&file, 512, &[2; 512], Durability::Volatile);
    let mut after = vec![1; 512];
    after.extend([2; 512]);
    let both = BTreeSet::from([Some(before), Some(after.clone())]);
    assert_eq!(found(&rig.disk, "a"), both);

    rig.sync(&file);
    assert_eq!(found(&rig.disk, "a"), one(&after));
}

/// A torn write leaves any subset of its atomic units: with four units all sixteen subsets are met.
#[test]
fn torn_writes_leave_any_subset_of_units() {
    for (atomic_write_bytes, subsets) in [(512, 16), (1024, 4), (2048, 2), (4096, 2)] {
        let rig = Rig::new(MemoryOptions { atomic_write_bytes, ..MemoryOptions::default() });
        let file = rig.settled_file("a", 2048);
        rig.write(&file, 0, &[3; 2048], Durability::Volatile);
        assert_eq!(found(&rig.disk, "a").len(), subsets, "units of {atomic_write_bytes}");
    }
}

/// Writes reorder: of two volatile writes the second may survive without the first.
#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 8192);
    rig.write(&file, 0, &[1; 512], Durability::Volatile);
    rig.write(&file, 4096, &[2; 512], Durability::Volatile);
    let kept: BTreeSet<(u8, u8)> = found(&rig.disk, "a")
        .into_iter()
        .map(|bytes| bytes.map(|bytes| (bytes[0], bytes[4096])).unwrap())
        .collect();
    assert_eq!(kept, BTreeSet::from([(0, 0), (0, 2), (1, 0), (1, 2)]));
}

/// A volatile write must never come back over a newer durable one.
#[test]
fn an_old_volatile_write_does_not_replace_a_durable_one() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 1024);
    rig.write(&file, 0, &[1; 1024], Durability::Volatile);
    rig.write(&file, 0, &[2; 512], Durability::Durable);
    for bytes in found(&rig.disk, "a") {
        assert_eq!(&bytes.unwrap()[..512], [2; 512]);
    }
}

/// A sync covers what was complete when it was submitted. A write in flight beside it stays at
/// risk.
#[test]
fn a_sync_does_not_cover_a_write_in_flight() {
    use plimsoll_io::{Latency, LatencyPlan, OperationKind};
    let latency = LatencyPlan::of(Latency::Constant(10))
        .with_kind(OperationKind::SyncFile, Latency::Constant(1000));
    let rig = Rig::new(MemoryOptions { latency, ..MemoryOptions::default() });
    let file = rig.settled_file("a", 1024);
    rig.write(&file, 0, &[1; 512], Durability::Volatile);
    let synced = file.clone();
    rig.run(async move {
        let write = synced.write(512, Buffer::copy_of(&[2; 512]), Durability::Volatile, label());
        synced.sync(label()).await.unwrap();
        write.await.unwrap();
    });
    let kept: BTreeSet<(u8, u8)> = found(&rig.disk, "a")
        .into_iter()
        .map(|bytes| bytes.map(|bytes| (bytes[0], bytes[512])).unwrap())
        .collect();
    assert_eq!(kept, BTreeSet::from([(1, 0), (1, 2)]));
}

/// A write in flight at the cut may be there, durable or not: its completion was never seen.
#[test]
fn writes_in_flight_are_at_risk() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 512);
    let disk = rig.disk.clone();
    drop(file.write(0, Buffer::copy_of(&[4; 512]), Durability::Durable, label()));
    let both = BTreeSet::from([Some(vec![0; 512]), Some(vec![4; 512])]);
    assert_eq!(found(&disk, "a"), both);
}

/// A new length needs a sync of the file; where it survives without the bytes, the bytes are zero.
#[test]
fn lengths_need_a_sync() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 512);
    let extended = file.clone();
    rig.run(async move { extended.extend(1024, label()).await.unwrap() });
    let both = BTreeSet::from([Some(vec![0; 512]), Some(vec![0; 1024])]);
    assert_eq!(found(&rig.disk, "a"), both);
    rig.sync(&file);
    assert_eq!(found(&rig.disk, "a"), one(&[0; 1024]));

    // A growing durable write brings its length with it; a growing volatile one brings nothing for
    // certain.
    rig.write(&file, 1024, &[5; 512], Durability::Durable);
    rig.write(&file, 1536, &[6; 512], Durability::Volatile);
    let lengths: BTreeSet<usize> =
        found(&rig.disk, "a").iter().map(|bytes| bytes.as_ref().unwrap().len()).collect();
    assert_eq!(lengths, BTreeSet::from([1536, 2048]));
}

/// The bytes of a growing write may survive and its length not. What is extended again later is
/// new, and zero.
#[test]
fn a_lost_length_takes_its_bytes_with_it() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 512);
    rig.write(&file, 0, &[7; 1024], Durability::Volatile);
    let mut random = Random::from_seed(8);
    let mut bytes_without_length = 0;
    for _ in 0..IMAGES {
        let image = Rig::over(rig.disk.crash_image(Loss::Drawn, &mut random));
        let found = image.disk.bytes("a").unwrap();
        if found != [7; 512] {
            continue;
        }
        bytes_without_length += 1;
        let files = image.files.clone();
        image.run(async move {
            let file = files.open("a", OpenMode::Write, label()).await.unwrap();
            file.extend(1024, label()).await.unwrap();
        });
        let extended = image.disk.bytes("a").unwrap();
        assert_eq!(extended, [[7; 512], [0; 512]].concat());
    }
    assert!(bytes_without_length > 0);
}

/// A sync frees the memory of what it made stable, also while other writes keep the file at risk.
#[test]
fn stable_bytes_are_kept_once() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 64 * 4096);
    for chunk in 0..32 {
        rig.write(&file, chunk * 4096, &[1; 4096], Durability::Durable);
    }
    assert_eq!(rig.disk.stored_bytes(), 32 * 4096);
    for chunk in 0..32 {
        rig.write(&file, chunk * 4096, &[2; 4096], Durability::Volatile);
    }
    assert_eq!(rig.disk.stored_bytes(), 2 * 32 * 4096);
    drop(file.write(40 * 4096, Buffer::copy_of(&[3; 4096]), Durability::Volatile, label()));
    rig.sync(&file);
    // The chunk at risk has no stable bytes yet: it was never written before.
    assert_eq!(rig.disk.stored_bytes(), 33 * 4096);
}

/// A rename from one directory to another needs both; what stands on it takes it along, so a file
/// never has two names.
#[test]
fn a_stable_name_change_brings_what_it_stands_on() {
    let rig = Rig::new(MemoryOptions::default());
    rig.disk.create_directory("y");
    rig.disk.load("x/a", b"a");
    let names_of = |rig: &Rig| -> Vec<String> {
        let image = rig.disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
        let files = image.list_files().into_iter();
        files.map(|(path, _)| path.display().to_string()).collect()
    };
    let step = |from: &'static str, to: &'static str| {
        let files = rig.files.clone();
        rig.run(async move {
            files.rename(from.as_ref(), to.as_ref(), label()).await.unwrap();
            files.sync_directory("y".as_ref(), label()).await.unwrap();
        });
    };
    step("x/a", "y/b");
    assert_eq!(names_of(&rig), ["x/a"], "x is not synced");
    step("y/b", "y/c");
    assert_eq!(names_of(&rig), ["y/c"]);
}

/// Names need a sync of their directory, whatever was done to the file.
#[test]
fn names_need_a_directory_sync() {
    let rig = Rig::new(MemoryOptions::default());
    let files = rig.files.clone();
    rig.run(async move {
        let file = files.open("a", OpenMode::Create, label()).await.unwrap();
        let buffer = Buffer::copy_of(&[1; 512]);
        file.write(0, buffer, Durability::Durable, label()).await.unwrap();
        file.sync(label()).await.unwrap();
    });
    let maybe = BTreeSet::from([None, Some(vec![1; 512])]);
    assert_eq!(found(&rig.disk, "a"), maybe);
    let files = rig.files.clone();
    rig.run(async move { files.sync_directory("".as_ref(), label()).await.unwrap() });
    assert_eq!(found(&rig.disk, "a"), one(&[1; 512]));
}

/// A rename is atomic: the file is under one of its names, and a replaced file is whole where the
/// rename is lost.
#[test]
fn renames_are_atomic() {
    let rig = Rig::new(MemoryOptions::default());
    rig.disk.load("new", b"new");
    rig.disk.load("old", b"old");
    let files = rig.files.clone();
    rig.run(async move { files.rename("new".as_ref(), "old".as_ref(), label()).await.unwrap() });
    let mut random = Random::from_seed(5);
    let mut seen = BTreeSet::new();
    for _ in 0..IMAGES {
        let image = rig.disk.crash_image(Loss::Drawn, &mut random);
        seen.insert((image.bytes("new"), image.bytes("old")));
    }
    let lost = (Some(b"new".to_vec()), Some(b"old".to_vec()));
    let done = (None, Some(b"new".to_vec()));
    assert_eq!(seen, BTreeSet::from([lost, done]));
}

/// Create, rename, create again: no image shows a step without the one it stands on, and
/// independent names mix freely.
#[test]
fn name_changes_survive_in_order_per_name() {
    let rig = Rig::new(MemoryOptions::default());
    let files = rig.files.clone();
    rig.run(async move {
        files.open("a", OpenMode::Create, label()).await.unwrap();
        files.rename("a".as_ref(), "b".as_ref(), label()).await.unwrap();
        files.open("a", OpenMode::Create, label()).await.unwrap();
        files.open("other", OpenMode::Create, label()).await.unwrap();
    });
    let mut random = Random::from_seed(6);
    let mut seen = BTreeSet::new();
    for _ in 0..3 * IMAGES {
        let image = rig.disk.crash_image(Loss::Drawn, &mut random);
        let names: Vec<String> =
            image.list_files().iter().map(|(path, _)| path.display().to_string()).collect();
        seen.insert(names.join(" "));
    }
    let expected = ["", "a", "a b", "a b other", "a other", "b", "b other", "other"];
    assert_eq!(seen, expected.map(String::from).into());
}

/// Without a volatile cache completed writes are safe, lengths and names are not.
#[test]
fn write_through_keeps_completed_writes() {
    let rig =
        Rig::new(MemoryOptions { tracking: Tracking::WriteThrough, ..MemoryOptions::default() });
    let file = rig.settled_file("a", 512);
    rig.write(&file, 0, &[1; 512], Durability::Volatile);
    assert_eq!(found(&rig.disk, "a"), one(&[1; 512]));
    rig.write(&file, 512, &[2; 512], Durability::Volatile);
    let mut longer = vec![1; 512];
    longer.extend([2; 512]);
    let both = BTreeSet::from([Some(vec![1; 512]), Some(longer)]);
    assert_eq!(found(&rig.disk, "a"), both);
}

/// After a cut nothing completes; a workload raced against `power_lost` stops there, one that is
/// not stalls.
#[test]
fn nothing_completes_after_a_cut() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 512);
    rig.disk.power_cut_at(rig.disk.clock().now() + 50_000);
    let disk = rig.disk.clone();
    let write = file.write(0, Buffer::copy_of(&[1; 512]), Durability::Durable, label());
    rig.run(async move { disk.power_lost().await });
    assert!(rig.disk.is_off());
    assert_eq!(rig.executor.run(write).err(), Some(Stalled));
    assert_eq!(rig.disk.bytes("a").unwrap(), [0; 512]);
}

/// An image is a disk like any other: it can be used, cut and imaged again.
#[test]
fn images_can_be_cut_again() {
    let rig = Rig::new(MemoryOptions::default());
    let file = rig.settled_file("a", 1024);
    rig.write(&file, 0, &[1; 512], Durability::Durable);
    let mut random = Random::from_seed(3);
    let second = Rig::over(rig.disk.crash_image(Loss::Drawn, &mut random));
    let files = second.files.clone();
    let file = second.run(async move { files.open("a", OpenMode::Write, label()).await.unwrap() });
    second.write(&file, 512, &[2; 512], Durability::Durable);
    let third = second.disk.crash_image(Loss::Everything, &mut random);
    let mut expected = vec![1; 512];
    expected.extend([2; 512]);
    assert_eq!(third.bytes("a").unwrap(), expected);
    assert_eq!(&rig.disk.bytes("a").unwrap()[512..], [0; 512], "the first disk is untouched");
    assert!(Rc::ptr_eq(second.disk.clock(), second.executor.handle().clock()));
}

/// With hundreds of changes at risk the lopsided images are still met: names without bytes, bytes
/// without names, one file without the other. Independent coins alone would never show them, and
/// they are what write-ahead logs fail on.
#[test]
fn lopsided_images_are_met() {
    let rig = Rig::new(MemoryOptions::default());
    let files = ["log", "database"].map(|path| rig.settled_file(path, 512 * 50));
    for file in &files {
        for sector in 0..50 {
            rig.write(file, sector * 512, &[1; 512], Durability::Volatile);
        }
    }
    let names = rig.files.clone();
    rig.run(async move {
        for number in 0..20 {
            names.open(format!("new{number:02}"), OpenMode::Create, label()).await.unwrap();
        }
    });
    let mut random = Random::from_seed(12);
    let mut seen = BTreeSet::new();
    for _ in 0..4 * IMAGES {
        let image = rig.disk.crash_image(Loss::Drawn, &mut random);
        let survived =
            |path| image.bytes(path).unwrap().iter().filter(|byte| **byte == 1).count() / 512;
        let created = image.list_files().len() - 2;
        seen.insert((survived("log") / 50, survived("database") / 50, created / 20));
    }
    let corners: BTreeSet<_> = (0..8).map(|bits| (bits & 1, bits >> 1 & 1, bits >> 2)).collect();
    assert_eq!(seen, corners, "1 is whole, 0 is not");
    let log_alone = (0..IMAGES).any(|_| {
        let image = rig.disk.crash_image(Loss::Drawn, &mut random);
        let is_all =
            |path: &str, value| image.bytes(path).unwrap().iter().all(|byte| *byte == value);
        is_all("log", 0) && is_all("database", 1)
    });
    assert!(log_alone, "the database whole and nothing of its log");
}

/// A write of one 512-byte sector on 4 KiB physical sectors can take a durable neighbour with it.
#[test]
fn a_cut_inside_a_physical_sector_takes_its_neighbours() {
    for (physical_sector_bytes, may_break) in [(512, false), (4096, true)] {
        let rig = Rig::new(MemoryOptions { physical_sector_bytes, ..MemoryOptions::default() });
        let file = rig.settled_file("a", 8192);
        rig.write(&file, 0, &[1; 512], Durability::Durable);
        drop(file.write(512, Buffer::copy_of(&[2; 512]), Durability::Durable, label()));
        let mut random = Random::from_seed(2);
        let broken = (0..IMAGES).any(|_| {
            let image = Rig::over(rig.disk.crash_image(Loss::Drawn, &mut random));
            let files = image.files.clone();
            image.run(async move {
                let file = files.open("a", OpenMode::Read, label()).await.unwrap();
                file.read(4096, Buffer::zeroed(4096), label()).await.unwrap();
                file.read(0, Buffer::zeroed(512), label()).await.is_err()
            })
        });
        assert_eq!(broken, may_break, "physical sectors of {physical_sector_bytes}");
    }
}

/// The cut can be put after any event. Over all events of a write the durable acknowledgement and
/// the image agree: what was acknowledged is in every image.
#[test]
fn cuts_after_every_event_keep_what_was_acknowledged() {
    let mut acknowledged_at_some_cut = BTreeSet::new();
    for event in 1.. {
        let rig = Rig::new(MemoryOptions::default());
        rig.disk.load("a", &[0; 4096]);
        rig.disk.power_cut_at_event(event);
        let acknowledged = Rc::new(std::cell::Cell::new(0u64));
        let (files, seen, disk) = (rig.files.clone(), acknowledged.clone(), rig.disk.clone());
        rig.executor.handle().spawn(async move {
            let file = files.open("a", OpenMode::Write, label()).await.unwrap();
            for index in 0..4u64 {
                let buffer = Buffer::copy_of(&[1 + index as u8; 512]);
                file.write(index * 512, buffer, Durability::Durable, label()).await.unwrap();
                seen.set(index + 1);
            }
            disk.power_cut();
        });
        let disk = rig.disk.clone();
        rig.run(async move { disk.power_lost().await });
        acknowledged_at_some_cut.insert(acknowledged.get());
        for bytes in found(&rig.disk, "a") {
            let bytes = bytes.unwrap();
            for index in 0..acknowledged.get() {
                assert_eq!(bytes[index as usize * 512], 1 + index as u8, "cut after event {event}");
            }
        }
        if rig.disk.events() < event {
            break;
        }
    }
    assert_eq!(acknowledged_at_some_cut, (0..=4).collect());
}

/// A run that is only looked at where it would be cut has the images of runs that were cut there,
/// and goes on to its end. Simulations cut one run at many moments, and what they show is worth as
/// much as that.
#[test]
fn a_cut_that_is_looked_at_leaves_what_a_real_one_leaves() {
    let images = |event: u64, goes_on: bool| {
        let rig = Rig::new(MemoryOptions::default());
        rig.disk.load("a", &[0; 4096]);
        rig.disk.power_cut_at_event(event);
        let seen = Rc::new(std::cell::RefCell::new(None));
        if goes_on {
            let seen = seen.clone();
            rig.disk.look_at_cuts(move |disk| {
                *seen.borrow_mut() = Some(found(disk, "a"));
                AfterLook::GoOn
            });
        }
        let (files, disk) = (rig.files.clone(), rig.disk.clone());
        rig.executor.handle().spawn(async move {
            let file = files.open("a", OpenMode::Write, label()).await.unwrap();
            for index in 0..4u64 {
                let buffer = Buffer::copy_of(&[1 + index as u8; 512]);
                let done = file.write(index * 512, buffer, Durability::Volatile, label());
                done.await.unwrap();
            }
            file.sync(label()).await.unwrap();
            disk.power_cut();
        });
        let disk = rig.disk.clone();
        rig.run(async move { disk.power_lost().await });
        let seen = seen.take();
        (rig.disk.events(), seen.unwrap_or_else(|| found(&rig.disk, "a")))
    };
    let (events_of_all, at_the_end) = images(u64::MAX, false);
    assert!(events_of_all > 10, "an open, four writes and a sync");
    for event in 1..=events_of_all {
        let ((_, really), (events, looked_at)) = (images(event, false), images(event, true));
        assert_eq!(really, looked_at, "at event {event}");
        assert_eq!(events, events_of_all, "after a look at event {event} the run goes on");
    }
    assert_eq!(at_the_end.len(), 1, "everything was synced in the end");
}
