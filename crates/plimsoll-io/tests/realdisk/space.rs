//! A file system that is too small: refused before anything is filled, an error when it happens all
//! the same.

use std::fs;

use plimsoll_io::{DiskErrorKind, Durability, OpenMode, RealDiskOptions};

use super::place::{Loop, Mounted, Place, root_or_skip, run};
use super::{CONTEXT, Machine, kind_of, methods_here};

const MIB: u64 = 1 << 20;

/// A file system of 32 MiB on a loop device.
fn small_ext4(place: &Place) -> Option<(Mounted, Loop)> {
    let device = Loop::new(place, 32 * MIB)?;
    run("mkfs.ext4", &["-q", device.name()])?;
    let mounted = Mounted::new(place, "ext4", device.name(), "rw")?;
    Some((mounted, device))
}

/// Half a database is worse than none: extending beyond the free space changes nothing.
#[test]
fn extending_beyond_the_free_space_changes_nothing() {
    if !root_or_skip("a small file system") {
        return;
    }
    let place = Place::new("full-extend");
    let Some((mounted, _device)) = small_ext4(&place) else {
        return;
    };
    let machine = Machine::with(RealDiskOptions::default());
    let (files, path) = (machine.files(), mounted.point.join("database"));
    let opened = path.clone();
    machine.run(async move {
        let file = files.open(opened, OpenMode::Create, CONTEXT).await;
        let file = file.expect("a new file");
        file.extend(4 * MIB, CONTEXT).await.expect("that much fits");
        let error = file.extend(64 * MIB, CONTEXT).await.expect_err("too much");
        assert_eq!(error.kind, DiskErrorKind::Full);
        file.close(CONTEXT).await.expect("a close");
    });
    assert_eq!(fs::metadata(&path).expect("it exists").len(), 4 * MIB);
    drop(machine);
}

/// Space taken by others after the check: each method reports the write that did not fit.
#[test]
fn a_write_that_does_not_fit_is_full() {
    if !root_or_skip("a small file system") {
        return;
    }
    for method in methods_here() {
        let place = Place::new(&format!("full-write-{}", method.name()));
        let Some((mounted, _device)) = small_ext4(&place) else {
            return;
        };
        let machine = Machine::by(method);
        let (files, path) = (machine.files(), mounted.point.join("log"));
        let kind = machine.run(async move {
            let file = files.open(path, OpenMode::Create, CONTEXT).await;
            let file = file.expect("a new file");
            for offset in (0..64 * MIB).step_by(MIB as usize) {
                let buffer = file.allocate(MIB as usize);
                let written = file.write(offset, buffer, Durability::Durable, CONTEXT).await;
                if let Some(kind) = kind_of(written) {
                    return Some(kind);
                }
            }
            None
        });
        // The write on the edge may be cut off; every other one is refused.
        assert!(
            matches!(kind, Some(DiskErrorKind::Full | DiskErrorKind::Short)),
            "{}: {kind:?}",
            method.name()
        );
        drop(machine);
    }
}
