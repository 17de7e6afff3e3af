//! Files that do not belong together: databases in another order than their log knows them, an
//! older image beside a newer checkpoint, a backup beside the flush map of what it takes the place
//! of, two instances with one log. Each is what people do with files, and no fault of a disk.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{LogTime, PageSize, Signature, create_database};
use plimsoll_io::{Context, Files, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random};

use crate::life::*;
use crate::support::*;

const ROWS: u64 = 300;

fn two_databases() -> Setup {
    Setup { databases: 2, checkpoint_generations: 1, cache_frames: 400, ..Setup::default() }
}

async fn insert(instance: &Rc<Instance>, tree: Tree, numbers: std::ops::Range<u64>, with: u8) {
    for number in numbers {
        let transaction = instance.begin();
        transaction.insert(tree, &row_key(number), &[with; 200]).await.unwrap();
        transaction.commit(Commit::Lazy).await.unwrap();
    }
    make_durable(instance).await;
}

/// Lets the checkpoint pass everything so far.
async fn move_on(instance: &Rc<Instance>, handle: &Handle) {
    let log = &instance.store().log;
    for _ in 0..3 {
        log.make_durable(log.begin_generation().end).await.unwrap();
        handle.sleep(2 * NANOS_PER_SECOND).await;
    }
    instance.checkpoint().await.unwrap();
}

async fn rows_with(instance: &Rc<Instance>, tree: Tree, with: u8) -> usize {
    let rows = dump(instance, tree).await.unwrap();
    rows.values().filter(|data| data[0] == with).count()
}

async fn open_paths(
    files: &Files,
    handle: &Handle,
    setup: &Setup,
    databases: Vec<PathBuf>,
) -> Result<Rc<Instance>> {
    let options = InstanceOptions { databases, ..options(setup) };
    let mut random = Random::from_seed(3);
    let opened = Instance::open(files.clone(), handle.clone(), options, &mut random).await;
    opened.map(|(instance, _)| instance)
}

/// Two databases with rows of their own, and more of them in log that has to be redone; the process
/// was killed. Their trees have the same pages and objects.
fn killed_with_two_databases() -> (Rc<MemoryDisk>, [Tree; 2]) {
    let setup = two_databases();
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let trees = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let first = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let second = instance.create_tree(2, 1, 50, 0, 16).await.unwrap();
        insert(&instance, first, 0..ROWS, 1).await;
        insert(&instance, second, 0..ROWS, 2).await;
        move_on(&instance, &handle).await;
        insert(&instance, first, ROWS..2 * ROWS, 1).await;
        insert(&instance, second, ROWS..2 * ROWS, 2).await;
        [first, second]
    });
    (disk, trees)
}

/// Opens so, which is to be refused for a reason that says what to do, and then as it should be.
fn refused_then_recovered(databases: Vec<PathBuf>) {
    let (disk, [first, second]) = killed_with_two_databases();
    live(&disk, move |files, handle| async move {
        let other = Signature::new(77, LogTime::default());
        let path = database_path(3);
        create_database(&files, &path, PageSize::KIB_4, other, Context::default()).await.unwrap();
        let setup = two_databases();
        let opened = open_paths(&files, &handle, &setup, databases.clone()).await;
        let refused = opened.err().unwrap_or_else(|| panic!("{databases:?} were opened"));
        assert!(
            matches!(refused, EngineError::BadOption { name: "databases", .. }),
            "{databases:?}: {refused}"
        );
        let instance = open_with(&files, &handle, options(&setup)).await;
        for (tree, with) in [(first, 1), (second, 2)] {
            assert_eq!(rows_with(&instance, tree, with).await, 2 * ROWS as usize);
        }
        instance.close().await.unwrap();
    });
}

/// Why it matters: the log names databases by number, and the record that says whose number it is
/// may lie behind the checkpoint. Rows of one would be redone over the other.
#[test]
fn databases_in_another_order_are_refused_while_their_log_is_to_be_redone() {
    refused_then_recovered(vec![database_path(2), database_path(1)]);
}

/// Why it matters: the other one's log would be purged with the next checkpoint.
#[test]
fn some_of_the_databases_are_refused_while_their_log_is_to_be_redone() {
    refused_then_recovered(vec![database_path(1)]);
    refused_then_recovered(vec![database_path(2)]);
}

/// Why it matters: rows of the one that is missing would be redone over the new one.
#[test]
fn a_new_database_in_the_place_of_another_is_refused_while_their_log_is_to_be_redone() {
    refused_then_recovered(vec![database_path(1), database_path(3)]);
}

/// Why it matters: numbers are places in a list, and whoever closed everything may order it anew.
#[test]
fn databases_that_were_closed_are_opened_in_any_order() {
    let (disk, [first, second]) = killed_with_two_databases();
    live(&disk, move |files, handle| async move {
        let setup = two_databases();
        open_with(&files, &handle, options(&setup)).await.close().await.unwrap();
        let turned = vec![database_path(2), database_path(1)];
        let instance = open_paths(&files, &handle, &setup, turned.clone()).await.unwrap();
        let (first, second) = (Tree { database: 2, ..first }, Tree { database: 1, ..second });
        insert(&instance, first, 2 * ROWS..3 * ROWS, 1).await;
        insert(&instance, second, 2 * ROWS..3 * ROWS, 2).await;
        drop(instance);
    });
    live(&disk, move |files, handle| async move {
        let turned = vec![database_path(2), database_path(1)];
        let instance = open_paths(&files, &handle, &two_databases(), turned).await.unwrap();
        let (first, second) = (Tree { database: 2, ..first }, Tree { database: 1, ..second });
        for (tree, with) in [(first, 1), (second, 2)] {
            assert_eq!(rows_with(&instance, tree, with).await, 3 * ROWS as usize);
        }
        instance.close().await.unwrap();
    });
}

