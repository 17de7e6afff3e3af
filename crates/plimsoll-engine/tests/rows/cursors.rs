//! Cursors within bounds, either way: what they give is what a sorted map gives, whoever changes
//! the tree meanwhile.
//!
//! A scan of a mail folder begins and ends somewhere in the middle of an index, and the transaction
//! that walks it changes what it walks over: marks messages as read, deletes some, files others. It
//! must see its own changes and nobody else's.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::btree::{Tree, find};
use plimsoll_engine::cursor::{Cursor, Direction, KeyRange};
use plimsoll_engine::edit::Edit;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::store::Progress;
use plimsoll_engine::table::Selection;
use plimsoll_engine::transaction::{Commit, Transaction};
use plimsoll_io::{Clock, MemoryOptions, NANOS_PER_MILLISECOND, Random};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys are drawn from so many; half of them exist at first.
const KEYS: u64 = 1_200;

fn key(number: u64) -> Vec<u8> {
    // Of different lengths, some the beginning of others.
    format!("{:04}", number / 3)
        .into_bytes()
        .into_iter()
        .chain(vec![b'+'; number as usize % 3])
        .collect()
}

fn with_rows<F: Future<Output = ()> + 'static>(
    seed: u64,
    story: impl FnOnce(Rc<Instance>, Tree, Rows, Random) -> F + 'static,
) {
    // A cache smaller than the tree: a cursor waits for pages in the middle of a look.
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let (mut random, mut rows) = (Random::from_seed(seed), Rows::new());
        let transaction = instance.begin();
        for number in (0..KEYS).filter(|number| number % 2 == 0) {
            let data = vec![number as u8; 1 + random.below(600) as usize];
            transaction.insert(tree, &key(number), &data).await.unwrap();
            rows.insert(key(number), data);
        }
        transaction.commit(Commit::Lazy).await.unwrap();
        story(instance.clone(), tree, rows, random).await;
        instance.close().await.unwrap();
    })
    .unwrap();
}

