//! The purge visits what was deleted and nothing else, keeps up beside readers that stay, and does
//! not hold a close up.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::catalog::{Place, system};
use plimsoll_engine::deep::{DeepOptions, Finding, KnownTree, verify_trees};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::page::{PageView, page_flags};
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Files, Handle, Latency, LatencyPlan, MemoryDisk, MemoryOptions, NANOS_PER_SECOND,
    Purpose, Random,
};

use crate::support::*;

const ROWS: u64 = 2_000;

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn reads_of(ns: u64) -> MemoryOptions {
    let latency = LatencyPlan::of(Latency::Constant(20_000));
    MemoryOptions {
        latency: latency.with_purpose(Purpose::DatabaseRead, Latency::Constant(ns)),
        ..MemoryOptions::default()
    }
}

/// Tells a story on a tree of `ROWS` rows, most of which no cache holds; answers how many nodes
/// that are flagged deleted the file holds of the tree after a clean close.
fn with_rows<F: Future<Output = ()> + 'static>(
    memory: MemoryOptions,
    version_bytes_max: usize,
    story: impl FnOnce(Rc<Instance>, Tree, Handle, Files) -> F + 'static,
) -> usize {
    let setup = Setup { cache_frames: 80, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 10, memory);
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let mut options = options(&setup);
        options.version_store_bytes_max = version_bytes_max;
        let mut random = Random::from_seed(1);
        let opened = Instance::open(files.clone(), handle.clone(), options, &mut random);
        let (instance, _) = opened.await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.insert(tree, &key(number), &[1; 300]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        handle.sleep(5 * NANOS_PER_SECOND).await;
        story(instance.clone(), tree, handle.clone(), files.clone()).await;
        instance.close().await.unwrap();
        check_tree(&files, &handle, tree).await;
    })
    .unwrap();
    deleted_nodes(&disk)
}

/// Fails unless the tree, which no catalog lists, is sound.
async fn check_tree(files: &Files, handle: &Handle, tree: Tree) {
    let known = KnownTree {
        place: Place { object: tree.object, root: tree.root },
        parent: system::DATABASE_ROOT,
        kind: tree.kind,
    };
    let (trees, options) = ([KnownTree::DATABASE, known], DeepOptions::default());
    let report = verify_trees(files, handle, database_path(1), &trees, options);
    let mut findings = report.await.unwrap().findings;
    // The catalog's own trees are not among those that were looked at.
    findings.retain(|finding| !matches!(finding, Finding::Leaked { .. }));
    assert!(findings.is_empty(), "{findings:#?}");
}

fn deleted_nodes(disk: &MemoryDisk) -> usize {
    let bytes = disk.bytes(database_path(1)).unwrap();
    let size = PageSize::KIB_4;
    let mut deleted = 0;
    for page in bytes.chunks_exact(size.bytes()).skip(2) {
        let view = PageView::new(page, size);
        if view.object() == 50 && view.is_leaf() && view.flags() & page_flags::SPACE == 0 {
            let lines = 0..view.lines();
            deleted += lines.filter(|line| view.node(*line).unwrap().is_deleted()).count();
        }
    }
    deleted
}

