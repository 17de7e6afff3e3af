//! Whole block devices, on loop devices (root only).

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_io::{DiskErrorKind, Durability, DurableBy, Method, OpenMode, RealDiskOptions};

use super::place::{Loop, Mounted, Place, root_or_skip, run};
use super::{CONTEXT, Machine, methods_here, options_for};

const DEVICE_BYTES: u64 = 8 << 20;

fn machine_allowed_to_destroy(method: Method, device: &Loop) -> Machine {
    Machine::with(RealDiskOptions {
        destroy_serials: vec![device.name().to_owned()],
        ..options_for(method)
    })
}

/// As [`refusal`], but waits until the kernel has let go of a device that was just closed: its
/// claim ends with the last reference, and a process that another test starts at this moment holds
/// one until it executes its program.
fn refusal_once_released(
    machine: &Machine,
    device: &Loop,
    mode: OpenMode,
) -> Option<(DiskErrorKind, String)> {
    for _ in 0..50 {
        match refusal(machine, device, mode) {
            Some((DiskErrorKind::Locked, _)) => std::thread::sleep(Duration::from_millis(100)),
            answer => return answer,
        }
    }
    refusal(machine, device, mode)
}

/// Opens a device and answers the error's kind and text.
fn refusal(machine: &Machine, device: &Loop, mode: OpenMode) -> Option<(DiskErrorKind, String)> {
    let (files, path) = (machine.files(), device.device.clone());
    let result = machine.run(async move {
        let file = files.open(path, mode, CONTEXT).await?;
        file.close(CONTEXT).await
    });
    result.err().map(|error| (error.kind, error.to_string()))
}

/// The way it should go: consent, an empty device, a database on it, opened again.
#[test]
fn an_empty_device_with_consent_is_a_file() {
    if !root_or_skip("a loop device") {
        return;
    }
    for method in methods_here() {
        let place = Place::new(&format!("device-{}", method.name()));
        let Some(device) = Loop::new(&place, DEVICE_BYTES) else {
            return;
        };
        let machine = machine_allowed_to_destroy(method, &device);
        let (files, path) = (machine.files(), device.device.clone());
        machine.run(async move {
            let file = files.open(&path, OpenMode::Create, CONTEXT).await;
            let file = file.expect("consent was given and nothing is on it");
            assert_eq!(file.opened().length_bytes, DEVICE_BYTES);
            file.extend(DEVICE_BYTES, CONTEXT).await.expect("it is that long");
            let error = file.extend(DEVICE_BYTES + 4096, CONTEXT).await.expect_err("too long");
            assert_eq!(error.kind, DiskErrorKind::Full);
            let second = files.open(&path, OpenMode::Write, CONTEXT).await.err();
            assert_eq!(second.map(|error| error.kind), Some(DiskErrorKind::Locked));
            let mut header = file.allocate(4096);
            header.fill(0);
            header[4..8].copy_from_slice(&0x89AB_CDEF_u32.to_le_bytes());
            let written = file.write(0, header, Durability::Durable, CONTEXT).await;
            written.expect("a durable write");
            file.sync(CONTEXT).await.expect("a sync");
            file.close(CONTEXT).await.expect("a close");
        });
        let answer = refusal_once_released(&machine, &device, OpenMode::Write);
        assert_eq!(answer, None, "our own database");
        let (kind, text) =
            refusal_once_released(&machine, &device, OpenMode::Create).expect("it is not empty");
        assert_eq!(kind, DiskErrorKind::AlreadyExists, "{text}");
    }
}

/// Without the serial typed nothing is written, whatever is on the device; reading needs no
/// consent.
#[test]
fn a_device_without_consent_is_only_read() {
    if !root_or_skip("a loop device") {
        return;
    }
    let place = Place::new("no-consent");
    let Some(device) = Loop::new(&place, DEVICE_BYTES) else {
        return;
    };
    let machine = Machine::by(Method::Threads);
    for mode in [OpenMode::Create, OpenMode::Write] {
        let (kind, text) = refusal(&machine, &device, mode).expect("no consent");
        assert_eq!(kind, DiskErrorKind::Occupied);
        assert!(text.contains("was not given"), "{text}");
    }
    assert_eq!(refusal(&machine, &device, OpenMode::Read), None);
}

