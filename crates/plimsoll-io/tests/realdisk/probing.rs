//! What probe says, and that it leaves no trace.

use std::fs;
use std::os::unix::fs::MetadataExt;

use plimsoll_io::{Probe, probe};

use super::place::{Loop, Mounted, Place, root_or_skip, run};
use super::seccomp::{in_own_thread, refuse};

/// "Never writes": not a name, not a byte, not an access time.
#[test]
fn probing_changes_nothing() {
    let place = Place::new("probe");
    let file = place.root().join("file");
    fs::write(&file, vec![1; 8192]).expect("the folder is ours");
    let state = || {
        let metadata = [place.root(), &file].map(|path| fs::metadata(path).expect("it exists"));
        let times = metadata
            .map(|metadata| (metadata.mtime_nsec(), metadata.ctime_nsec(), metadata.atime_nsec()));
        (times, fs::read_dir(place.root()).expect("it exists").count())
    };
    let names_before = fs::read_dir(place.root()).expect("it exists").count();
    let before = state();
    let found = probe(&place.root().join("not").join("there")).expect("its folder exists");
    assert_eq!(state(), before);
    assert_eq!(names_before, before.1);
    assert!(!found.exists && found.writable);
    assert_eq!(found.looked_at, fs::canonicalize(place.root()).expect("it exists"));
}

/// The facts a report's environment section shows.
#[test]
fn probing_finds_file_system_and_methods() {
    let place = Place::new("probe-facts");
    let file = place.root().join("file");
    fs::write(&file, vec![1; 8192]).expect("the folder is ours");
    let found = probe(&file).expect("the file exists");
    let file_system = found.file_system.expect("it is on a file system");
    assert!(!file_system.kind.is_empty());
    assert!(file_system.free_bytes > 0 && file_system.free_bytes <= file_system.size_bytes);
    assert_eq!(found.direct_io.reads_work, Some(true), "{:?}", found.direct_io);
    let names: Vec<_> = found.methods.iter().map(|method| method.name).collect();
    assert_eq!(names, ["io_uring", "libaio", "threads"]);
    assert_eq!(found.methods[2].refusal, None, "threads always work");
}

/// In a container the user sees why the figures will cost more.
#[test]
fn probing_says_what_is_forbidden() {
    in_own_thread(|| {
        refuse(&[(libc::SYS_io_uring_setup, libc::EPERM)]);
        let found = probe("/".as_ref()).expect("the root exists");
        let refusal = found.methods[0].refusal.clone().expect("io_uring is forbidden");
        assert!(refusal.contains("forbidden"), "{refusal}");
        assert!(found.warnings.iter().any(|warning| warning.contains("io_uring cannot be used")));
    });
}

/// A command looks at many paths, and to end a method takes the kernel longer than all the rest.
#[test]
fn a_method_that_works_is_tried_once() {
    in_own_thread(|| {
        let first = probe("/".as_ref()).expect("the root exists");
        refuse(&[(libc::SYS_io_uring_setup, libc::EPERM), (libc::SYS_io_setup, libc::EPERM)]);
        let second = probe("/".as_ref()).expect("the root exists");
        assert_eq!(refusals(&second), refusals(&first));
    });
}

fn refusals(found: &Probe) -> Vec<bool> {
    found.methods.iter().map(|method| method.refusal.is_some()).collect()
}

/// Measuring memory instead of storage is the commonest mistake.
#[test]
fn probing_warns_of_memory() {
    if !root_or_skip("a tmpfs") {
        return;
    }
    let place = Place::new("probe-tmpfs");
    let Some(mounted) = Mounted::new(&place, "tmpfs", "tmpfs", "size=1m") else {
        return;
    };
    let found = probe(&mounted.point).expect("it is mounted");
    assert!(found.file_system.as_ref().expect("a file system").is_memory);
    assert!(found.warnings.iter().any(|warning| warning.contains("memory, not storage")));
    assert_eq!(found.direct_io.reads_work, None, "there is no file to try it on");
}

/// A device's content and size are told before anybody asks to destroy it.
#[test]
fn probing_a_device_names_its_obstacles() {
    if !root_or_skip("a loop device") {
        return;
    }
    let place = Place::new("probe-device");
    let Some(device) = Loop::new(&place, 8 << 20) else {
        return;
    };
    let found = probe(&device.device).expect("it exists").device.expect("it is a device");
    assert_eq!((found.size_bytes, found.obstacles.len()), (Some(8 << 20), 0));
    assert_eq!(found.consent_token, device.name());
    if run("mkfs.ext4", &["-q", device.name()]).is_none() {
        return;
    }
    let found = probe(&device.device).expect("it exists").device.expect("it is a device");
    assert!(found.obstacles[0].contains("ext4"), "{:?}", found.obstacles);
}
