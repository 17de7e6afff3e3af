//! What only SQLite can be asked: a file of somebody else to the byte, rows that are changed
//! beneath, no place in virtual time. What all stores have in common is in `stores`.
//!
//! Works on real files and in real time, because a client with threads knows no other.
#![cfg(feature = "sqlite")]
#![expect(
    clippy::disallowed_methods,
    reason = "SQLite opens its files itself, and a real folder has to be made for them"
)]

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_clients::client::{ClientError, StoreClient};
use plimsoll_clients::sqlite::SqliteStore;
use plimsoll_io::{
    Clock, Executor, Handle, MemoryDisk, MemoryOptions, Random, RealDisk, RealDiskOptions,
};
use plimsoll_workload::Demand;
use plimsoll_workload::store::{Catalogue, Scale, StoreCounts, StoreDemand, StoreHabits};
use rusqlite::Connection;

const SEED: u64 = 11;

fn catalogue() -> Catalogue {
    Catalogue::new(SEED, Scale::of_megabytes(1).expect("a size"))
}

/// A folder of its own that is deleted when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-sqlite-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("there is room");
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run<T: 'static, F: Future<Output = T> + 'static>(work: impl FnOnce(Handle) -> F) -> T {
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("a disk");
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    executor.run(work(handle)).expect("it comes to an end")
}

async fn open(handle: &Handle, path: &Path) -> Rc<SqliteStore> {
    let opened = SqliteStore::open(handle, path, catalogue()).await;
    Rc::new(opened.expect("it opens"))
}

fn demand(store: &SqliteStore) -> StoreDemand {
    let session = store.begin_session();
    let random = Random::from_seed(SEED).child(&format!("session {session}"));
    StoreDemand::new(random, StoreHabits::USUAL, &catalogue(), session)
}

/// A database of somebody else is refused and not changed by a byte; so is a store of another seed
/// or size.
#[test]
fn what_is_not_ours_is_left_alone() {
    let folder = Folder::new();
    let theirs = folder.0.join("theirs.sqlite");
    let connection = Connection::open(&theirs).expect("it opens");
    connection.execute_batch("CREATE TABLE precious (id INTEGER)").expect("it works");
    drop(connection);
    let before = std::fs::read(&theirs).expect("it is there");
    let path = theirs.clone();
    let error =
        run(|handle| async move { SqliteStore::open(&handle, &path, catalogue()).await.err() });
    let error = error.expect("it is somebody else's").to_string();
    assert!(error.contains("another user's database: it has a table precious"), "{error}");
    let connection = Connection::open(&theirs).expect("it opens");
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .expect("it reads");
    assert_eq!(tables, 1);
    drop(connection);
    assert!(std::fs::read(&theirs).expect("it is there") == before, "not a byte is changed");
    let path = folder.file();
    run(|handle| async move {
        drop(open(&handle, &path).await);
        let other = Catalogue::new(SEED + 1, catalogue().scale());
        let refused = SqliteStore::open(&handle, &path, other).await.err();
        let error = refused.expect("it is another").to_string();
        assert!(error.contains("holds a store of 1MB made with seed 11"), "{error}");
    });
}

/// Rows that somebody changes are noticed by those who read them, and lost updates by the audit.
#[test]
fn changed_rows_and_lost_updates_are_found() {
    let folder = Folder::new();
    let path = folder.file();
    run(|handle| async move {
        let store = open(&handle, &path).await;
        let other = Connection::open(&path).expect("it opens");
        other
            .execute_batch(
                "UPDATE INVENTORY SET SALES = SALES - 3 WHERE PROD_ID = 7; UPDATE \
             INVENTORY SET QUAN_IN_STOCK = -1 WHERE PROD_ID = 9;",
            )
            .expect("it works");
        let findings = store.audit().await.expect("it reads").findings(&store.counts());
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0].starts_with("lost updates: ") && findings[0].ends_with("1 products differ")
        );
        assert_eq!(findings[1], "1 products have a stock below zero");
        let fewer = StoreCounts { orders: 3, ..store.counts() };
        let findings = store.audit().await.expect("it reads").findings(&fewer);
        assert!(findings[1].contains("orders: 1200 rows, but 3 were acknowledged"), "{findings:?}");
        other.execute_batch("UPDATE PRODUCTS SET PRICE = PRICE + 1").expect("it works");
        let mut demand = demand(&store);
        let task = demand.next(0, None).expect("a store never closes").task;
        let error = store.visit(&task).await.expect_err("prices are wrong");
        assert!(matches!(error, ClientError::WrongContent(_)), "{error}");
    });
}

/// Threads have no place in virtual time, and that is said instead of hanging.
#[test]
fn virtual_time_is_refused() {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    let path = std::env::temp_dir().join("plimsoll-never-made.sqlite");
    let opened =
        executor.run(async move { SqliteStore::open(&handle, &path, catalogue()).await.err() });
    let error = opened.expect("it comes to an end").expect("it is refused");
    assert!(error.to_string().contains("no place in virtual time"), "{error}");
}