fn bound(random: &mut Random) -> Bound<Vec<u8>> {
    let key = key(random.below(KEYS));
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn range(random: &mut Random) -> KeyRange {
    KeyRange { low: bound(random), high: bound(random) }
}

/// What a map gives for a range; one that ends before it begins is empty.
fn expected(rows: &Rows, range: &KeyRange, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let above = |key: &[u8]| match &range.low {
        Bound::Included(low) => key >= &low[..],
        Bound::Excluded(low) => key > &low[..],
        Bound::Unbounded => true,
    };
    let below = |key: &[u8]| match &range.high {
        Bound::Included(high) => key <= &high[..],
        Bound::Excluded(high) => key < &high[..],
        Bound::Unbounded => true,
    };
    let inside = rows.iter().filter(|(key, _)| above(key) && below(key));
    let mut inside: Vec<_> = inside.map(|(key, data)| (key.clone(), data.clone())).collect();
    if direction == Direction::Backward {
        inside.reverse();
    }
    inside
}

/// Changes a random row, or makes one, and the map with it.
async fn change(transaction: &Transaction, tree: Tree, rows: &mut Rows, random: &mut Random) {
    change_row(transaction, tree, random.below(KEYS), rows, random).await;
}

async fn change_row(
    transaction: &Transaction,
    tree: Tree,
    number: u64,
    rows: &mut Rows,
    random: &mut Random,
) {
    let key = key(number);
    let data = vec![b'!'; 1 + random.below(600) as usize];
    let is_there = rows.contains_key(&key);
    if is_there && random.chance(0.5) {
        transaction.delete(tree, &key).await.unwrap();
        rows.remove(&key);
        return;
    }
    if is_there {
        transaction.replace(tree, &key, &data).await.unwrap();
    } else {
        transaction.insert(tree, &key, &data).await.unwrap();
    }
    rows.insert(key, data);
}

#[test]
fn every_range_gives_what_a_sorted_map_gives_both_ways() {
    with_rows(1, |instance, tree, rows, mut random| async move {
        let mut given = 0;
        for _ in 0..120 {
            let range = range(&mut random);
            for direction in [Direction::Forward, Direction::Backward] {
                let transaction = instance.begin();
                let mut cursor = Cursor::new(&transaction, tree, range.clone(), direction);
                let mut found = Vec::new();
                while let Some(row) = cursor.next().await.unwrap() {
                    found.push(row);
                }
                assert!(found == expected(&rows, &range, direction), "{range:?} {direction:?}");
                given += found.len();
            }
        }
        assert!(given > 10_000, "{given} rows: the ranges were empty");
    });
}

/// Rows that a cursor has looked at and not given yet were given as they had been: rows deleted by
/// the same transaction came back. One that had found nothing yet never looked again.
#[test]
fn a_cursor_sees_what_its_own_transaction_changes_ahead_of_it() {
    with_rows(2, |instance, tree, rows, mut random| async move {
        for direction in [Direction::Forward, Direction::Backward].into_iter().cycle().take(60) {
            let (transaction, mut rows) = (instance.begin(), rows.clone());
            let first = random.below(KEYS);
            // What is left of the walk. Short ranges are often empty at first.
            let mut ahead = match random.below(4) {
                0 => KeyRange::all(),
                1 => range(&mut random),
                _ => {
                    let (low, high) = (key(first), key(first + 1 + random.below(3)));
                    KeyRange { low: Bound::Included(low), high: Bound::Excluded(high) }
                }
            };
            let mut cursor = Cursor::new(&transaction, tree, ahead.clone(), direction);
            let mut ends = 0;
            while ends < 12 {
                let found = cursor.next().await.unwrap();
                let next = expected(&rows, &ahead, direction).into_iter().next();
                assert!(found == next, "{direction:?}: {ahead:?}");
                match (found, direction) {
                    (Some((key, _)), Direction::Forward) => ahead.low = Bound::Excluded(key),
                    (Some((key, _)), Direction::Backward) => ahead.high = Bound::Excluded(key),
                    (None, _) => ends += 1,
                }
                let savepoint = (transaction.savepoint(), rows.clone());
                for _ in 0..random.below(3) {
                    if ends == 0 {
                        change(&transaction, tree, &mut rows, &mut random).await;
                    } else {
                        let near = first + random.below(3);
                        change_row(&transaction, tree, near, &mut rows, &mut random).await;
                    }
                }
                if random.chance(0.2) {
                    transaction.rollback_to(savepoint.0).await.unwrap();
                    rows = savepoint.1;
                }
            }
            transaction.rollback().await.unwrap();
        }
    });
}

#[test]
fn a_cursor_that_has_found_nothing_sees_what_its_transaction_puts_before_it() {
    with_rows(4, |instance, tree, _, _| async move {
        let transaction = instance.begin();
        for direction in [Direction::Forward, Direction::Backward] {
            let range = KeyRange { low: Bound::Excluded(b"x".to_vec()), high: Bound::Unbounded };
            let mut cursor = Cursor::new(&transaction, tree, range, direction);
            assert_eq!(cursor.next().await.unwrap(), None);
            transaction.insert(tree, b"y", b"new").await.unwrap();
            let row = (b"y".to_vec(), b"new".to_vec());
            assert_eq!(cursor.next().await.unwrap(), Some(row), "{direction:?}");
            assert_eq!(cursor.next().await.unwrap(), None);
            transaction.delete(tree, b"y").await.unwrap();
        }
        transaction.rollback().await.unwrap();
    });
}

/// Whoever walks a tree walks the state of the moment his transaction began, however many others
/// commit and however the tree splits meanwhile.
#[test]
fn a_cursor_sees_nothing_that_others_commit_meanwhile() {
    with_rows(3, |instance, tree, rows, mut random| async move {
        for direction in [Direction::Forward, Direction::Backward] {
            let transaction = instance.begin();
            let mut present: Rows = {
                let reader = instance.begin();
                let mut cursor = Cursor::new(&reader, tree, KeyRange::all(), Direction::Forward);
                let mut rows = Rows::new();
                while let Some((key, data)) = cursor.next().await.unwrap() {
                    rows.insert(key, data);
                }
                rows
            };
            assert!(direction == Direction::Backward || present == rows);
            let before = expected(&present, &KeyRange::all(), direction);
            let mut cursor = Cursor::new(&transaction, tree, KeyRange::all(), direction);
            let mut found = Vec::new();
            while let Some(row) = cursor.next().await.unwrap() {
                found.push(row);
                let other = instance.begin();
                change(&other, tree, &mut present, &mut random).await;
                other.commit(Commit::Lazy).await.unwrap();
            }
            assert!(found == before, "{direction:?}");
        }
    });
}

/// The most frames that are used from when they are no more than the cache has, until `is_over`.
async fn frames_highest(instance: Rc<Instance>, is_over: Rc<Cell<bool>>) -> usize {
    let (store, mut highest) = (instance.store().clone(), None);
    while !is_over.get() {
        let used = store.cache.frames_used();
        if used <= store.cache.limits().frames_max || highest.is_some() {
            highest = highest.max(Some(used));
        }
        store.handle.sleep(NANOS_PER_MILLISECOND / 100).await;
    }
    highest.expect("the cache went back to its maximum")
}

/// Why it matters: leaves that are emptied next to a reader lie on its way or no longer do when it
/// has waited for one. Who keeps each in memory that it has ever waited for fills the cache, and
/// goes far beyond it in its turn.
#[test]
fn more_empty_leaves_than_the_cache_holds_are_walked_past_while_they_are_unlinked() {
    with_rows(9, |instance, tree, rows, _| async move {
        let transaction = instance.begin();
        for number in 0..2_000 {
            let between = format!("0200-{number:05}").into_bytes();
            transaction.insert(tree, &between, &[7; 900]).await.unwrap();
        }
        // The purge begins now, and goes on next to the cursors.
        transaction.rollback().await.unwrap();
        let is_over = Rc::new(Cell::new(false));
        let sampled = frames_highest(instance.clone(), is_over.clone());
        let sampled = instance.store().handle.spawn(sampled);
        let transaction = instance.begin();
        let sorted: Vec<_> = rows.clone().into_iter().collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = Cursor::new(&transaction, tree, KeyRange::all(), direction);
            let mut found = Vec::new();
            while let Some(row) = cursor.next().await.unwrap() {
                found.push(row);
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert_eq!(found, sorted, "{direction:?}");
        }
        let within = KeyRange {
            low: Bound::Included(b"0200-00100".to_vec()),
            high: Bound::Excluded(b"0200-01900".to_vec()),
        };
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = Cursor::new(&transaction, tree, within.clone(), direction);
            assert_eq!(cursor.next().await.unwrap(), None, "{direction:?}");
        }
        is_over.set(true);
        let highest = sampled.await;
        assert!(highest <= 64 + 32, "{highest} frames of 64 were used");
        transaction.rollback().await.unwrap();
    });
}

