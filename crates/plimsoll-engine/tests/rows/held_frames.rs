//! More operations at once than a small cache has frames for. Each holds the pages of its path
//! while it waits for the next one; together they hold every frame. All come to their end, one at a
//! time if need be, and the cache goes beyond its maximum by the pages of one operation only.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::instance::Instance;
use plimsoll_engine::table::OpenTable;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Files, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random, within,
};

use crate::support::*;

/// Longer than any of these stories takes, in virtual time.
const PATIENCE_NS: u64 = 1_000 * NANOS_PER_SECOND;
/// Pages from the root of the tree to a leaf.
const PATH: usize = 4;
const ROWS: u64 = 6_000;

fn key(number: u64) -> Vec<u8> {
    // Few of them fit on a branch page.
    let mut key = vec![b'k'; 300];
    key.extend(number.to_be_bytes());
    key
}

async fn closes(instance: Rc<Instance>, handle: &Handle, title: &str) {
    let closed = within(handle, PATIENCE_NS, instance.close()).await;
    closed.unwrap_or_else(|| panic!("{title}: the close never ends")).unwrap();
}

/// A disk with a tree whose branch pages alone are more than 64 frames.
fn with_deep_tree(setup: &Setup) -> (Rc<Clock>, Rc<MemoryDisk>, Tree) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let setup = setup.clone();
    let tree = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.insert(tree, &key(number), &[1; 200]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        instance.close().await.unwrap();
        tree
    });
    (clock, disk, tree.unwrap())
}

async fn opened(files: &Files, handle: &Handle, setup: &Setup) -> Rc<Instance> {
    open(files, handle, setup, 2).await.unwrap().0
}

/// Starts a reader that looks up `count` rows out of `rows`; every third look-up is given up after
/// some polls if that is wished.
fn start_reader(
    (instance, handle): (&Rc<Instance>, &Handle),
    tree: Tree,
    (number, rows, count): (u64, u64, u64),
    gives_up: bool,
    ended: &Rc<Cell<u64>>,
) {
    let (instance, ended) = (instance.clone(), ended.clone());
    drop(handle.spawn(async move {
        let mut random = Random::from_seed(number);
        for lookup in 0..count {
            let transaction = instance.begin();
            let wanted = key(random.below(rows));
            let found = transaction.get(tree, &wanted);
            if gives_up && lookup.is_multiple_of(3) {
                let polls = 1 + random.below(12);
                let found = give_up_after(polls, found).await;
                assert!(found.is_none_or(|found| found.unwrap().is_some()));
            } else {
                assert!(found.await.unwrap().is_some());
            }
        }
        ended.set(ended.get() + 1);
    }));
}

fn check_readers(readers: u64, rows: u64, gives_up: bool) {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let (clock, disk, tree) = with_deep_tree(&setup);
    run_on(&clock, &disk, move |files, handle| async move {
        let instance = opened(&files, &handle, &setup).await;
        let cache = instance.store().cache.clone();
        let ended = Rc::new(Cell::new(0));
        for number in 0..readers {
            start_reader((&instance, &handle), tree, (number, rows, 50), gives_up, &ended);
        }
        for _ in 0..PATIENCE_NS / NANOS_PER_SECOND {
            if ended.get() < readers {
                handle.sleep(NANOS_PER_SECOND).await;
            }
        }
        let title = format!("{readers} readers of {rows} rows");
        closes(instance, &handle, &title).await;
        assert_eq!(ended.get(), readers, "{title}: not all come to their end");
        let highest = cache.frames_highest();
        assert!(highest <= 64 + PATH, "{title}: {highest} frames were in use");
    })
    .unwrap();
}

#[test]
fn readers_that_hold_every_frame_come_to_their_end() {
    check_readers(60, ROWS, false);
    check_readers(66, ROWS, false);
    check_readers(300, ROWS, false);
}

/// They want the same pages, so that one reads what others wait for.
#[test]
fn readers_of_the_same_pages_hold_no_more_than_the_cache_has() {
    check_readers(100, ROWS / 4, false);
    check_readers(500, ROWS / 2, false);
}

#[test]
fn readers_that_give_up_while_every_frame_is_held_pass_their_turn_on() {
    check_readers(66, ROWS, true);
    check_readers(200, ROWS, true);
}

