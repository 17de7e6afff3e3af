//! Taking back: it never fails for want of room, is never half done and committed, and is not done
//! twice.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::btree::split::node_bytes_max;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Clock, Loss, MemoryOptions, Random};

use crate::support::*;

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Fills what space the shrunken rows left: other transactions insert rows between them and commit.
async fn fill_between(instance: &Rc<Instance>, field: &Field, random: &mut Random, rows: u64) {
    for number in 0..rows {
        let filler = instance.begin();
        let mut between = key(number * 10);
        between.extend([1 + random.below(200) as u8]);
        let data = vec![3; 1 + random.below(600) as usize];
        // The same key may come twice.
        let _ = filler.insert(field.data[0], &between, &data).await;
        filler.commit(Commit::Lazy).await.unwrap();
    }
}

/// Rows are made small, their neighbours take the room, and then the rows are wanted back at their
/// full size: as large as a page holds. Also by recovery, which takes back what a power cut left
/// unfinished.
fn rows_come_back(size: PageSize, seed: u64, key_tail_bytes: usize, by_recovery: bool) {
    let setup = Setup { size, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let mut random = Random::from_seed(seed).child("rows");
    let largest = node_bytes_max(size.bytes(), size.header_bytes());
    let wide = move |number: u64| {
        let mut wide = key(number * 10);
        wide.extend(vec![7; key_tail_bytes]);
        wide
    };
    let room = largest - 6 - wide(0).len();
    let rows: Vec<Vec<u8>> = (0..24u64)
        .map(|number| {
            vec![
                number as u8;
                room - random.below(3) as usize * random.below(room as u64 / 2) as usize
            ]
        })
        .collect();
    let (expected, working, cut) = (rows.clone(), setup.clone(), disk.clone());
    let field = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, seed).await.unwrap();
        let field = create_field(&instance, &working, 0, 0).await.unwrap();
        let first = instance.begin();
        for (number, row) in (0u64..).zip(&rows) {
            first.insert(field.data[0], &wide(number), row).await.unwrap();
        }
        first.commit(Commit::Durable).await.unwrap();
        let shrinking = instance.begin();
        for number in 0..24 {
            match random.below(3) {
                0 => shrinking.replace(field.data[0], &wide(number), b"").await.unwrap(),
                1 => shrinking.delete(field.data[0], &wide(number)).await.unwrap(),
                _ => {
                    // Small, large, deleted and made anew: every kind of way back.
                    shrinking.replace(field.data[0], &wide(number), b"small").await.unwrap();
                    shrinking.delete(field.data[0], &wide(number)).await.unwrap();
                    shrinking.insert(field.data[0], &wide(number), b"new").await.unwrap();
                }
            }
        }
        fill_between(&instance, &field, &mut random, 24).await;
        if by_recovery {
            let tip = instance.store().log.tip();
            instance.store().log.make_durable(tip).await.unwrap();
            std::mem::forget(shrinking);
        } else {
            shrinking.rollback().await.unwrap();
            instance.close().await.unwrap();
        }
        field
    })
    .unwrap();
    let found = cut.crash_image(Loss::Everything, &mut Random::from_seed(seed));
    run_on(&found.clock().clone(), &found, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &setup, seed + 1)
            .await
            .unwrap_or_else(|error| panic!("{size} seed {seed}: {error}"));
        assert_eq!(report.rolled_back, usize::from(by_recovery));
        let reading = instance.begin();
        for (number, row) in (0u64..).zip(&expected) {
            let back = reading.get(field.data[0], &wide(number)).await.unwrap();
            assert!(back.as_ref() == Some(row), "{size} seed {seed}: row {number}");
        }
        drop(reading);
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// A rollback that is refused for want of room poisons the instance, for nothing the user did
/// wrong.
#[test]
fn rows_as_large_as_a_page_come_back_whoever_took_their_room() {
    for size in PageSize::ALL {
        for seed in 0..6 {
            for key_tail_bytes in [0, 60, 200] {
                rows_come_back(size, seed, key_tail_bytes, false);
                rows_come_back(size, seed, key_tail_bytes, true);
            }
        }
    }
}

