//! What failing and abandoned operations leave behind: nothing. Memory known to the kernel is not
//! given back by the end of a run, only by whoever holds it last, and a file that stays open stays
//! locked.

use std::fs;
use std::rc::Rc;

use plimsoll_io::{Disk, DiskErrorKind, Durability, Executor, Files, Method, OpenMode};

use super::place::Place;
use super::{CONTEXT, Machine, kind_of, methods_here};

const BLOCK_BYTES: usize = 64 * 1024;

/// Delivers what is under way, as an executor does.
fn finish(machine: &Machine) {
    while machine.disk.in_flight() > 0 {
        machine.disk.wait(None);
        machine.disk.reap();
    }
}

/// Operations that end in every way a real disk knows without a broken device; the last file is
/// left open.
async fn go_wrong(files: Files, place: std::path::PathBuf, method: Method) {
    let (path, missing) = (place.join("file"), place.join("missing"));
    let absent = files.open(&missing, OpenMode::Read, CONTEXT).await;
    assert_eq!(kind_of(absent), Some(DiskErrorKind::NotFound));
    let file = files.open(&path, OpenMode::Create, CONTEXT).await.expect("new");
    let again = files.open(&path, OpenMode::Create, CONTEXT).await;
    assert!(again.is_err(), "{}", method.name());
    for durability in [Durability::Volatile, Durability::Durable] {
        let written = file.write(0, file.allocate(BLOCK_BYTES), durability, CONTEXT).await;
        written.expect("there is room");
    }
    let behind = file.read(1 << 20, file.allocate(BLOCK_BYTES), CONTEXT).await;
    assert_eq!(kind_of(behind), Some(DiskErrorKind::Short));
    let crooked = file.read(1, file.allocate(BLOCK_BYTES), CONTEXT).await;
    assert_eq!(kind_of(crooked), Some(DiskErrorKind::Misaligned));
    let reading = files.open(&path, OpenMode::Read, CONTEXT).await.expect("there");
    let refused = reading.write(0, reading.allocate(BLOCK_BYTES), Durability::Volatile, CONTEXT);
    assert_eq!(kind_of(refused.await), Some(DiskErrorKind::PermissionDenied));
    reading.close(CONTEXT).await.expect("it is open");
    let closed = reading.read(0, reading.allocate(BLOCK_BYTES), CONTEXT).await;
    assert!(closed.is_err(), "{}: a closed file is read", method.name());
    // Nobody waits for these; the disk owns their memory until the device is done with it.
    for number in 0..20 {
        let buffer = file.allocate(BLOCK_BYTES);
        match number % 2 {
            0 => drop(file.read(0, buffer, CONTEXT)),
            _ => drop(file.write(BLOCK_BYTES as u64, buffer, Durability::Durable, CONTEXT)),
        }
    }
}

#[test]
fn failing_and_abandoned_operations_leave_nothing() {
    for method in methods_here() {
        let place = Place::new(&format!("left-over-{}", method.name()));
        let machine = Machine::by(method);
        let (files, root) = (machine.files(), place.root().to_owned());
        machine.run(go_wrong(files, root, method));
        finish(&machine);
        assert_eq!(Rc::strong_count(&machine.disk), 1, "{}", method.name());
        assert_eq!(machine.disk.lent_bytes(), 0, "{}", method.name());
        let (files, path) = (machine.files(), place.root().join("file"));
        let free =
            machine.run(async move { files.open(path, OpenMode::Write, CONTEXT).await.map(drop) });
        assert_eq!(kind_of(free), None, "{}: it is open still", method.name());
    }
}

/// What outlives its executor goes with its last owner, and a disk with operations in its queue is
/// not kept by them.
#[test]
fn files_and_memory_may_outlive_their_executor() {
    for method in methods_here() {
        let place = Place::new(&format!("outlives-{}", method.name()));
        let path = place.root().join("file");
        fs::write(&path, vec![0; BLOCK_BYTES]).expect("the folder is ours");
        let machine = Machine::by(method);
        let executor = Executor::new(machine.clock.clone(), machine.disk.clone());
        let (files, opening) = (machine.files(), path.clone());
        let opened =
            executor.run(async move { files.open(opening, OpenMode::Write, CONTEXT).await });
        let file = opened.expect("it opens").expect("it is there");
        drop(executor);
        let read = file.read(0, file.allocate(BLOCK_BYTES), CONTEXT);
        assert_eq!(machine.disk.lent_bytes(), BLOCK_BYTES);
        drop((read, file));
        let last = Rc::downgrade(&machine.disk);
        drop(machine);
        assert!(last.upgrade().is_none(), "{}: the disk holds itself", method.name());
        let next = Machine::by(method);
        let files = next.files();
        let free =
            next.run(async move { files.open(path, OpenMode::Write, CONTEXT).await.map(drop) });
        assert_eq!(kind_of(free), None, "{}: it is open still", method.name());
    }
}