/// Those that come again and again do not keep one that waits from its turn.
#[test]
fn no_reader_is_passed_over_for_long() {
    let setup = Setup { cache_frames: 64, ..Setup::default() };
    let (clock, disk, tree) = with_deep_tree(&setup);
    run_on(&clock, &disk, move |files, handle| async move {
        let instance = opened(&files, &handle, &setup).await;
        let crowd = Rc::new(Cell::new(0));
        for number in 0..200 {
            start_reader((&instance, &handle), tree, (number, ROWS, 400), false, &crowd);
        }
        handle.sleep(NANOS_PER_SECOND / 10).await;
        let late = Rc::new(Cell::new(0));
        for number in 0..20 {
            start_reader((&instance, &handle), tree, (1_000 + number, ROWS, 5), false, &late);
        }
        while late.get() < 20 {
            assert!(crowd.get() < 200, "{} of 20 came to their end before the crowd", late.get());
            handle.sleep(NANOS_PER_SECOND / 100).await;
        }
        while crowd.get() < 200 {
            handle.sleep(NANOS_PER_SECOND).await;
        }
        closes(instance, &handle, "a crowd").await;
    })
    .unwrap();
}

async fn write_messages(instance: &Instance, table: &OpenTable, session: u64) {
    let mut random = Random::from_seed(session);
    let columns = ["id", "folder", "body"].map(|name| table.column(name).unwrap());
    for _ in 0..30 {
        let transaction = instance.begin();
        let id = ((session * 1_000 + random.below(40)) as i32).to_le_bytes();
        let folder = (random.below(1 << 20) as i32).to_le_bytes();
        let body = vec![7; random.below(60_000) as usize];
        let key = table.key(&[Some(&id)]).unwrap();
        let changes = [(columns[1], Some(&folder[..])), (columns[2], Some(&body[..]))];
        let is_there = table.get(&transaction, &key).await.unwrap().is_some();
        match is_there {
            true if random.chance(0.5) => table.delete(&transaction, &key).await.unwrap(),
            true => table.update(&transaction, &key, &changes).await.unwrap(),
            false => {
                let [folder, body] = changes;
                let row = [(columns[0], Some(&id[..])), folder, body];
                table.insert(&transaction, &row).await.unwrap();
            }
        }
        match random.chance(0.2) {
            true => transaction.rollback().await.unwrap(),
            false => transaction.commit(Commit::Lazy).await.map(drop).unwrap(),
        }
    }
}

fn check_writers(size: PageSize, cache_bytes_max: u64, sessions: u64) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        let title = format!("{sessions} writers, {size:?}, {cache_bytes_max} bytes");
        let setup = Setup { size, ..Setup::default() };
        create_databases(&files, &setup).await.unwrap();
        let mut options = options(&setup);
        options.cache_bytes_max = cache_bytes_max;
        options.version_store_bytes_max = 1 << 30;
        let mut random = Random::from_seed(3);
        let opened = Instance::open(files.clone(), handle.clone(), options, &mut random);
        let (instance, _) = opened.await.unwrap();
        let table = instance.create_table(1, message_table("Messages")).await.unwrap();
        let table = Rc::new(table);
        let ended = Rc::new(Cell::new(0));
        for number in 0..sessions {
            let (instance, table) = (instance.clone(), table.clone());
            let ended = ended.clone();
            drop(handle.spawn(async move {
                write_messages(&instance, &table, number).await;
                drop(table);
                ended.set(ended.get() + 1);
            }));
        }
        for _ in 0..PATIENCE_NS / NANOS_PER_SECOND {
            if ended.get() < sessions {
                handle.sleep(NANOS_PER_SECOND).await;
            }
        }
        assert_eq!(ended.get(), sessions, "{title}: not all come to their end");
        drop(table);
        closes(instance, &handle, &title).await;
        let report = verify_deep(&files, &handle, database_path(1), DeepOptions::default());
        let report = report.await.unwrap();
        assert!(report.is_sound(), "{title}: {:#?}", report.findings);
    })
    .unwrap();
}

#[test]
fn writers_that_hold_every_frame_come_to_their_end() {
    let smallest = 256 << 10;
    check_writers(PageSize::KIB_32, smallest, 12);
    check_writers(PageSize::KIB_16, smallest, 12);
    check_writers(PageSize::KIB_8, smallest, 24);
    check_writers(PageSize::KIB_4, smallest, 80);
    check_writers(PageSize::KIB_32, 1 << 20, 60);
}