/// A number that came from a caller ends in an error, not in the end of every session.
#[test]
fn an_index_that_is_not_there_is_refused() {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 7, MemoryOptions::default());
    run_on(&clock, &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 7).await.unwrap();
        let table = instance.create_table(1, message_table("Messages")).await.unwrap();
        let transaction = instance.begin();
        for index in [2, 99, usize::MAX] {
            let mut scan = table.scan(&transaction, index, KeyRange::all(), Direction::Forward);
            let mut selected = table.select(&transaction, Selection::of(&[1]).through(index));
            let scanned = scan.next().await.map(drop);
            let read = selected.next().await.map(drop);
            selected.seek(b"key");
            let sought = selected.next().await.map(drop);
            let counted = table.count(&transaction, index, KeyRange::all(), 9).await.map(drop);
            let prefix = table.index_prefix(index, &[None]).map(drop);
            let tree = table.index_tree(index).map(drop);
            for result in [scanned, read, sought, counted, prefix, tree] {
                let is_refused = matches!(result, Err(EngineError::NoSuchObject { .. }));
                assert!(is_refused, "index {index}: {result:?}");
            }
        }
        drop(transaction);
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Takes the rows of some letters away and leaves their leaves, as a process does that ends before
/// it can unlink them.
async fn empty_leaves(instance: &Instance, tree: Tree, letters: &[u8]) {
    let database = instance.database(1).unwrap();
    for letter in letters {
        let emptied = instance.store().change(&database, |batch| {
            let (path, line) = find(batch, &tree, &[*letter])?;
            let line = line.expect("the row is there") as u16;
            batch.edit(path.leaf, Edit::Remove { line })?;
            Ok(Progress::Done(()))
        });
        emptied.await.unwrap();
    }
}

