//! Log under a name that is not its own: an earlier copy of the current generation under the name
//! that this gets when it is closed, and a generation under the number of another. A client that
//! ships log by its number, or a hand that restores it, leaves both.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::{Instance, Recovery};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::follower::LogFollower;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Context, Files, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random};

use crate::life::*;
use crate::support::*;

fn setup() -> Setup {
    Setup { checkpoint_generations: 100, circular: false, ..Setup::default() }
}

fn names() -> LogNames {
    LogNames::new(LOG, "E00")
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), names(), Context::default())
}

async fn insert(instance: &Instance, tree: Tree, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let transaction = instance.begin();
        transaction.insert(tree, &row_key(number), &[1; 200]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
    }
}

async fn next_generation(instance: &Instance) {
    let log = &instance.store().log;
    log.make_durable(log.begin_generation().end).await.unwrap();
}

/// A killed instance whose current generation is 2, and that generation as it was after half of its
/// rows: 10..15 of 10..20. Generation 1 has 0..10.
fn half_and_whole() -> (Rc<MemoryDisk>, Tree, Vec<u8>) {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let watched = disk.clone();
    let (tree, half) = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        insert(&instance, tree, 0..10).await;
        next_generation(&instance).await;
        insert(&instance, tree, 10..15).await;
        let half = watched.bytes(names().current()).unwrap();
        insert(&instance, tree, 15..20).await;
        (tree, half)
    });
    (disk, tree, half)
}

async fn records_from_first(files: &Files) -> Vec<(Lsn, LogRecord)> {
    LogFollower::new(reader(files), Lsn::new(1, 0)).poll().await.unwrap()
}

/// Opens twice, with a row more each time, and is killed each time.
fn two_more_lives(disk: &Rc<MemoryDisk>, tree: Tree, rows: usize) {
    for life in 0..2u64 {
        live(disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &setup(), life).await.unwrap();
            insert(&instance, tree, 100 + life..101 + life).await;
            let found = dump(&instance, tree).await.unwrap().len();
            assert_eq!(found, rows + 1 + life as usize, "life {life}");
        });
    }
}

/// Why it matters: half of what was acknowledged would be gone without a word.
#[test]
fn an_earlier_copy_of_the_current_generation_hides_nothing_of_it() {
    let names = names();
    for whole_is_current in [true, false] {
        let (disk, tree, half) = half_and_whole();
        let whole = disk.bytes(names.current()).unwrap();
        let all = live(&disk, |files, _| async move { records_from_first(&files).await });
        let (current, closed) = if whole_is_current { (&whole, &half) } else { (&half, &whole) };
        disk.load(names.current(), current);
        disk.load(names.closed(2), closed);
        let told = live(&disk, |files, _| async move { records_from_first(&files).await });
        assert_eq!(told.len(), all.len(), "current {whole_is_current}: a reader is told all");
        two_more_lives(&disk, tree, 20);
        let told = live(&disk, |files, _| async move { records_from_first(&files).await });
        assert!(told.starts_with(&all), "current {whole_is_current}: all of it stays in the log");
    }
}

/// Why it matters: of two histories under one number nobody but a person can say which is wanted.
#[test]
fn two_files_of_one_generation_that_part_are_refused() {
    let (disk, tree, _) = half_and_whole();
    let other = disk_with_databases(2, &setup(), MemoryOptions::default());
    live(&other, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        next_generation(&instance).await;
    });
    disk.load(names().closed(2), &other.bytes(names().current()).unwrap());
    live(&disk, |files, handle| async move {
        let refused = open(&files, &handle, &setup(), 1).await.map(drop).unwrap_err();
        let EngineError::ForeignLog { path, why } = &refused else { panic!("{refused}") };
        assert_eq!(*path, names().closed(2));
        assert!(why.contains("E00.log") && why.contains("take the one away"), "{why}");
        files.delete(path, Context::default()).await.unwrap();
    });
    two_more_lives(&disk, tree, 20);
}

/// Why it matters: commits of the new history would lie in a generation of which an old file has
/// the number.
#[test]
fn a_generation_that_is_given_up_takes_its_copy_with_it() {
    for whole_is_current in [true, false] {
        let (disk, tree, half) = half_and_whole();
        let whole = disk.bytes(names().current()).unwrap();
        let (current, closed) = if whole_is_current { (&whole, &half) } else { (&half, &whole) };
        disk.load(names().current(), current);
        disk.load(names().closed(2), closed);
        live(&disk, move |files, handle| async move {
            let begun = Recovery::begin(files.clone(), handle, options(&setup())).await;
            let mut recovery = begun.unwrap();
            assert!(recovery.feed_next().await.unwrap());
            recovery.give_up_commits();
            let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
            insert(&instance, tree, 50..60).await;
        });
        assert!(disk.bytes(names().closed(2)).is_none(), "current {whole_is_current}");
        for number in 1..=2 {
            assert!(disk.bytes(names().set_aside(2, number)).is_some(), "both are kept");
        }
        two_more_lives(&disk, tree, 20);
    }
}

/// What a reader of the log says of log that is not of the generation that its name says, unless it
/// reads for a minute.
async fn told_within_a_minute<T>(
    handle: &Handle,
    reading: impl Future<Output = Result<T>>,
) -> EngineError {
    let told: RefCell<Option<Result<T>>> = RefCell::default();
    let reading = async { *told.borrow_mut() = Some(reading.await) };
    plimsoll_io::either(reading, handle.sleep(60 * NANOS_PER_SECOND)).await;
    let told = told.take().expect("somebody reads for ever");
    told.map(drop).expect_err("it is not the log of its name")
}

/// Why it matters: a copy that waits for ever for log that lies under a wrong name is behind, and
/// nobody learns why.
#[test]
fn who_meets_a_generation_under_the_number_of_another_is_told_which_file_it_is() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let changed = disk.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        for _ in 0..4 {
            next_generation(&instance).await;
        }
        changed.load(names().closed(2), &changed.bytes(names().closed(3)).unwrap());
        let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
        let by_follower = told_within_a_minute(&handle, follower.poll()).await;
        let log = &instance.store().log;
        let mut tail = LogTail::begin(log, reader(&files), Lsn::new(1, 0), 1 << 20);
        let reading = async {
            while tail.next().await?.is_some() {}
            Ok(())
        };
        let by_tail = told_within_a_minute(&handle, reading).await;
        let mut history = reader(&files).read_history(1).await.unwrap();
        let reading = async {
            while history.next().await?.is_some() {}
            Ok(())
        };
        let by_history = told_within_a_minute(&handle, reading).await;
        for told in [by_follower, by_tail, by_history] {
            check_told(&told, names().closed(2));
        }
    });
    live(&disk, |files, handle| async move {
        let refused = open(&files, &handle, &setup(), 1).await.map(drop).unwrap_err();
        check_told(&refused, names().closed(2));
    });
}

fn check_told(told: &EngineError, of: PathBuf) {
    let EngineError::ForeignLog { path, why } = told else { panic!("{told}") };
    assert_eq!(*path, of);
    assert!(why.contains("generation 2, and its header that it is generation 3"), "{why}");
}
