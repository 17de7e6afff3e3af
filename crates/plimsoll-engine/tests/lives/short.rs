//! Lives that end before their first regular checkpoint: what they leave in log must not grow from
//! one to the next, or a disk fills that nobody works much on, and each recovery takes longer than
//! the one before.

use std::collections::BTreeSet;
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Files, MemoryDisk, MemoryOptions};

use crate::life::*;
use crate::support::*;

const LIVES: u64 = 12;
const GENERATIONS_OF_A_LIFE: u64 = 3;
const DEPTH: u64 = 2;

fn setup() -> Setup {
    Setup { checkpoint_generations: DEPTH, ..Setup::default() }
}

fn a_tree(disk: &Rc<MemoryDisk>) -> Tree {
    live(disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        instance.close().await.unwrap();
        tree
    })
}

/// Adds a row in each of some generations, in no time.
async fn add_rows(instance: &Instance, tree: Tree, life: u64) {
    let log = &instance.store().log;
    for generation in 0..GENERATIONS_OF_A_LIFE {
        let transaction = instance.begin();
        let row = row_key(life * GENERATIONS_OF_A_LIFE + generation);
        transaction.insert(tree, &row, &[life as u8; 200]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        log.make_durable(log.begin_generation().end).await.unwrap();
    }
}

async fn generations(files: &Files) -> BTreeSet<u32> {
    let reader = LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Default::default());
    reader.generations().await.unwrap().iter().map(|file| file.generation).collect()
}

fn kept(disk: &Rc<MemoryDisk>) -> BTreeSet<u32> {
    live(disk, |files, _| async move { generations(&files).await })
}

/// The life of a process that works for a moment; it is killed if it does not close.
fn short_life(
    disk: &Rc<MemoryDisk>,
    tree: Tree,
    life: u64,
    closes: bool,
    options: InstanceOptions,
) {
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options).await;
        add_rows(&instance, tree, life).await;
        if closes {
            instance.close().await.unwrap();
        }
    });
}

fn assert_rows_of_all(disk: &Rc<MemoryDisk>, tree: Tree) {
    let rows = live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        dump(&instance, tree).await.unwrap().len() as u64
    });
    assert_eq!(rows, LIVES * GENERATIONS_OF_A_LIFE);
}

#[test]
fn lives_that_are_closed_at_once_leave_the_log_of_one() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = a_tree(&disk);
    for life in 0..LIVES {
        short_life(&disk, tree, life, true, options(&setup()));
        let kept = kept(&disk).len() as u64;
        assert!(kept <= GENERATIONS_OF_A_LIFE + 1, "{kept} generations after life {life}");
    }
    assert_rows_of_all(&disk, tree);
}

#[test]
fn lives_that_are_killed_at_once_leave_no_more_log_than_the_depth_and_their_own() {
    let disk = disk_with_databases(2, &setup(), MemoryOptions::default());
    let tree = a_tree(&disk);
    for life in 0..LIVES {
        short_life(&disk, tree, life, false, options(&setup()));
        let kept = kept(&disk).len() as u64;
        assert!(kept <= DEPTH + GENERATIONS_OF_A_LIFE + 2, "{kept} generations after life {life}");
    }
    // What the last found written and passed by the checkpoint survives a power cut.
    assert_rows_of_all(&cut_power(&disk), tree);
}

/// Pages of the newest generations may not be written: the opening must not wait for them.
#[test]
fn a_waypoint_further_back_than_the_depth_does_not_keep_an_instance_from_opening() {
    let waiting = Setup { waypoint_generations: 8, ..setup() };
    let disk = disk_with_databases(3, &waiting, MemoryOptions::default());
    let tree = a_tree(&disk);
    for life in 0..LIVES {
        short_life(&disk, tree, life, false, options(&waiting));
    }
    assert_rows_of_all(&disk, tree);
}

/// What is not to be deleted, or is held by a client, or is needed from where the checkpoint is
/// held, stays.
#[test]
fn short_lives_delete_nothing_that_is_to_stay() {
    let all = Setup { circular: false, ..setup() };
    let disk = disk_with_databases(4, &all, MemoryOptions::default());
    let tree = a_tree(&disk);
    for life in 0..LIVES {
        short_life(&disk, tree, life, life % 2 == 0, options(&all));
    }
    assert_eq!(kept(&disk).first(), Some(&1), "log that is not circular");
    // The next deletes, but what a client holds.
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&all)).await;
        instance.hold_log_durably("client", 5).await.unwrap();
    });
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        instance.close().await.unwrap();
    });
    assert_eq!(kept(&disk).first(), Some(&5), "a client's hold");
    live(&disk, move |files, handle| async move {
        let held = InstanceOptions { hold_checkpoint: true, ..options(&setup()) };
        let instance = open_with(&files, &handle, held).await;
        instance.release_durably("client").await.unwrap();
        let before = instance.store().checkpoint.get();
        add_rows(&instance, tree, LIVES).await;
        assert_eq!(instance.store().checkpoint.get(), before, "a held checkpoint");
        assert!(generations(&files).await.contains(&before.generation));
    });
}