/// One large row on each leaf, so that every key is where a leaf begins.
async fn rows_on_leaves_of_their_own(instance: &Instance, tree: Tree) -> Rows {
    let transaction = instance.begin();
    let mut rows = Rows::new();
    for letter in b'a'..=b'z' {
        transaction.insert(tree, &[letter], &[letter; 3_000]).await.unwrap();
        rows.insert(vec![letter], vec![letter; 3_000]);
    }
    transaction.commit(Commit::Lazy).await.unwrap();
    rows
}

/// A cursor that sets out from the key where the last of several empty leaves begins was told of a
/// damaged page.
#[test]
fn a_cursor_goes_backward_from_where_an_empty_leaf_begins() {
    with_rows(5, |instance, _, _, _| async move {
        let tree = instance.create_tree(1, 1, 51, 0, 3).await.unwrap();
        rows_on_leaves_of_their_own(&instance, tree).await;
        empty_leaves(&instance, tree, b"efgh").await;
        let transaction = instance.begin();
        let range = KeyRange { low: Bound::Unbounded, high: Bound::Included(b"h".to_vec()) };
        let mut cursor = Cursor::new(&transaction, tree, range, Direction::Backward);
        let row = cursor.next().await.unwrap();
        assert_eq!(row.map(|(key, _)| key), Some(b"d".to_vec()));
    });
}

#[test]
fn ranges_over_empty_leaves_give_what_a_sorted_map_gives_both_ways() {
    for seed in first_seed(6)..first_seed(12) {
        with_rows(seed, |instance, _, _, mut random| async move {
            let tree = instance.create_tree(1, 1, 51, 0, 3).await.unwrap();
            let mut rows = rows_on_leaves_of_their_own(&instance, tree).await;
            let first = b'a' + random.below(20) as u8;
            let letters: Vec<u8> = (first..=b'z').take(1 + random.below(12) as usize).collect();
            empty_leaves(&instance, tree, &letters).await;
            rows.retain(|key, _| !letters.contains(&key[0]));
            let transaction = instance.begin();
            for _ in 0..60 {
                let mut end = || {
                    let mut key = vec![b'a' + random.below(26) as u8];
                    key.extend(random.chance(0.2).then_some(0));
                    match random.below(6) {
                        0 => Bound::Unbounded,
                        1..=3 => Bound::Included(key),
                        _ => Bound::Excluded(key),
                    }
                };
                let range = KeyRange { low: end(), high: end() };
                for direction in [Direction::Forward, Direction::Backward] {
                    let mut cursor = Cursor::new(&transaction, tree, range.clone(), direction);
                    let mut found = Vec::new();
                    while let Some(row) = cursor.next().await.unwrap() {
                        found.push(row);
                    }
                    assert!(found == expected(&rows, &range, direction), "{range:?} {direction:?}");
                }
            }
        });
    }
}
