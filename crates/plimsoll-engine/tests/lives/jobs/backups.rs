//! Backups of one database beside each other, and copies whose log is not all there.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::{Instance, RecoveryReport};
use plimsoll_engine::jobs::backup::{Backup, BackupReport};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Context, Durability, File, Files, Handle, Loss, MemoryOptions, NANOS_PER_SECOND,
    OpenMode, Random,
};

use crate::jobs::{slow_disk, work};
use crate::support::*;

/// Writes a backup to its end into a directory, the header last, with a pause after every piece.
pub async fn write_copy(
    files: &Files,
    handle: &Handle,
    backup: &mut Backup,
    to: &str,
    pause_ns: u64,
) -> BackupReport {
    let target = write_pages(files, handle, backup, to, pause_ns).await;
    end_copy(target, backup).await
}

/// Writes the pages of a backup; the copy has no header yet.
async fn write_pages(
    files: &Files,
    handle: &Handle,
    backup: &mut Backup,
    to: &str,
    pause_ns: u64,
) -> File {
    let path = format!("{to}/database 1.edb");
    let target = files.open(path, OpenMode::Create, Context::default()).await.unwrap();
    while let Some(chunk) = backup.next_chunk().await.unwrap() {
        let offset = PageSize::KIB_4.offset_of(chunk.first);
        let written = target.write(offset, chunk.bytes, Durability::Volatile, Context::default());
        written.await.unwrap();
        handle.sleep(pause_ns).await;
    }
    target
}

/// Ends a backup whose pages are written, and gives the copy its header.
async fn end_copy(target: File, backup: &mut Backup) -> BackupReport {
    let report = backup.finish().await.unwrap();
    let header = backup.header_of_copy(&report).encode();
    for copy in 0..2 {
        let mut page = target.allocate(4096);
        page.copy_from_slice(&header);
        let written = target.write(copy * 4096, page, Durability::Volatile, Context::default());
        written.await.unwrap();
    }
    target.close(Context::default()).await.unwrap();
    report
}

async fn copy_file(files: &Files, from: std::path::PathBuf, to: std::path::PathBuf) {
    let source = files.open(from, OpenMode::Read, Context::default()).await.unwrap();
    let length = source.opened().length_bytes;
    let buffer = source.allocate(length as usize);
    let bytes = source.read(0, buffer, Context::default()).await.unwrap();
    source.close(Context::default()).await.unwrap();
    if files.exists(&to, Context::default()).await.unwrap() {
        files.delete(&to, Context::default()).await.unwrap();
    }
    let target = files.open(to, OpenMode::Create, Context::default()).await.unwrap();
    target.extend(length, Context::default()).await.unwrap();
    let written = target.write(0, bytes, Durability::Durable, Context::default());
    written.await.unwrap();
    target.close(Context::default()).await.unwrap();
}

/// Copies generations of the stream to a directory; the last is the current one there.
pub async fn copy_log(files: &Files, generations: RangeInclusive<u32>, to: &str) {
    let (from, to) = (LogNames::new(LOG, "E00"), LogNames::new(to, "E00"));
    for generation in generations.clone() {
        let closed = files.exists(from.closed(generation), Context::default());
        let source = match closed.await.unwrap() {
            true => from.closed(generation),
            false => from.current(),
        };
        let target = match generation == *generations.end() {
            true => to.current(),
            false => to.closed(generation),
        };
        copy_file(files, source, target).await;
    }
}

pub async fn open_copy(
    files: &Files,
    handle: &Handle,
    setup: &Setup,
    copy: &str,
    log: &str,
) -> Result<(Rc<Instance>, RecoveryReport)> {
    let mut options = options(setup);
    options.databases = vec![format!("{copy}/database 1.edb").into()];
    options.log = LogNames::new(log, "E00");
    let mut random = Random::from_seed(9);
    Instance::open(files.clone(), handle.clone(), options, &mut random).await
}

