//! Changes that ended without a commit, and who redoes the log later: a backup that is rolled
//! forward, a replica.

use std::rc::Rc;

use plimsoll_engine::instance::{Instance, Recovery};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, Files, Handle, MemoryDisk, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, Purpose, Random,
};

use crate::life::*;
use crate::support::*;
use crate::world::*;

/// All log is kept for whoever redoes it.
pub fn keeping() -> Setup {
    Setup { circular: false, checkpoint_generations: 1, ..setup() }
}

/// How a life ends in which a table was to be dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The drop failed, and others went on.
    Close,
    /// The process died while the drop waited for the disk.
    Kill,
}

/// A backup of the database, as a file.
pub async fn back_up(instance: &Rc<Instance>) -> Vec<u8> {
    let mut backup = Backup::start(instance, 1, 16 * 1024).unwrap();
    let mut pages = Vec::new();
    while let Some(chunk) = backup.next_chunk().await.unwrap() {
        pages.extend_from_slice(&chunk.bytes);
    }
    let report = backup.finish().await.unwrap();
    let header = backup.header_of_copy(&report).encode();
    [&header[..], &header[..], &pages[..]].concat()
}

/// Begins to drop the messages. The log says so of their first tree, and the root page of their
/// second cannot be read.
async fn begin_to_drop(instance: &Rc<Instance>, disk: &MemoryDisk, handle: &Handle, end: End) {
    let table = instance.open_table(1, "Messages").await.unwrap();
    let key = table.key(&[Some(&1i32.to_le_bytes())]).unwrap();
    table.get(&instance.begin(), &key).await.unwrap();
    drop(table);
    instance.tables(1).await.unwrap();
    let effect = match end {
        End::Close => Effect::Fail(DiskErrorKind::Medium),
        End::Kill => Effect::Delay(800 * NANOS_PER_MILLISECOND),
    };
    let before = instance.store().log.tip();
    disk.inject(FaultRule::new(effect).with_purpose(Purpose::DatabaseRead));
    let dropping = instance.clone();
    let dropped = handle.spawn(async move { dropping.drop_table(1, "Messages").await });
    match end {
        End::Close => drop(dropped.await.unwrap_err()),
        End::Kill => handle.sleep(100 * NANOS_PER_MILLISECOND).await,
    }
    disk.clear_faults();
    assert!(instance.store().log.tip() > before, "the log says nothing of the drop");
}

/// So many transactions, each of them durable.
pub async fn work(instance: &Rc<Instance>, transactions: i32) {
    let table = instance.open_table(1, "Busy").await.unwrap();
    let weight = table.column("weight").unwrap();
    let key = table.key(&[Some(&1i32.to_le_bytes())]).unwrap();
    for number in 0..transactions {
        let transaction = instance.begin();
        let value = number.to_le_bytes();
        table.update(&transaction, &key, &[(weight, Some(&value[..]))]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
    }
}

/// A life that begins to drop a table, which stays, and goes on for generations unless it is
/// killed. What is given back is a backup from before.
fn life_of_the_drop(disk: &Rc<MemoryDisk>, end: End) -> Vec<u8> {
    let failing = disk.clone();
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&keeping())).await;
        let copy = back_up(&instance).await;
        begin_to_drop(&instance, &failing, &handle, end).await;
        work(&instance, 3).await;
        if end == End::Close {
            later_generations(&instance).await;
            instance.close().await.unwrap();
        }
        copy
    })
}

/// Why it matters: transactions are counted from one again after a clean close. One with the number
/// of the change commits, and the table was dropped in every copy that redid both lives.
#[test]
fn a_drop_without_a_commit_is_not_made_up_for_by_a_transaction_of_a_later_life() {
    for end in [End::Close, End::Kill] {
        let disk = base(20);
        let copy = life_of_the_drop(&disk, end);
        for transactions in [1, 200] {
            live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&keeping())).await;
                // First, so that these have the numbers of the changes of an earlier life.
                work(&instance, transactions).await;
                assert!(!was_made(&instance, Change::DropTable).await, "{end:?}");
                instance.close().await.unwrap();
            });
        }
        disk.load(database_path(1), &copy);
        let made = look_after(&disk, Change::DropTable, format!("{end:?}, rolled forward"));
        assert!(!made, "{end:?}: the table was dropped");
    }
}

async fn begin(files: &Files, handle: &Handle) -> Recovery {
    Recovery::begin(files.clone(), handle.clone(), options(&keeping())).await.unwrap()
}

/// Why it matters: a replica that waits for word of a change keeps all log from there on, and
/// redoes it whenever it goes on.
#[test]
fn a_replica_goes_on_behind_a_change_that_ended_without_a_commit() {
    for end in [End::Close, End::Kill] {
        let disk = base(21);
        let copy = life_of_the_drop(&disk, end);
        if end == End::Kill {
            live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&keeping())).await;
                later_generations(&instance).await;
            });
        }
        disk.load(database_path(1), &copy);
        live(&disk, move |files, handle| async move {
            let mut recovery = begin(&files, &handle).await;
            let start = recovery.next_generation();
            recovery.feed_all().await.unwrap();
            let last = recovery.position().generation;
            recovery.pause().await.unwrap();
            let mut again = begin(&files, &handle).await;
            let next = again.next_generation();
            assert!(next + 2 >= last, "{end:?}: from {start} to {last}, and on from {next}");
            again.feed_all().await.unwrap();
            let mut random = Random::from_seed(1);
            let (instance, _) = again.activate(&mut random).await.unwrap();
            assert!(!was_made(&instance, Change::DropTable).await, "{end:?}");
            instance.close().await.unwrap();
            check_file(&files, &handle, &format!("{end:?}, a replica")).await;
        });
    }
}

/// Works in generations of its own, and the checkpoint follows.
async fn later_generations(instance: &Rc<Instance>) {
    for _ in 0..4 {
        let log = &instance.store().log;
        log.make_durable(log.begin_generation().end).await.unwrap();
        work(instance, 3).await;
        instance.store().handle.sleep(2 * NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
    }
}
