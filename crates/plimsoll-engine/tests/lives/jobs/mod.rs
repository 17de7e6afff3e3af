//! Jobs beside the transactions must neither miss damage nor cry wolf while pages are being written
//! under their eyes, and what a backup and a replica get must be enough to rebuild the database.

mod backups;
mod copies;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::error::PageDamage;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, MaintenanceProgress, maintain};
use plimsoll_engine::jobs::read_back::{ReadBackProgress, read_back};
use plimsoll_io::{Clock, Handle, Latency, LatencyPlan, MemoryOptions, NANOS_PER_SECOND, Random};

use crate::support::*;
use backups::{copy_log, open_copy, write_copy};

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
    let latency = Latency::Exponential { fixed_ns: 100_000, mean_ns: 1_000_000 };
    MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() }
}

#[test]
fn maintenance_checks_everything_and_blames_nobody_while_pages_are_written() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 5, slow_disk());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 5).await.unwrap();
        let field = create_field(&instance, &setup, 2_000, 500).await.unwrap();
        let progress: Rc<MaintenanceProgress> = Rc::default();
        let options = MaintenanceOptions { read_bytes: 64 * 1024, pause_ns: 1_000_000 };
        let job = handle.spawn(maintain(instance.clone(), 1, options, progress.clone()));
        work(&instance, &handle, &field, &Rc::default(), 5, 200).await;
        progress.stop.set(true);
        job.await.unwrap();
        assert!(progress.passes.get() >= 3, "only {} passes", progress.passes.get());
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
        let options = MaintenanceOptions { read_bytes: 64 * 1024, pause_ns: 1_000_000 };
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

#[test]
fn a_backup_taken_under_load_recovers_to_a_committed_state() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
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
        let report = write_copy(&files, &handle, &mut backup, "/copy", 0).await;
        let (first, last) = (report.generation_first, report.generation_last);
        copy_log(&files, first..=last, "/copylog").await;
        drop(backup);
        busy.await;
        instance.close().await.unwrap();

        let (copy, recovery) =
            open_copy(&files, &handle, &setup, "/copy", "/copylog").await.unwrap();
        assert!(recovery.recovered);
        let books = ledger.borrow().clone();
        let books = Ledger { acknowledged: Vec::new(), ..books };
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
        let progress: Rc<ReadBackProgress> = Rc::default();
        let job = handle.spawn(read_back(instance.clone(), 2, progress.clone()));
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
