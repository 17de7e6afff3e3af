//! What the cache keeps and when it writes: pages in use survive a scan, free frames are kept
//! between two thresholds, and writing becomes urgent when the checkpoint lags.
//!
//! These habits make the I/O that a storage is qualified with. A cache that forgot its habits would
//! still pass every test of correctness.

use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::cache::{CacheLimits, CacheStatistics};
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Files, Handle, Latency, LatencyPlan, MemoryOptions, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, Purpose, Random,
};

const FRAMES: u64 = 200;
/// Rows of 1,800 bytes, two to a page: a tree of four times the cache.
const ROWS: u64 = 1_600;

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn with_instance<F: Future<Output = ()> + 'static>(
    change: impl FnOnce(&mut InstanceOptions),
    latency_ns: u64,
    story: impl FnOnce(Rc<Instance>, Tree, Handle) -> F + 'static,
) {
    let setup = Setup { cache_frames: FRAMES, page_images: false, ..Setup::default() };
    let mut wanted = options(&setup);
    change(&mut wanted);
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(latency_ns)),
        ..MemoryOptions::default()
    };
    let disk = new_disk(&clock, 6, memory);
    run_on(&clock, &disk, move |files: Files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let mut random = Random::from_seed(6);
        let opened = Instance::open(files, handle.clone(), wanted, &mut random).await;
        let (instance, _) = opened.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.insert(tree, &key(number), &[7; 1_800]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        story(instance.clone(), tree, handle).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

fn statistics(instance: &Instance) -> CacheStatistics {
    instance.store().cache.statistics()
}

async fn read(instance: &Instance, tree: Tree, numbers: impl Iterator<Item = u64>) {
    let transaction = instance.begin();
    for number in numbers {
        assert!(transaction.get(tree, &key(number)).await.unwrap().is_some());
    }
    transaction.rollback().await.unwrap();
}

/// A scan of everything reads each page once; with plain least-recently-used it would push out the
/// pages that everybody uses.
#[test]
fn pages_touched_again_survive_a_scan() {
    with_instance(
        |_| {},
        NANOS_PER_MILLISECOND,
        |instance, tree, handle| async move {
            let hot = || (0..80).step_by(2);
            // Pages touched once come and go for a while, so that the cache knows how long they
            // stay.
            read(&instance, tree, (0..ROWS).step_by(2)).await;
            // Far enough apart to count as several touches.
            for _ in 0..4 {
                handle.sleep(150 * NANOS_PER_MILLISECOND).await;
                read(&instance, tree, hot()).await;
            }
            // As many pages as would fill the cache almost once more.
            let transaction = instance.begin();
            let mut cursor =
                Cursor::new(&transaction, tree, KeyRange::prefix(b"0"), Direction::Backward);
            for _ in 0..(FRAMES * 2 - 60) {
                cursor.next().await.unwrap().expect("the tree is longer");
            }
            transaction.rollback().await.unwrap();
            let before = statistics(&instance).misses;
            read(&instance, tree, hot()).await;
            let again = statistics(&instance).misses - before;
            assert!(again <= 4, "{again} of 40 pages in use had to be read again after a scan");
        },
    );
}

/// Cleaning starts below 1 % of free frames and stops at 2 %, of the maximum and not of what is in
/// use; a cache too small for that keeps a few.
#[test]
fn free_frames_are_kept_between_one_and_two_per_cent() {
    let size = PageSize::KIB_32.bytes();
    let limits = CacheLimits::from_bytes(64 << 20, 512 << 20, size);
    let megabytes = |frames: usize| frames as f64 * size as f64 / f64::from(1 << 20);
    assert_eq!(limits.frames_max, 16_384);
    assert!((megabytes(limits.available_start) - 5.1).abs() < 0.05, "{limits:?}");
    assert!((megabytes(limits.available_stop) - 10.2).abs() < 0.05, "{limits:?}");
    with_instance(
        |_| {},
        NANOS_PER_MILLISECOND,
        |instance, tree, handle| async move {
            let cache = instance.store().cache.clone();
            read(&instance, tree, 0..ROWS).await;
            handle.sleep(NANOS_PER_SECOND).await;
            let (limits, available) = (cache.limits(), cache.available());
            assert_eq!((limits.available_start, limits.available_stop), (2, 4));
            assert!(
                (limits.available_start..=2 * limits.available_stop).contains(&available),
                "{available} frames are free"
            );
        },
    );
}

/// The checkpoint must not lag behind for ever: when work makes log faster than pages are written
/// for it, writing becomes urgent and catches up.
#[test]
fn writing_becomes_urgent_when_the_checkpoint_lags() {
    let depth_generations = 2u32;
    let change = move |options: &mut InstanceOptions| {
        options.checkpoint_depth_bytes = u64::from(depth_generations) << 20;
        // Large enough that nothing is written for want of frames.
        options.cache_bytes_max = 4_000 * 4_096;
        options.writes_outstanding_max = 32;
    };
    with_instance(change, NANOS_PER_MILLISECOND, move |instance, tree, handle| async move {
        let mut random = Random::from_seed(9);
        let (mut lag_max, mut sessions) = (0, Vec::new());
        for session in 0..8u64 {
            let (instance, mut random) = (instance.clone(), random.child(&format!("{session}")));
            sessions.push(handle.spawn(async move {
                for _ in 0..500 {
                    let transaction = instance.begin();
                    let number = random.below(ROWS / 8) * 8 + session;
                    let mut row = vec![0; 1_800];
                    random.fill(&mut row);
                    transaction.replace(tree, &key(number), &row).await.unwrap();
                    transaction.commit(Commit::Durable).await.unwrap();
                }
            }));
        }
        while !sessions.iter().all(plimsoll_io::JoinHandle::is_finished) {
            handle.sleep(20 * NANOS_PER_MILLISECOND + random.below(1_000)).await;
            let oldest = instance.store().cache.oldest_dirty();
            let tip = instance.store().log.tip().generation;
            lag_max = lag_max.max(oldest.map_or(0, |oldest| tip - oldest.generation));
        }
        assert!(instance.store().log.tip().generation > 8, "hardly any log was made");
        assert!(statistics(&instance).urgent_passes > 0, "nothing was ever urgent");
        assert!(
            lag_max <= 2 * depth_generations + 1,
            "the oldest change not written was {lag_max} generations old"
        );
    });
}

/// Who holds a page may be about to change it. Were it dropped and read again meanwhile, there
/// would be two of it, and one of the changes would be lost.
#[test]
fn a_page_that_somebody_holds_is_not_dropped() {
    with_instance(
        |_| {},
        NANOS_PER_MILLISECOND,
        |instance, tree, _| async move {
            let (cache, database) = (instance.store().cache.clone(), instance.database(1).unwrap());
            let page = tree.root + 40;
            let held = cache.load(&database, page, Purpose::DatabaseRead).await.unwrap();
            let before = statistics(&instance).evictions;
            read(&instance, tree, (0..ROWS).step_by(2)).await;
            read(&instance, tree, (0..ROWS).step_by(2)).await;
            let dropped = statistics(&instance).evictions - before;
            assert!(dropped > 2 * FRAMES, "only {dropped} pages were dropped");
            let still = cache.peek(held.key()).expect("the page is still there");
            assert!(Rc::ptr_eq(&held, &still), "another page has taken its place");
        },
    );
}

/// Whoever reads a page of a tree that is gone may be slow. If its space is another tree's by then,
/// what was read says nothing about the page: least of all that it is damaged.
#[test]
fn a_page_made_while_it_is_read_is_not_what_was_read() {
    with_instance(
        |_| {},
        NANOS_PER_MILLISECOND,
        |instance, _, handle| async move {
            let (cache, database) = (instance.store().cache.clone(), instance.database(1).unwrap());
            let before = instance.create_tree(1, 1, 51, 0, 16).await.unwrap();
            let page = before.root + 16;
            let (reader, file) = (cache.clone(), database.clone());
            let reading =
                handle.spawn(async move { reader.load(&file, page, Purpose::DatabaseRead).await });
            handle.yield_now().await;
            let made = instance.create_tree(1, 1, 52, 0, 16).await.unwrap();
            assert_eq!((made.root, reading.is_finished()), (page, false), "nobody was slow");
            let read = reading.await.unwrap_or_else(|error| panic!("{error}"));
            let there = cache.peek(read.key()).expect("it was just made");
            assert!(Rc::ptr_eq(&read, &there), "there are two of the page");
            assert_eq!(database.statistics().refused, 0);
        },
    );
}