/// One backup that ended let go of the log that another, begun before it, still needed.
#[test]
fn two_backups_of_one_database_hold_their_log_each() {
    let setup = Setup { cache_frames: 400, checkpoint_generations: 1, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 4, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let fill = async |from: u64| {
            for number in from..from + 3_000 {
                let transaction = instance.begin();
                let key = number.to_be_bytes();
                transaction.insert(tree, &key, &[1; 600]).await.unwrap();
                transaction.commit(Commit::Lazy).await.unwrap();
            }
            handle.sleep(3 * NANOS_PER_SECOND).await;
        };
        fill(0).await;
        let mut first = Backup::start(&instance, 1, 64 * 1024).unwrap();
        fill(10_000).await;
        let second = Backup::start(&instance, 1, 64 * 1024).unwrap();
        fill(20_000).await;
        drop(second);
        fill(30_000).await;
        while first.next_chunk().await.unwrap().is_some() {}
        let needed = first.finish().await.unwrap().generation_first;
        let oldest = instance.store().log.oldest_generation();
        assert!(oldest <= needed, "generation {needed} is needed, the oldest there is {oldest}");
        drop(first);
        fill(40_000).await;
        let oldest = instance.store().log.oldest_generation();
        assert!(oldest > needed, "nobody needs generation {oldest} any more");
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// A copy was opened without the last generations that make its pages consistent, or from the
/// checkpoint of the databases it was made of.
#[test]
fn a_backup_copy_demands_all_of_its_log() {
    let setup = Setup { cache_frames: 64, checkpoint_generations: 1, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 7, slow_disk());
    for directory in ["/copy", "/copylog"] {
        disk.create_directory(directory);
    }
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 7).await.unwrap();
        let field = create_field(&instance, &setup, 2_000, 500).await.unwrap();
        let ledger: Rc<RefCell<Ledger>> = Rc::default();
        work(&instance, &handle, &field, &ledger, 1, 60).await;
        let before = ledger.borrow().committed.len();
        let busy = {
            let (instance, field, ledger, handle) =
                (instance.clone(), field.clone(), ledger.clone(), handle.clone());
            let spawner = handle.clone();
            spawner.spawn(async move { work(&instance, &handle, &field, &ledger, 2, 2_000).await })
        };
        let mut backup = Backup::start(&instance, 1, 16 * 4096).unwrap();
        let report = write_copy(&files, &handle, &mut backup, "/copy", NANOS_PER_SECOND / 2).await;
        let (first, last) = (report.generation_first, report.generation_last);
        assert!(last >= first + 2, "too short a time: generations {first} to {last}");
        copy_log(&files, first..=last, "/copylog").await;
        let names = LogNames::new("/copylog", "E00");
        let live = LogNames::new(LOG, "E00");
        copy_file(&files, live.checkpoint(), names.checkpoint()).await;
        for missing in first..=last {
            let path = match missing == last {
                true => names.current(),
                false => names.closed(missing),
            };
            files.delete(&path, Context::default()).await.unwrap();
            let opened = open_copy(&files, &handle, &setup, "/copy", "/copylog").await.map(drop);
            let is_named = matches!(&opened, Err(EngineError::LogMissing { generation,
                    .. }) if *generation == missing);
            assert!(is_named, "without generation {missing} of {first} to {last}: {opened:?}");
            copy_log(&files, first..=last, "/copylog").await;
        }
        drop(backup);
        busy.await;
        instance.close().await.unwrap();

        let (copy, _) = open_copy(&files, &handle, &setup, "/copy", "/copylog").await.unwrap();
        let books = Ledger { acknowledged: Vec::new(), ..ledger.borrow().clone() };
        let survived = audit(&copy, &field, &books).await.unwrap();
        assert!(survived >= before, "{survived} of {before} commits");
        copy.abandon().await.unwrap();
        // From now on it is a database like others: what it was made of no longer counts.
        let (copy, _) = open_copy(&files, &handle, &setup, "/copy", "/copylog").await.unwrap();
        assert_eq!(audit(&copy, &field, &books).await.unwrap(), survived);
        copy.close().await.unwrap();
        let (copy, report) = open_copy(&files, &handle, &setup, "/copy", "/copylog").await.unwrap();
        assert!(!report.recovered);
        copy.close().await.unwrap();
    })
    .unwrap();
}

