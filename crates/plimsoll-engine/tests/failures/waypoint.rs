//! The waypoint: no page in a database file is newer than the end of the log minus a configured
//! number of generations. Losing the newest generations then loses commits, but leaves no page that
//! the rest of the log does not know.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::page::PageView;
use plimsoll_io::{Clock, Context, Files, Loss, MemoryDisk, MemoryOptions, Random};

use crate::support::*;

fn setup(waypoint_generations: u32) -> Setup {
    Setup {
        waypoint_generations,
        cache_frames: 64,
        checkpoint_generations: 4,
        // All of the log stays, so that it can be asked when each page was changed.
        circular: false,
        ..Setup::default()
    }
}

const WEIGHTS: Weights = Weights {
    insert: 5,
    delete: 1,
    replace: 4,
    lazy: 0.2,
    rollback: 0.1,
    savepoint: 0.1,
    operations_max: 8,
    narrow: 0.1,
};

async fn work(
    files: Files,
    handle: plimsoll_io::Handle,
    setup: Setup,
    seed: u64,
    transactions: u64,
) {
    create_databases(&files, &setup).await.unwrap();
    let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
    let field = create_field(&instance, &setup, 900, 900).await.unwrap();
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let mut joins = Vec::new();
    for session in 0..3u64 {
        let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            for number in 0..transactions {
                let serial = session * 1_000_000 + number;
                let done =
                    one_transaction(&instance, &field, &WEIGHTS, serial, &mut random, &ledger)
                        .await;
                done.unwrap();
            }
        }));
    }
    for join in joins {
        join.await;
    }
    instance.close().await.unwrap();
}

/// A cache full of pages that may not be written yet must not stop the instance, and a clean stop
/// writes them all the same: both waited for ever.
#[test]
fn work_and_a_clean_stop_come_to_an_end() {
    for waypoint_generations in [1, 3] {
        let setup = setup(waypoint_generations);
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, 1, MemoryOptions::default());
        run_on(&clock, &disk, move |files, handle| work(files, handle, setup, 1, 150))
            .unwrap_or_else(|_| {
                panic!("with {waypoint_generations} generations everybody waits for ever")
            });
    }
}

/// The generation of the change that gave a page its database time, for every time in the log; and
/// the last generation.
fn generations_by_time(disk: &Rc<MemoryDisk>) -> (BTreeMap<u64, u32>, u32) {
    run_on(&disk.clock().clone(), disk, |files, _| async move {
        let reader = LogReader::new(files, LogNames::new(LOG, "E00"), Context::default());
        let (mut times, mut last) = (BTreeMap::new(), 0);
        for file in reader.generations().await.unwrap() {
            let generation = reader.read_generation(&file.path).await.unwrap();
            last = file.generation;
            for record in generation.records(0) {
                match record.unwrap().1 {
                    LogRecord::Row(row) => times.insert(row.dbtime, last),
                    LogRecord::Structure(structure) => times.insert(structure.dbtime, last),
                    _ => None,
                };
            }
        }
        (times, last)
    })
    .unwrap()
}

/// The promise, looked at on the disk itself at many moments, with every write that was under way
/// counted as done.
#[test]
fn no_page_on_disk_is_newer_than_the_waypoint() {
    let (mut pages, mut generations_max) = (0, 0);
    for seed in 0..12u64 {
        let waypoint_generations = 1 + seed as u32 % 3;
        let setup = setup(waypoint_generations);
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, seed, MemoryOptions::default());
        let mut random = Random::from_seed(seed).child("cut");
        disk.power_cut_at_event(3_000 + random.below(12_000));
        run_until_power_lost(&disk, move |files, handle| work(files, handle, setup, seed, 5_000));
        disk.power_cut();
        let image = disk.crash_image(Loss::Nothing, &mut random);
        let (times, last) = generations_by_time(&image);
        generations_max = generations_max.max(last);
        let size = Setup::default().size;
        let file = image.bytes(database_path(1)).expect("the database was created");
        for page in file.chunks_exact(size.bytes()).skip(2) {
            let dbtime = PageView::new(page, size).dbtime();
            if let Some(generation) = times.get(&dbtime) {
                pages += 1;
                assert!(
                    generation + waypoint_generations <= last,
                    "seed {seed}: a page changed in generation {generation} is on disk, the log \
                     ends in {last}"
                );
            }
        }
    }
    assert!(
        pages > 200 && generations_max > 5,
        "{pages} pages, {generations_max} generations: nothing to see"
    );
}
