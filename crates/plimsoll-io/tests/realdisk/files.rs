//! Files that must not be opened, or not so.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_io::{
    Caching, Disk, DiskErrorKind, Durability, Executor, Method, OpenMode, RealDiskOptions,
};

use super::place::{Mounted, Place, root_or_skip, run};
use super::{CONTEXT, Machine, kind_of, methods_here};

/// Two processes on one database would destroy it. A killed one leaves no lock behind.
#[test]
fn another_process_locks_a_file() {
    let place = Place::new("process-lock");
    let path = place.root().join("database");
    fs::write(&path, vec![0; 4096]).expect("the folder is ours");
    let mut other = Command::new("flock")
        .args(["--exclusive", "--no-fork"])
        .arg(&path)
        .args(["sh", "-c", "echo locked; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is installed");
    let mut said = [0; 6];
    let mut output = other.stdout.take().expect("the output is a pipe");
    std::io::Read::read_exact(&mut output, &mut said).expect("the other process has the lock");
    let machine = Machine::by(Method::Threads);
    let (files, database) = (machine.files(), path.clone());
    let result = machine.run(async move { files.open(database, OpenMode::Write, CONTEXT).await });
    assert_eq!(kind_of(result), Some(DiskErrorKind::Locked));
    other.kill().expect("it is our child");
    other.wait().expect("it is our child");
    let files = machine.files();
    let result = machine.run(async move { files.open(path, OpenMode::Write, CONTEXT).await });
    assert_eq!(kind_of(result), None, "the lock ended with its process");
}

/// After a kill the kernel may hold files a little longer than the process lived. Who starts again
/// at once must not be told that somebody else is at work, but the wait is part of the record.
#[test]
fn a_lock_that_ends_soon_is_waited_for() {
    let place = Place::new("short-lock");
    let path = place.root().join("database");
    fs::write(&path, vec![0; 4096]).expect("the folder is ours");
    let mut other = Command::new("flock")
        .args(["--exclusive", "--no-fork"])
        .arg(&path)
        .args(["sh", "-c", "echo locked; exec sleep 0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is installed");
    let mut said = [0; 6];
    let mut output = other.stdout.take().expect("the output is a pipe");
    std::io::Read::read_exact(&mut output, &mut said).expect("the other process has the lock");
    let machine = Machine::by(Method::Threads);
    let files = machine.files();
    let result = machine.run(async move { files.open(path, OpenMode::Write, CONTEXT).await });
    other.wait().expect("it is our child");
    assert_eq!(kind_of(result), None, "it was free within the second");
    let remarks = machine.disk.facts().remarks;
    assert!(remarks.iter().any(|remark| remark.contains("was locked for")), "{remarks:?}");
}

/// Opening, creating and renaming may take as long as a file system likes. Here opening waits for a
/// lock for a fifth of a second: all that time tasks go on, or a slow directory would be a stall of
/// every session and a latency of every I/O.
#[test]
fn metadata_calls_do_not_hold_the_executor() {
    for method in methods_here() {
        let place = Place::new(&format!("slow-open-{}", method.name()));
        let path = place.root().join("database");
        fs::write(&path, vec![0; 4096]).expect("the folder is ours");
        let holder = fs::File::open(&path).expect("it was just made");
        holder.lock().expect("nobody else has it");
        let machine = Machine::by(method);
        let (files, executor) =
            (machine.files(), Executor::new(machine.clock.clone(), machine.disk.clone()));
        let handle = executor.handle();
        let opening =
            handle.spawn(async move { files.open(path, OpenMode::Write, CONTEXT).await.map(drop) });
        let ticks = executor.run(async move {
            let (began, mut ticks) = (handle.now(), 0);
            while handle.now() - began < 200_000_000 {
                handle.sleep(1_000_000).await;
                ticks += 1;
            }
            assert!(!opening.is_finished(), "the lock was held all the time");
            holder.unlock().expect("it is ours");
            opening.await.expect("the lock is free");
            ticks
        });
        let ticks = ticks.expect("everything ends");
        assert!(ticks > 20, "{}: {ticks} ticks in 200 ms", method.name());
    }
}

/// A symbolic link in a database folder could lead a write anywhere; reading through one harms
/// nobody.
#[test]
fn links_are_followed_for_reading_only() {
    let place = Place::new("links");
    let (target, link) = (place.root().join("target"), place.root().join("link"));
    fs::write(&target, vec![0; 4096]).expect("the folder is ours");
    symlink(&target, &link).expect("the folder is ours");
    let machine = Machine::by(Method::Threads);
    let files = machine.files();
    machine.run(async move {
        let error = files.open(&link, OpenMode::Write, CONTEXT).await.err();
        let error = error.expect("a link is not opened for writing");
        assert_eq!(error.kind, DiskErrorKind::Unsupported);
        assert!(error.to_string().contains("symbolic link"), "{error}");
        let created = files.open(&link, OpenMode::Create, CONTEXT).await;
        assert_eq!(kind_of(created), Some(DiskErrorKind::AlreadyExists));
        assert_eq!(kind_of(files.open(&link, OpenMode::Read, CONTEXT).await), None);
    });
}

/// A pipe would block the worker for ever; a directory is not a database; devices are not deleted.
#[test]
fn only_files_are_files() {
    let place = Place::new("not-files");
    let pipe = place.root().join("pipe");
    run("mkfifo", &[pipe.to_str().expect("an ordinary name")]).expect("coreutils are installed");
    let folder = place.folder("folder");
    let machine = Machine::by(Method::Threads);
    let files = machine.files();
    machine.run(async move {
        for mode in [OpenMode::Read, OpenMode::Write] {
            for path in [&pipe, &folder] {
                let opened = files.open(path, mode, CONTEXT).await;
                assert_eq!(kind_of(opened), Some(DiskErrorKind::Unsupported), "{path:?}");
            }
        }
        let null = "/dev/null".as_ref();
        let deleted = files.delete(null, CONTEXT).await;
        assert_eq!(kind_of(deleted), Some(DiskErrorKind::Unsupported));
        let renamed = files.rename(null, &folder.join("null"), CONTEXT).await;
        assert_eq!(kind_of(renamed), Some(DiskErrorKind::Unsupported));
    });
}

/// On a file system without direct I/O (ramfs) the user hears it and finds no leftover; buffered
/// I/O is asked for and remarked.
#[test]
fn refused_direct_io_is_an_error_or_a_remark() {
    if !root_or_skip("a file system without direct I/O") {
        return;
    }
    let place = Place::new("ramfs");
    let Some(mounted) = Mounted::new(&place, "ramfs", "ramfs", "rw") else {
        return;
    };
    let path = mounted.point.join("database");
    let machine = Machine::with(RealDiskOptions::default());
    let (files, database) = (machine.files(), path.clone());
    let result = machine.run(async move { files.open(database, OpenMode::Create, CONTEXT).await });
    let error = result.err().expect("ramfs has no direct I/O");
    assert_eq!(error.kind, DiskErrorKind::Unsupported);
    assert!(error.to_string().contains("direct I/O"), "{error}");
    assert!(!path.exists(), "nothing is left behind");
    let machine = Machine::with(RealDiskOptions {
        caching: Caching::AllowBuffered,
        ..RealDiskOptions::default()
    });
    let (files, disk) = (machine.files(), machine.disk.clone());
    machine.run(async move {
        let file = files.open(path, OpenMode::Create, CONTEXT).await;
        let file = file.expect("buffered I/O is allowed");
        let mut buffer = file.allocate(4096);
        buffer.fill(7);
        let written = file.write(0, buffer, Durability::Durable, CONTEXT).await;
        let read = file.read(0, written.expect("a write"), CONTEXT).await;
        assert!(read.expect("a read").iter().all(|byte| *byte == 7));
        file.close(CONTEXT).await.expect("a close");
    });
    let remarks = disk.facts().remarks;
    assert!(remarks.iter().any(|remark| remark.contains("buffered I/O")), "{remarks:?}");
    drop((disk, machine));
    std::thread::sleep(Duration::from_millis(50));
}

/// A read-only file system is called that, not a missing permission.
#[test]
fn a_read_only_file_system_is_named() {
    if !root_or_skip("a read-only file system") {
        return;
    }
    let place = Place::new("read-only");
    let Some(mounted) = Mounted::new(&place, "tmpfs", "tmpfs", "size=1m") else {
        return;
    };
    let point = mounted.point.to_str().expect("an ordinary name");
    fs::write(mounted.point.join("old"), vec![0; 4096]).expect("still writable");
    run("mount", &["-o", "remount,ro", point]).expect("root may remount");
    let machine = Machine::by(Method::Threads);
    let (files, folder) = (machine.files(), mounted.point.clone());
    machine.run(async move {
        let (old, new) = (folder.join("old"), folder.join("new"));
        let kinds = [
            kind_of(files.open(&new, OpenMode::Create, CONTEXT).await),
            kind_of(files.open(&old, OpenMode::Write, CONTEXT).await),
            kind_of(files.delete(&old, CONTEXT).await),
            kind_of(files.rename(&old, &new, CONTEXT).await),
        ];
        assert_eq!(kinds, [Some(DiskErrorKind::ReadOnly); 4]);
    });
}