/// The checkpoint of the databases that a copy was made of lies in the first generation that the
/// copy needs, behind what its pages lack.
#[test]
fn a_copy_is_redone_from_its_own_checkpoint_within_its_first_generation() {
    let setup = Setup { cache_frames: 400, checkpoint_generations: 1, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 11, MemoryOptions::default());
    for directory in ["/copy", "/copylog"] {
        disk.create_directory(directory);
    }
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 11).await.unwrap();
        let field = create_field(&instance, &setup, 2_000, 500).await.unwrap();
        let ledger: Rc<RefCell<Ledger>> = Rc::default();
        let mut rounds = 1..1_000;
        let mut round = async || {
            let number = rounds.next().expect("the checkpoint moves within a generation at last");
            work(&instance, &handle, &field, &ledger, number, 10).await;
            handle.sleep(NANOS_PER_SECOND / 10).await;
            instance.checkpoint().await.unwrap();
            instance.store().checkpoint.get()
        };
        let (mut backup, target) = loop {
            let before = round().await;
            let mut backup = Backup::start(&instance, 1, 16 * 4096).unwrap();
            let target = write_pages(&files, &handle, &mut backup, "/copy", 0).await;
            let checkpoint = round().await;
            if checkpoint > before && checkpoint.generation == before.generation {
                break (backup, target);
            }
            target.close(Context::default()).await.unwrap();
            let path = Path::new("/copy/database 1.edb");
            files.delete(path, Context::default()).await.unwrap();
        };
        let report = end_copy(target, &mut backup).await;
        let (first, last) = (report.generation_first, report.generation_last);
        copy_log(&files, first..=last, "/copylog").await;
        let (live, own) = (LogNames::new(LOG, "E00"), LogNames::new("/copylog", "E00"));
        copy_file(&files, live.checkpoint(), own.checkpoint()).await;
        drop(backup);
        instance.close().await.unwrap();

        let (copy, _) = open_copy(&files, &handle, &setup, "/copy", "/copylog").await.unwrap();
        let books = ledger.borrow().clone();
        let survived = audit(&copy, &field, &books).await.unwrap();
        assert_eq!(survived, books.committed.len());
        copy.close().await.unwrap();
    })
    .unwrap();
}

/// A backup at some time: how many commits there were before it, and where it lies.
async fn one_backup(
    world: (Files, Handle, Rc<Instance>, Rc<RefCell<Ledger>>),
    number: usize,
    mut random: Random,
) -> Option<(usize, String, String)> {
    let (files, handle, instance, ledger) = world;
    handle.sleep(random.below(3 * NANOS_PER_SECOND)).await;
    let before = ledger.borrow().committed.len();
    let mut backup = Backup::start(&instance, 1, 16 * 4096).unwrap();
    if random.chance(0.3) {
        // Given up somewhere.
        for _ in 0..random.below(10) {
            backup.next_chunk().await.unwrap();
        }
        return None;
    }
    let (copy, log) = (format!("/copy{number}"), format!("/copylog{number}"));
    let pause_ns = random.below(NANOS_PER_SECOND / 4);
    let report = write_copy(&files, &handle, &mut backup, &copy, pause_ns).await;
    handle.sleep(random.below(NANOS_PER_SECOND)).await;
    copy_log(&files, report.generation_first..=report.generation_last, &log).await;
    Some((before, copy, log))
}

fn backups_at_random(seed: u64) {
    const BACKUPS: usize = 4;
    let setup = Setup { cache_frames: 64, checkpoint_generations: 1, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, slow_disk());
    for number in 0..BACKUPS {
        disk.create_directory(format!("/copy{number}"));
        disk.create_directory(format!("/copylog{number}"));
    }
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let field = create_field(&instance, &setup, 1_000, 500).await.unwrap();
        let ledger: Rc<RefCell<Ledger>> = Rc::default();
        let random = Random::from_seed(seed);
        let start = |number: usize| {
            let world = (files.clone(), handle.clone(), instance.clone(), ledger.clone());
            handle.spawn(one_backup(world, number, random.child(&format!("backup {number}"))))
        };
        let backups: Vec<_> = (0..BACKUPS).map(start).collect();
        work(&instance, &handle, &field, &ledger, seed + 1, 700).await;
        let mut copies = Vec::new();
        for backup in backups {
            copies.extend(backup.await);
        }
        instance.close().await.unwrap();
        let books = Ledger { acknowledged: Vec::new(), ..ledger.borrow().clone() };
        for (before, copy, log) in copies {
            let (instance, _) = open_copy(&files, &handle, &setup, &copy, &log).await.unwrap();
            let survived = audit(&instance, &field, &books).await.unwrap();
            assert!(survived >= before, "seed {seed}, {copy}: {survived} of {before}");
            instance.close().await.unwrap();
        }
    })
    .unwrap();
}