/// The row that is wanted back lies between keys that begin alike and others: its leaf is split for
/// it, and what had been short on it must fit the new page. Recovery stopped here, so that the
/// database could never be opened again.
#[test]
fn recovery_takes_back_a_row_between_keys_that_begin_otherwise() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let working = setup.clone();
    let tree = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let alike =
            |number: u64| [&b"m"[..], &[b'x'; 899], format!("{number:0<100}").as_bytes()].concat();
        let first = instance.begin();
        first.insert(tree, b"a", &[1; 3100]).await.unwrap();
        first.insert(tree, &alike(0), &[1]).await.unwrap();
        first.insert(tree, b"ma00", &[1; 900]).await.unwrap();
        for number in 1..=9 {
            first.insert(tree, format!("ma{number:02}").as_bytes(), &[1]).await.unwrap();
            first.insert(tree, &alike(number), &[1]).await.unwrap();
        }
        let last = [&b"m"[..], &[b'b'; 999]].concat();
        first.insert(tree, &last, &[1]).await.unwrap();
        first.commit(Commit::Durable).await.unwrap();
        let shrinking = instance.begin();
        shrinking.replace(tree, b"ma00", &[1]).await.unwrap();
        let other = instance.begin();
        other.insert(tree, b"ma10", &[1; 850]).await.unwrap();
        other.commit(Commit::Durable).await.unwrap();
        std::mem::forget(shrinking);
        tree
    })
    .unwrap();
    let found = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    run_on(&found.clock().clone(), &found, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &setup, 2).await.unwrap();
        assert_eq!(report.rolled_back, 1);
        let rows = dump(&instance, tree).await.unwrap();
        assert_eq!(rows.len(), 23);
        assert_eq!(rows[&b"ma00"[..]], [1; 900]);
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Polls a future once; `None` if that was not enough.
async fn only_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Rows 0..400 in the first tree and in the second, on a cache that holds neither.
async fn many_rows(instance: &Rc<Instance>, field: &Field) {
    let transaction = instance.begin();
    for tree in &field.data {
        for number in 0..400 {
            transaction.insert(*tree, &row_key(number), &[1; 500]).await.unwrap();
        }
    }
    transaction.commit(Commit::Durable).await.unwrap();
}

/// Half of what a transaction did after a savepoint is a state that nobody asked for.
#[test]
fn half_a_rollback_to_a_savepoint_cannot_be_committed() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let field = create_field(&instance, &setup, 0, 0).await.unwrap();
        many_rows(&instance, &field).await;
        let transaction = instance.begin();
        let savepoint = transaction.savepoint();
        for number in 0..400 {
            let tree = field.data[0];
            transaction.replace(tree, &row_key(number), &[2; 500]).await.unwrap();
        }
        let back = only_once(transaction.rollback_to(savepoint)).await;
        assert!(back.is_none(), "the way back needs pages that are no longer in memory");
        assert!(transaction.commit(Commit::Durable).await.is_err());
        let rows = dump(&instance, field.data[0]).await.unwrap();
        assert_eq!(rows.len(), 400);
        assert!(rows.values().all(|row| row[..] == [1; 500]));
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Recovery tells how many transactions it took back: those that had been taken back before the cut
/// are not among them, and do not hold the checkpoint.
#[test]
fn a_finished_rollback_is_not_taken_back_again() {
    let setup = Setup::default();
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    let working = setup.clone();
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, 2).await.unwrap();
        let field = create_field(&instance, &working, 0, 0).await.unwrap();
        let change = async |number| {
            let transaction = instance.begin();
            transaction.insert(field.data[0], &row_key(number), b"row").await.unwrap();
            transaction
        };
        change(1).await.rollback().await.unwrap();
        change(2).await.rollback().await.unwrap();
        std::mem::forget(change(3).await);
        let tip = instance.store().log.tip();
        instance.store().log.make_durable(tip).await.unwrap();
    })
    .unwrap();
    let found = disk.crash_image(Loss::Everything, &mut Random::from_seed(2));
    let report = run_on(&found.clock().clone(), &found, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &setup, 3).await.unwrap();
        instance.close().await.unwrap();
        report
    });
    assert_eq!(report.unwrap().rolled_back, 1);
}