/// Every row that was changed was visited once more after its commit: a third of the writes, and a
/// fifth of the reads, of a load of replacements.
#[test]
fn what_was_only_inserted_or_replaced_is_not_visited_again() {
    with_rows(MemoryOptions::default(), 16 << 20, |instance, tree, handle, _| async move {
        let transaction = instance.begin();
        for number in 0..ROWS / 2 {
            let key = key(number * 1_237 % ROWS);
            transaction.replace(tree, &key, &[2; 300]).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
        let before = instance.store().cache.statistics();
        handle.sleep(5 * NANOS_PER_SECOND).await;
        let after = instance.store().cache.statistics();
        let misses = after.misses - before.misses;
        assert!(misses < 5, "{misses} pages were read while nobody was at work");
    });
}

/// A row counts as what the last change of its transaction made of it.
#[test]
fn whatever_led_to_a_deletion_the_node_goes() {
    // One way at a time: a visit for one row removes what else is deleted on its leaf.
    for way in 0..5 {
        let deleted = delete_all(way);
        assert_eq!(deleted, 0, "way {way}");
    }
}

fn delete_all(way: u64) -> usize {
    with_rows(MemoryOptions::default(), 16 << 20, move |instance, tree, _, _| async move {
        for number in 0..ROWS {
            let (transaction, key) = (instance.begin(), key(number));
            match way {
                0 => transaction.delete(tree, &key).await.unwrap(),
                1 => {
                    transaction.replace(tree, &key, &[2; 200]).await.unwrap();
                    transaction.delete(tree, &key).await.unwrap();
                }
                2 => {
                    transaction.delete(tree, &key).await.unwrap();
                    transaction.insert(tree, &key, &[3; 100]).await.unwrap();
                    transaction.delete(tree, &key).await.unwrap();
                }
                3 => {
                    let savepoint = transaction.savepoint();
                    transaction.insert(tree, &[&key[..], b"x"].concat(), &[4; 10]).await.unwrap();
                    transaction.rollback_to(savepoint).await.unwrap();
                    transaction.delete(tree, &key).await.unwrap();
                }
                _ => {
                    transaction.delete(tree, &key).await.unwrap();
                    transaction.commit(Commit::Lazy).await.unwrap();
                    let transaction = instance.begin();
                    transaction.insert(tree, &key, &[5; 100]).await.unwrap();
                    transaction.rollback().await.unwrap();
                    continue;
                }
            }
            transaction.commit(Commit::Lazy).await.unwrap();
        }
    })
}

/// A reader that stays keeps versions, up to their limit, and nothing else; when it ends,
/// everything goes soon.
#[test]
fn beside_an_old_reader_memory_is_bounded_and_the_purge_catches_up() {
    const VERSION_BYTES_MAX: usize = 200_000;
    let story = |instance: Rc<Instance>, tree: Tree, handle: Handle, _: Files| async move {
        let reader = instance.begin();
        reader.get(tree, &key(1)).await.unwrap();
        let stop = Rc::new(Cell::new(false));
        let session = |number: u64| {
            let (instance, stop, sleeper) = (instance.clone(), stop.clone(), handle.clone());
            let mut random = Random::from_seed(number);
            handle.spawn(async move {
                while !stop.get() {
                    let transaction = instance.begin();
                    let key = key(random.below(ROWS));
                    let changed = match random.below(3) {
                        0 => transaction.delete(tree, &key).await,
                        1 => transaction.insert(tree, &key, &[6; 300]).await,
                        _ => transaction.replace(tree, &key, &[7; 300]).await,
                    };
                    let versions = instance.store().versions.borrow().bytes();
                    assert!(versions < VERSION_BYTES_MAX + 100_000, "{versions} bytes of versions");
                    match changed {
                        Ok(()) => transaction.commit(Commit::Lazy).await.unwrap(),
                        Err(EngineError::VersionStoreFull { .. }) => {
                            transaction.rollback().await.unwrap();
                            sleeper.sleep(NANOS_PER_SECOND / 10).await;
                        }
                        Err(_) => transaction.rollback().await.unwrap(),
                    }
                }
            })
        };
        let sessions: Vec<_> = (0..16).map(session).collect();
        handle.sleep(10 * NANOS_PER_SECOND).await;
        let versions = instance.store().versions.borrow().bytes();
        assert!(
            versions >= VERSION_BYTES_MAX,
            "{versions} bytes: the reader was to fill the store"
        );
        reader.rollback().await.unwrap();
        handle.sleep(10 * NANOS_PER_SECOND).await;
        stop.set(true);
        for session in sessions {
            session.await;
        }
        assert_eq!(instance.store().versions.borrow().bytes(), 0);
        handle.sleep(2 * NANOS_PER_SECOND).await;
        let waiting = instance.store().purge.len();
        assert_eq!(waiting, 0, "rows wait for the purge though nobody is at work");
    };
    let deleted = with_rows(reads_of(2_000_000), VERSION_BYTES_MAX, story);
    assert_eq!(deleted, 0);
}

/// Closing does not go on for as long as there is something to purge: what is left is invisible and
/// does no harm.
#[test]
fn closing_does_not_wait_for_a_long_purge() {
    let took = Rc::new(Cell::new(0));
    let noted = took.clone();
    let setup = Setup { cache_frames: 80, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 10, reads_of(100_000_000));
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let fill = instance.begin();
        for number in 0..ROWS {
            fill.insert(tree, &key(number), &[1; 1_000]).await.unwrap();
        }
        fill.commit(Commit::Lazy).await.unwrap();
        let transaction = instance.begin();
        for number in 0..ROWS {
            transaction.delete(tree, &key(number)).await.unwrap();
        }
        transaction.commit(Commit::Lazy).await.unwrap();
        let began = handle.now();
        instance.close().await.unwrap();
        noted.set(handle.now() - began);
        check_tree(&files, &handle, tree).await;
        let (instance, report) = open(&files, &handle, &setup, 2).await.unwrap();
        assert!(!report.recovered && dump(&instance, tree).await.unwrap().is_empty());
        let again = instance.begin();
        for number in 0..ROWS {
            again.insert(tree, &key(number), &[2; 900]).await.unwrap();
        }
        again.commit(Commit::Lazy).await.unwrap();
        assert_eq!(dump(&instance, tree).await.unwrap().len(), ROWS as usize);
        instance.close().await.unwrap();
    })
    .unwrap();
    let seconds = took.get() / NANOS_PER_SECOND;
    assert!(seconds < 15, "closing took {seconds} s");
}

/// Trees have the numbers that their makers give them, and tables take the next: what a table was
/// before it was dropped says nothing of a tree of the same number.
#[test]
fn a_tree_is_purged_whatever_table_of_its_number_is_dropped() {
    let left = with_rows(MemoryOptions::default(), 16 << 20, |instance, tree, _, _| async move {
        loop {
            let table = instance.create_table(1, message_table("Short-lived")).await.unwrap();
            let objects: Vec<u32> = table.placed().places().iter().map(|at| at.object).collect();
            drop(table);
            instance.drop_table(1, "Short-lived").await.unwrap();
            if objects.contains(&tree.object) {
                break;
            }
        }
        let transaction = instance.begin();
        for number in 0..ROWS / 2 {
            transaction.delete(tree, &key(number)).await.unwrap();
        }
        transaction.commit(Commit::Durable).await.unwrap();
    });
    assert_eq!(left, 0, "deleted rows are left");
}