/// Why it matters: a snapshot of the volume with the databases is put back, and log and checkpoint
/// lie on another volume. The log has everything since; redo from the checkpoint would leave out
/// what lies before it, without a word.
#[test]
fn an_older_image_is_redone_from_where_its_header_says_and_not_from_the_checkpoint() {
    for page_images in [true, false] {
        let setup = Setup {
            page_images,
            circular: false,
            checkpoint_generations: 1,
            cache_frames: 400,
            ..Setup::default()
        };
        let memory = MemoryOptions { atomic_write_bytes: 4096, ..MemoryOptions::default() };
        let disk = disk_with_databases(1, &setup, memory);
        let (imaged, of_life) = (disk.clone(), setup.clone());
        let (tree, image) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&of_life)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            insert(&instance, tree, 0..ROWS, 1).await;
            move_on(&instance, &handle).await;
            insert(&instance, tree, ROWS..2 * ROWS, 1).await;
            let image = imaged.bytes(database_path(1)).unwrap();
            // Rows behind all others: the pages of those before are not touched again.
            move_on(&instance, &handle).await;
            let late = instance.create_tree(1, 1, 51, 0, 16).await.unwrap();
            insert(&instance, late, 0..ROWS, 1).await;
            move_on(&instance, &handle).await;
            (tree, image)
        });
        disk.load(database_path(1), &image);
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            assert_eq!(rows_with(&instance, tree, 1).await, 2 * ROWS as usize, "{page_images}");
            instance.close().await.unwrap();
        });
    }
}

fn is_log(path: &Path) -> bool {
    path.starts_with("log") && path.extension().is_some_and(|end| end == "log")
}

async fn back_up(instance: &Rc<Instance>, disk: &Rc<MemoryDisk>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut backup = Backup::start(instance, 1, 64 * 1024).unwrap();
    let mut pages: Vec<u8> = Vec::new();
    while let Some(chunk) = backup.next_chunk().await.unwrap() {
        pages.extend_from_slice(&chunk.bytes);
    }
    let report = backup.finish().await.unwrap();
    let header = backup.header_of_copy(&report).encode();
    let bytes = [&header[..], &header[..], &pages[..]].concat();
    let mut files = vec![(database_path(1), bytes)];
    for (path, bytes) in disk.snapshot() {
        if is_log(&path) {
            files.push((path, bytes));
        }
    }
    files
}

/// Why it matters: the map says of each page which write was the last, and all that came after the
/// backup would be writes that the storage has lost.
#[test]
fn a_backup_put_back_beside_a_newer_flush_map_accuses_no_page() {
    let setup = Setup { checkpoint_generations: 1, cache_frames: 64, ..Setup::default() };
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let (copied, of_life) = (disk.clone(), setup.clone());
    let (tree, copy) = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&of_life)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        insert(&instance, tree, 0..ROWS, 1).await;
        move_on(&instance, &handle).await;
        let copy = back_up(&instance, &copied).await;
        for number in 0..ROWS {
            let transaction = instance.begin();
            transaction.replace(tree, &row_key(number), &[2; 200]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
        }
        instance.close().await.unwrap();
        (tree, copy)
    });
    let log: Vec<PathBuf> = disk.snapshot().into_keys().filter(|path| is_log(path)).collect();
    live(&disk, |files, _| async move {
        for path in log {
            files.delete(&PathBuf::from("/").join(path), Context::default()).await.unwrap();
        }
    });
    for (path, bytes) in copy {
        disk.load(path, &bytes);
    }
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        assert_eq!(rows_with(&instance, tree, 1).await, ROWS as usize);
        instance.close().await.unwrap();
    });
}

/// Why it matters: each would rename and purge the log of the other.
#[test]
fn a_log_that_another_instance_writes_is_refused() {
    let setup = two_databases();
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    live(&disk, move |files, handle| async move {
        let one = open_paths(&files, &handle, &setup, vec![database_path(1)]).await.unwrap();
        let tree = one.create_tree(1, 1, 50, 0, 16).await.unwrap();
        insert(&one, tree, 0..ROWS, 1).await;
        let other = open_paths(&files, &handle, &setup, vec![database_path(2)]).await;
        assert!(other.is_err(), "two instances write one log");
        insert(&one, tree, ROWS..2 * ROWS, 1).await;
        one.close().await.unwrap();
        let instance = open_paths(&files, &handle, &setup, vec![database_path(1)]).await.unwrap();
        assert_eq!(rows_with(&instance, tree, 1).await, 2 * ROWS as usize);
        instance.close().await.unwrap();
    });
}