/// Real tools leave marks we know: a file system, swap space, a partition table.
#[test]
fn a_device_with_somebodys_data_is_refused() {
    if !root_or_skip("a loop device") {
        return;
    }
    let place = Place::new("occupied");
    let Some(device) = Loop::new(&place, DEVICE_BYTES) else {
        return;
    };
    let machine = machine_allowed_to_destroy(Method::Threads, &device);
    for (tool, arguments, expected) in [
        ("mkfs.ext4", vec!["-q", "-F"], "ext4"),
        ("mkswap", vec!["-q"], "swap"),
        ("mkfs.xfs", vec!["-f", "-q"], "XFS"),
        ("mkfs.btrfs", vec!["-f", "-q"], "Btrfs"),
        ("mkfs.vfat", vec![], "FAT"),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().chain([device.name()]).collect();
        if run(tool, &arguments).is_none() {
            eprintln!("skipped: {tool} is not installed or finds the device too small");
            continue;
        }
        for mode in [OpenMode::Create, OpenMode::Write] {
            let (kind, text) =
                refusal_once_released(&machine, &device, mode).expect("it carries data");
            assert_eq!(kind, DiskErrorKind::Occupied, "{tool}: {text}");
            assert!(text.contains(expected), "{tool}: {text}");
        }
        // The tool claims the device too, so it also has to wait for others to let go.
        let wiped = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            run("wipefs", &["--all", device.name()]).is_some()
        });
        assert!(wiped, "util-linux is installed");
        let answer = refusal_once_released(&machine, &device, OpenMode::Create);
        assert_eq!(answer, None, "after {tool} and wipefs");
    }
}

/// A mounted device belongs to the kernel, whatever its first bytes say.
#[test]
fn a_mounted_device_is_refused() {
    if !root_or_skip("a loop device") {
        return;
    }
    let place = Place::new("mounted-device");
    let Some(device) = Loop::new(&place, 4 * DEVICE_BYTES) else {
        return;
    };
    if run("mkfs.ext4", &["-q", device.name()]).is_none() {
        return;
    }
    let Some(mounted) = Mounted::new(&place, "ext4", device.name(), "rw") else {
        return;
    };
    let before = fs::read_dir(&mounted.point).expect("it is mounted").count();
    let machine = machine_allowed_to_destroy(Method::Threads, &device);
    let (kind, text) = refusal(&machine, &device, OpenMode::Create).expect("it is mounted");
    assert_eq!(kind, DiskErrorKind::Locked, "{text}");
    assert_eq!(fs::read_dir(&mounted.point).expect("it is mounted").count(), before);
}

/// Requests to empty the write cache that a device has completed: the sixteenth figure of
/// /sys/block/NAME/stat.
fn cache_flushes(device: &Loop) -> u64 {
    let name = device.device.file_name().expect("a device has a name");
    let path = Path::new("/sys/block").join(name).join("stat");
    let figures = fs::read_to_string(path).expect("every device has figures");
    let flushes = figures.split_whitespace().nth(15);
    flushes.and_then(|text| text.parse().ok()).expect("Linux 5.5 or later")
}

/// "Durable" is what reaches the device: every durable write and every sync empties its cache, a
/// volatile write never does.
#[test]
fn durable_writes_and_syncs_flush_the_device() {
    if !root_or_skip("a loop device") {
        return;
    }
    for method in methods_here() {
        for durable_by in [DurableBy::Flag, DurableBy::WriteThenSync, DurableBy::Faster] {
            let place = Place::new(&format!("flushes-{}-{durable_by:?}", method.name()));
            let Some(device) = Loop::new(&place, DEVICE_BYTES) else {
                return;
            };
            let machine = Machine::with(RealDiskOptions {
                destroy_serials: vec![device.name().to_owned()],
                durable_by,
                ..options_for(method)
            });
            let (files, path) = (machine.files(), device.device.clone());
            let counted = machine.run(async move {
                let file = files.open(path, OpenMode::Create, CONTEXT).await;
                let file = file.expect("an empty device");
                let mut counted = vec![cache_flushes(&device)];
                for durability in [Durability::Volatile, Durability::Durable] {
                    for block in 0..5u64 {
                        let buffer = file.allocate(4096);
                        let written = file.write(block * 4096, buffer, durability, CONTEXT).await;
                        written.expect("a write");
                    }
                    counted.push(cache_flushes(&device));
                }
                file.sync(CONTEXT).await.expect("a sync");
                counted.push(cache_flushes(&device));
                counted
            });
            let steps: Vec<u64> = counted.windows(2).map(|pair| pair[1] - pair[0]).collect();
            // A blocking write is flushed twice by Linux: once as part of the write, once as its
            // sync.
            let as_promised = steps[0] == 0 && steps[1] >= 5 && steps[2] >= 1;
            assert!(as_promised, "{} {durable_by:?}: {steps:?}", method.name());
        }
    }
}