/// What recovery makes again of torn pages is in the file when the databases are open: a backup, or
/// maintenance, that is begun at once reads it there, and would call sound storage damaged.
#[test]
fn a_backup_right_after_recovery_finds_no_torn_page() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let mut torn = 0;
    for seed in 1..=30 {
        let clock = Rc::new(Clock::simulated());
        let memory = MemoryOptions { atomic_write_bytes: 512, ..slow_disk() };
        let disk = new_disk(&clock, seed, memory);
        let random = Random::from_seed(seed);
        disk.power_cut_at_event(500 + random.child("cut").below(2_500));
        let world = setup.clone();
        run_until_power_lost(&disk, move |files, handle| async move {
            if create_databases(&files, &world).await.is_err() {
                return;
            }
            let Ok((instance, _)) = open(&files, &handle, &world, seed).await else { return };
            let Ok(field) = create_field(&instance, &world, 1_000, 500).await else { return };
            let (ledger, mut random) = (Rc::default(), Random::from_seed(seed).child("work"));
            let weights = Weights::swarm(&mut random);
            for serial in 0.. {
                let done =
                    one_transaction(&instance, &field, &weights, serial, &mut random, &ledger);
                if done.await.is_err() {
                    return;
                }
            }
        });
        disk.power_cut();
        let found = disk.crash_image(Loss::Drawn, &mut random.child("loss"));
        let clock = found.clock().clone();
        // Recovery need not write anything for want of room.
        let world = Setup { cache_frames: 600, ..setup.clone() };
        torn += run_on(&clock, &found, move |files, handle| async move {
            let Ok((instance, report)) = open(&files, &handle, &world, seed + 2).await else {
                return 0;
            };
            let mut backup = Backup::start(&instance, 1, 16 * 4096).unwrap();
            while let Some(chunk) =
                backup.next_chunk().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            {
                drop(chunk);
            }
            instance.close().await.unwrap();
            report.replay.mended
        })
        .unwrap();
    }
    assert!(torn > 5, "{torn} pages were torn");
}

#[test]
fn backups_beside_each_other_recover_to_what_was_committed() {
    for seed in first_seed(0)..first_seed(4) {
        backups_at_random(seed);
    }
}

/// Why it matters: whoever tidies up the holds of this process, by the names in the list, makes a
/// backup under way one that can never be opened, and its report says nothing of it.
#[test]
fn no_caller_can_take_away_what_a_backup_holds() {
    let setup = Setup { checkpoint_generations: 1, ..Setup::default() };
    let disk = new_disk(&Rc::new(Clock::simulated()), 5, MemoryOptions::default());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let backup = Backup::start(&instance, 1, 64 * 1024).unwrap();
        let name = only_hold(&instance);
        // A caller may have a hold of that name, too.
        instance.hold_log(&name, u32::MAX);
        instance.release_log(&name);
        assert_eq!(only_hold(&instance), name, "it is listed until the backup ends");
        pass_generations(&instance, &handle, 5).await;
        let log = &instance.store().log;
        let report = backup.finish().await.unwrap();
        assert!(report.generation_last > report.generation_first + 4);
        assert_eq!(log.oldest_generation(), report.generation_first, "its log is there");
        drop(backup);
        pass_generations(&instance, &handle, 1).await;
        assert!(log.oldest_generation() > report.generation_first, "it ends with the backup");
        instance.close().await.unwrap();
    })
    .unwrap();
}

fn only_hold(instance: &Instance) -> String {
    let holds = instance.holds();
    assert_eq!(holds.len(), 1, "{holds:?}");
    holds[0].name.clone()
}

async fn pass_generations(instance: &Rc<Instance>, handle: &Handle, generations: u32) {
    let log = &instance.store().log;
    for _ in 0..generations {
        log.make_durable(log.begin_generation().end).await.unwrap();
        handle.sleep(2 * NANOS_PER_SECOND).await;
    }
    instance.checkpoint().await.unwrap();
}

/// Why it matters: a copy without its first log is refused when it is needed, and not before.
#[test]
fn a_backup_whose_first_log_is_gone_all_the_same_does_not_end_well() {
    let setup = Setup::default();
    let disk = new_disk(&Rc::new(Clock::simulated()), 5, MemoryOptions::default());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let backup = Backup::start(&instance, 1, 64 * 1024).unwrap();
        let first = backup.finish().await.unwrap().generation_first;
        let log = &instance.store().log;
        log.make_durable(log.begin_generation().end).await.unwrap();
        log.delete_before(|| first + 1, false).await.unwrap();
        let failed = backup.finish().await.map(drop).unwrap_err();
        let says_which =
            matches!(&failed, EngineError::LogMissing { generation, .. } if *generation == first);
        assert!(says_which, "{failed}");
    })
    .unwrap();
}
