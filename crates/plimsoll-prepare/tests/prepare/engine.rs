//! The engine on a prepared database: regular trees nobody ever inserted into must take inserts,
//! replacements and deletes like any other, and afterwards still be a database; and what the sparse
//! disk keeps of it must stay small.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::support::*;
use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::deep::{DeepOptions, DeepReport, verify_deep};
use plimsoll_engine::error::PageDamage;
use plimsoll_engine::jobs::maintenance::{MaintenanceOptions, MaintenanceProgress, maintain};
use plimsoll_engine::page::page_flags;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Delta, MemoryOptions, Random};
use plimsoll_prepare::{Extent, PageDelta, Plan, PreparedContent, PreparedDatabase};

/// Table and index of a prepared database, by the documented page map.
fn trees(database: &PreparedDatabase) -> (Tree, Tree) {
    let table = tree_of(1, 31, 8);
    let mut page = vec![0; database.page_size().bytes()];
    let index_root = (32..database.pages()).find(|number| {
        database.page(*number, &mut page);
        let view = plimsoll_engine::page::PageView::new(&page, database.page_size());
        view.object() == 9 && view.is_root()
    });
    let index = Tree { kind: page_flags::INDEX, ..tree_of(1, index_root.unwrap(), 9) };
    (table, index)
}

struct Outcome {
    report: DeepReport,
    /// Versions of the records there should be.
    versions: BTreeMap<u64, u32>,
    /// Pages that are not as prepared, and the bytes the sparse disk keeps for them.
    changed_pages: usize,
    coded_bytes: usize,
}

/// Prepares a database, changes it at random through the engine, closes it and checks it.
fn change_at_random(size: PageSize, records: u64, changes: u64, seed: u64) -> Outcome {
    let plan = Plan { branch_fill_percent: 10, ..Plan::new(size, Extent::Records(records), seed) };
    let database = Arc::new(PreparedDatabase::new(plan).unwrap());
    let setup = Setup { size, cache_frames: 256, page_images: false, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::ram());
    disk.load_sparse(database_path(1), database.file_bytes(), PreparedContent::sparse(&database));
    let (prepared, changed) = (database.clone(), disk.clone());
    let (report, versions) = run_on(&clock, &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let mut random = Random::from_seed(seed);
        let (table, index) = trees(&database);
        let mut versions: BTreeMap<u64, u32> = (0..records).map(|number| (number, 0)).collect();
        let mut next = records;
        for _ in 0..changes {
            let transaction = instance.begin();
            let victim = *versions
                .range(random.below(next)..)
                .next()
                .unwrap_or_else(|| versions.last_key_value().unwrap())
                .0;
            match random.below(100) {
                0..40 => {
                    let (key, record) = (database.record_key(next), database.record(next, 0));
                    transaction.insert(table, &key, &record).await.unwrap();
                    let scatter = database.scatter_key(next);
                    transaction.insert(index, &scatter, &key).await.unwrap();
                    versions.insert(next, 0);
                    next += 1;
                }
                40..60 => {
                    transaction.delete(table, &database.record_key(victim)).await.unwrap();
                    transaction.delete(index, &database.scatter_key(victim)).await.unwrap();
                    versions.remove(&victim);
                }
                _ => {
                    let version = versions[&victim] + 1;
                    let record = database.record(victim, version);
                    let key = database.record_key(victim);
                    transaction.replace(table, &key, &record).await.unwrap();
                    versions.insert(victim, version);
                }
            }
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        instance.close().await.unwrap();
        let report =
            verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let found = dump(&instance, table).await.unwrap();
        for (number, version) in &versions {
            assert!(found[&database.record_key(*number)] == database.record(*number, *version));
        }
        assert_eq!(found.len(), versions.len());
        instance.close().await.unwrap();
        (report, versions)
    })
    .unwrap();
    let (changed_pages, coded_bytes) = coded(&prepared, &changed.bytes(database_path(1)).unwrap());
    Outcome { report, versions, changed_pages, coded_bytes }
}

/// How many pages differ from the prepared ones, and what keeping them takes.
fn coded(database: &Arc<PreparedDatabase>, file: &[u8]) -> (usize, usize) {
    let delta = PageDelta::new(database.clone());
    let mut generated = vec![0; database.page_size().bytes()];
    let (mut pages, mut bytes) = (0, 0);
    for (index, written) in file.chunks_exact(generated.len()).enumerate().skip(2) {
        database.page(index as u32 - 1, &mut generated);
        if generated != written {
            pages += 1;
            bytes += delta.encode(&generated, written).len();
        }
    }
    (pages, bytes)
}

#[test]
fn a_changed_prepared_database_is_still_a_database() {
    for size in PageSize::ALL {
        let outcome = change_at_random(size, 3000, 4000, 5);
        assert_eq!(outcome.report.findings, [], "{size}");
        assert!(outcome.report.records > outcome.versions.len() as u64);
        let average = outcome.coded_bytes / outcome.changed_pages;
        println!("{size}: {} pages changed, {average} bytes each", outcome.changed_pages);
        assert!(average <= 200, "{size}: {average} bytes for a changed page");
    }
}

#[test]
#[ignore = "slow: `make slow`"]
fn a_hundred_thousand_changes_leave_a_database() {
    let outcome = change_at_random(PageSize::KIB_32, 20_000, 100_000, 6);
    assert_eq!(outcome.report.findings, []);
    let average = outcome.coded_bytes / outcome.changed_pages;
    println!("{} pages changed, {average} bytes each", outcome.changed_pages);
    assert!(average <= 200, "{average} bytes for a changed page");
}

/// Maintenance believes what the sparse disk knows of its pages, and still finds the one that went
/// bad there, among sound and free ones.
#[test]
fn maintenance_finds_a_bad_page_of_a_prepared_database() {
    let size = PageSize::KIB_4;
    let plan = Plan { free_pages: 200, ..Plan::new(size, Extent::Records(500), 4) };
    let database = Arc::new(PreparedDatabase::new(plan).unwrap());
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 4, MemoryOptions::ram());
    disk.load_sparse(database_path(1), database.file_bytes(), PreparedContent::sparse(&database));
    let damaged = database.pages() / 3;
    disk.corrupt(database_path(1), size.offset_of(damaged), |bytes| bytes[100..120].fill(0x55));
    let setup = Setup { size, page_images: false, ..Setup::default() };
    run_on(&clock, &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let progress: Rc<MaintenanceProgress> = Rc::default();
        let options = MaintenanceOptions { read_bytes: 64 * 1024, pause_ns: 1_000_000 };
        let job = handle.spawn(maintain(instance.clone(), 1, options, progress.clone()));
        while progress.passes.get() == 0 {
            handle.sleep(1_000_000).await;
        }
        progress.stop.set(true);
        job.await.unwrap();
        let found = progress.damaged.take();
        assert!(found.iter().all(|found| *found == (damaged, PageDamage::Checksum)), "{found:?}");
        assert!(!found.is_empty());
        assert!(progress.pages_checked.get() >= u64::from(database.pages()));
        instance.close().await.unwrap();
    })
    .unwrap();
}
