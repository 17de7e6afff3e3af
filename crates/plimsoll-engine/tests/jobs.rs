//! Jobs beside the transactions must neither miss damage nor cry wolf while pages are being written under their eyes, and what a backup and a replica
//! get must be enough to rebuild the database.

mod support;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::error::PageDamage;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, MaintenanceProgress, maintain};
use plimsoll_engine::jobs::replication::{ReplicationProgress, replicate};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::{DatabaseState, PageSize};
use plimsoll_io::{
    Clock, Context, Durability, Files, Handle, Latency, LatencyPlan, MemoryOptions, NANOS_PER_SECOND,
    OpenMode, Random,
};
use support::*;

async fn work(
    instance: &Rc<Instance>,
    handle: &Handle,
    field: &Field,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    transactions: u64,
) {
    let mut joins = Vec::new();
    for session in 0..4 {
        let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            let weights = Weights::swarm(&mut random);
            for number in 0..transactions {
                let serial = seed * 1_000_000 + session * 10_000 + number;
                one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                    .await
                    .unwrap();
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

fn slow_disk() -> MemoryOptions {
    let latency = Latency::Exponential {
        fixed_ns: 100_000,
        mean_ns: 1_000_000,
    };
    MemoryOptions {
        latency: LatencyPlan::of(latency),
        ..MemoryOptions::default()
    }
}

#[test]
fn maintenance_checks_everything_and_blames_nobody_while_pages_are_written() {
    let setup = Setup {
        cache_frames: 64,
        ..Setup::default()
    };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, slow_disk());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let field = create_field(&instance, &setup, 2_000, 500).await.unwrap();
        let progress: Rc<MaintenanceProgress> = Rc::default();
        let options = MaintenanceOptions {
            read_bytes: 64 * 1024,
            pause_ns: 1_000_000,
        };
        let job = handle.spawn(maintain(instance.clone(), 1, options, progress.clone()));
        work(&instance, &handle, &field, &Rc::default(), 5, 200).await;
        progress.stop.set(true);
        job.await.unwrap();
        assert!(
            progress.passes.get() >= 3,
            "only {} passes",
            progress.passes.get()
        );
        assert_eq!(*progress.damaged.borrow(), Vec::new());
        instance.close().await.unwrap();
    })
    .unwrap();
}

#[test]
fn maintenance_finds_a_page_that_went_bad_on_disk() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 6, MemoryOptions::default());
    let corrupting = disk.clone();
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 6).await.unwrap();
        corrupting.corrupt(database_path(1), PageSize::KIB_4.offset_of(13), |bytes| {
            bytes[100..120].fill(0x55)
        });
        let progress: Rc<MaintenanceProgress> = Rc::default();
        let options = MaintenanceOptions {
            read_bytes: 64 * 1024,
            pause_ns: 1_000_000,
        };
        let job = handle.spawn(maintain(instance.clone(), 1, options, progress.clone()));
        handle.sleep(NANOS_PER_SECOND / 2).await;
        progress.stop.set(true);
        job.await.unwrap();
        assert!(
            progress
                .damaged
                .borrow()
                .iter()
                .all(|(page, damage)| *page == 13 && *damage == PageDamage::Checksum)
        );
        assert!(!progress.damaged.borrow().is_empty());
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Copies the generations `first..=last` of a stream to a directory.
async fn copy_log(files: &Files, first: u32, last: u32, to: &str) {
    let (from, to) = (LogNames::new(LOG, "E00"), LogNames::new(to, "E00"));
    for generation in first..=last {
        let source = if files
            .exists(from.closed(generation), Context::default())
            .await
            .unwrap()
        {
            from.closed(generation)
        } else {
            from.current()
        };
        let source = files
            .open(source, OpenMode::Read, Context::default())
            .await
            .unwrap();
        let bytes = source
            .read(0, source.allocate(1 << 20), Context::default())
            .await
            .unwrap();
        source.close(Context::default()).await.unwrap();
        let target = if generation == last {
            to.current()
        } else {
            to.closed(generation)
        };
        let target = files
            .open(target, OpenMode::Create, Context::default())
            .await
            .unwrap();
        target.extend(1 << 20, Context::default()).await.unwrap();
        target
            .write(0, bytes, Durability::Durable, Context::default())
            .await
            .unwrap();
        target.close(Context::default()).await.unwrap();
    }
}

#[test]
fn a_backup_taken_under_load_recovers_to_a_committed_state() {
    let setup = Setup {
        cache_frames: 64,
        ..Setup::default()
    };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 7, slow_disk());
    disk.create_directory("/copy");
    disk.create_directory("/copylog");
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
            handle
                .clone()
                .spawn(async move { work(&instance, &handle, &field, &ledger, 2, 120).await })
        };
        let mut backup = Backup::start(&instance, 1, 16 * 4096).unwrap();
        let target = files
            .open("/copy/database 1.edb", OpenMode::Create, Context::default())
            .await
            .unwrap();
        let header = instance.database(1).unwrap().header();
        assert_eq!(header.state, DatabaseState::Dirty);
        for copy in 0..2 {
            let mut page = target.allocate(4096);
            page.copy_from_slice(&header.encode());
            target
                .write(copy * 4096, page, Durability::Volatile, Context::default())
                .await
                .unwrap();
        }
        while let Some(chunk) = backup.next_chunk().await.unwrap() {
            let offset = PageSize::KIB_4.offset_of(chunk.first);
            target
                .write(offset, chunk.bytes, Durability::Volatile, Context::default())
                .await
                .unwrap();
        }
        target.close(Context::default()).await.unwrap();
        let report = backup.finish().await.unwrap();
        copy_log(
            &files,
            report.generation_first,
            report.generation_last,
            "/copylog",
        )
        .await;
        drop(backup);
        busy.await;
        instance.close().await.unwrap();

        let mut options = options(&setup);
        options.databases = vec!["/copy/database 1.edb".into()];
        options.log = LogNames::new("/copylog", "E00");
        let mut random = Random::from_seed(9);
        let (copy, recovery) = Instance::open(files.clone(), handle.clone(), options, &mut random)
            .await
            .unwrap();
        assert!(recovery.recovered);
        let books = ledger.borrow().clone();
        let books = Ledger {
            acknowledged: Vec::new(),
            ..books
        };
        let survived = audit(&copy, &field, &books).await.unwrap();
        assert!(
            survived >= before,
            "the copy holds {survived} commits, {before} were done before it began"
        );
        copy.close().await.unwrap();
    })
    .unwrap();
}

/// ENG-12, ENG-23: what a copy has not read yet is not truncated, circular or not.
#[test]
fn a_replica_reads_every_closed_generation_once_and_holds_the_rest() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 8, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 8).await.unwrap();
        let field = create_field(&instance, &setup, 500, 500).await.unwrap();
        let progress: Rc<ReplicationProgress> = Rc::default();
        let job = handle.spawn(replicate(instance.clone(), 2, progress.clone()));
        work(&instance, &handle, &field, &Rc::default(), 3, 2500).await;
        handle.sleep(2 * NANOS_PER_SECOND).await;
        let closed = instance.store().log.statistics().generations;
        assert!(closed >= 3, "only {closed} generations");
        assert_eq!(progress.generations.get(), closed);
        progress.stop.set(true);
        job.await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}