/// A world with one tree, for a story of a few rows whose keys share nothing but their length.
fn few_rows<F: Future<Output = ()> + 'static>(
    size: PageSize,
    story: impl FnOnce(Rc<Instance>, Tree, plimsoll_io::Handle) -> F + 'static,
) {
    let setup = Setup { size, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 2, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let field = create_field(&instance, &setup, 0, 0).await.unwrap();
        story(instance.clone(), field.data[0], handle.clone()).await;
        instance.close().await.unwrap();
        let (instance, report) = open(&files, &handle, &setup, 3).await.unwrap();
        assert!(!report.recovered);
        dump(&instance, field.data[0]).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

fn long_key(first: u8) -> Vec<u8> {
    let mut key = vec![7; 200];
    key[0] = first;
    key
}

/// Data that makes a row with a long key the largest a page can hold, or a part of that.
fn data_of(size: PageSize, percent: usize) -> Vec<u8> {
    let largest = node_bytes_max(size.bytes(), size.header_bytes());
    vec![9; (largest - 6 - 200) * percent / 100]
}

/// A page keeps the key prefix it was made with. Where nothing of that is left on it, the prefix
/// must not take the room of a row that would fit without.
#[test]
fn the_largest_row_fits_a_page_that_another_row_has_left() {
    for size in PageSize::ALL {
        few_rows(size, move |instance, tree, _| async move {
            let first = instance.begin();
            first.insert(tree, &long_key(1), &data_of(size, 100)).await.unwrap();
            first.insert(tree, &long_key(5), &data_of(size, 100)).await.unwrap();
            first.commit(Commit::Lazy).await.unwrap();
            let second = instance.begin();
            second.delete(tree, &long_key(5)).await.unwrap();
            second.commit(Commit::Lazy).await.unwrap();
            let third = instance.begin();
            third.insert(tree, &long_key(7), &data_of(size, 100)).await.unwrap();
            third.commit(Commit::Lazy).await.unwrap();
            assert_eq!(dump(&instance, tree).await.unwrap().len(), 2);
        });
    }
}

/// The same for a row that wants to grow back: while it was small, it was moved to a page made for
/// a neighbour, and the neighbour has gone.
#[test]
fn the_largest_row_comes_back_to_a_page_made_for_another() {
    for size in PageSize::ALL {
        few_rows(size, move |instance, tree, handle| async move {
            let first = instance.begin();
            first.insert(tree, &long_key(1), &data_of(size, 100)).await.unwrap();
            first.insert(tree, &long_key(7), &data_of(size, 100)).await.unwrap();
            first.commit(Commit::Lazy).await.unwrap();
            let shrinking = instance.begin();
            shrinking.replace(tree, &long_key(7), b"").await.unwrap();
            let neighbours = instance.begin();
            neighbours.insert(tree, &long_key(6), &data_of(size, 35)).await.unwrap();
            neighbours.insert(tree, &long_key(5), &data_of(size, 75)).await.unwrap();
            neighbours.commit(Commit::Lazy).await.unwrap();
            let leaving = instance.begin();
            leaving.delete(tree, &long_key(6)).await.unwrap();
            leaving.commit(Commit::Durable).await.unwrap();
            handle.sleep(plimsoll_io::NANOS_PER_SECOND).await;
            shrinking.rollback().await.unwrap();
            let rows = dump(&instance, tree).await.unwrap();
            assert!(rows[&long_key(7)] == data_of(size, 100));
            assert_eq!(rows.len(), 3);
        });
    }
}

/// A transaction makes rows shorter, others use the room and commit, and the process is killed. To
/// give the rows their data back, recovery splits a page whose keys are longer than a generation of
/// the log when they are written whole: it ended over that whenever the databases were opened.
#[test]
fn what_is_taken_back_may_split_a_page_of_long_keys_that_begin_alike() {
    let setup = Setup { size: PageSize::KIB_32, cache_frames: 256, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let wide = |number: u64| [&[b'k'; 1_992][..], &key(number)].concat();
    let shrunk = 400..760;
    let mut expected: BTreeMap<_, _> =
        (0..900).map(|number| (wide(number * 16), vec![1; 60])).collect();
    let (working, first) = (setup.clone(), expected.clone());
    let between = shrunk.clone().flat_map(|number| [4, 8].map(|small| number * 16 + small));
    expected.extend(between.clone().map(|number| (wide(number), Vec::new())));
    let tree = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &working).await.unwrap();
        let (instance, _) = open(&files, &handle, &working, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        // In the order of keys, so that leaves are filled to their end.
        for (key, data) in &first {
            let transaction = instance.begin();
            transaction.insert(tree, key, data).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        let unfinished = instance.begin();
        for number in shrunk {
            unfinished.replace(tree, &wide(number * 16), &[]).await.unwrap();
        }
        let filling = instance.begin();
        for number in between {
            filling.insert(tree, &wide(number), &[]).await.unwrap();
        }
        filling.commit(Commit::Durable).await.unwrap();
        std::mem::forget(unfinished);
        instance.abandon().await.unwrap();
        tree
    })
    .unwrap();
    disk.power_cut();
    let disk = disk.crash_image(Loss::Everything, &mut Random::from_seed(7));
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, report) = open(&files, &handle, &setup, 2).await.unwrap();
        assert!(report.recovered);
        assert!(dump(&instance, tree).await.unwrap() == expected, "not what was committed");
        instance.close().await.unwrap();
    })
    .unwrap();
}
