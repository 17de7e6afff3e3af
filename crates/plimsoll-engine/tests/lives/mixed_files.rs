//! Files that do not belong together: databases in another order than their log knows them, an
//! older image beside a newer checkpoint, a backup beside the flush map of what it takes the place
//! of, two instances with one log. Each is what people do with files, and no fault of a disk.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, Result};
use plimsoll_engine::instance::{Instance, InstanceOptions};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::HEADER_BYTES;
use plimsoll_engine::log::attached::Attached;
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::{
    DatabaseHeader, FORMAT_UPDATE, FORMAT_VERSION, LogTime, PageSize, Signature, create_database,
};
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

/// Why it matters: a header is written when the checkpoint comes to another generation, and the
/// checkpoint file whenever it moves. While a transaction keeps it in one generation both agree,
/// whatever lies between the image and the file.
#[test]
fn an_older_image_of_the_same_generation_is_redone_from_its_beginning() {
    for (page_images, with_map) in [(true, true), (true, false), (false, true), (false, false)] {
        let what = format!("page images {page_images}, flush map put back {with_map}");
        let setup = Setup { page_images, circular: false, databases: 1, ..two_databases() };
        let memory = MemoryOptions { atomic_write_bytes: 4096, ..MemoryOptions::default() };
        let disk = disk_with_databases(1, &setup, memory);
        let (imaged, of_life) = (disk.clone(), setup.clone());
        let (tree, late, image) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&of_life)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 64).await.unwrap();
            let late = instance.create_tree(1, 1, 51, 0, 64).await.unwrap();
            insert(&instance, tree, 0..ROWS, 1).await;
            move_on(&instance, &handle).await;
            insert(&instance, tree, ROWS..ROWS + 40, 1).await;
            let long = instance.begin();
            long.insert(late, &row_key(9_000), &[9; 200]).await.unwrap();
            let map = database_path(1).with_extension("jfm");
            let files_of_image =
                [database_path(1), map].into_iter().take(1 + usize::from(with_map));
            let image: Vec<_> = files_of_image
                .map(|path| (path.clone(), imaged.bytes(path).expect("it is there")))
                .collect();
            let log = &instance.store().log;
            log.make_durable(log.begin_generation().end).await.unwrap();
            insert(&instance, late, 0..ROWS, 2).await;
            handle.sleep(5 * NANOS_PER_SECOND).await;
            instance.checkpoint().await.unwrap();
            drop(handle.spawn(async move {
                let _open = long;
                std::future::pending::<()>().await;
            }));
            (tree, late, image)
        });
        for (path, bytes) in image {
            disk.load(path, &bytes);
        }
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            let found = [rows_with(&instance, tree, 1).await, rows_with(&instance, late, 2).await];
            assert_eq!(found, [ROWS as usize + 40, ROWS as usize], "{what}");
            instance.close().await.unwrap();
        });
    }
}

/// Why it matters: last night's file looks clean, so nothing was redone, and the log of today was
/// deleted: all of today's commits were gone without a word, and so was what would bring them back.
#[test]
fn an_older_file_that_was_shut_down_is_refused_beside_newer_log_and_nothing_is_deleted() {
    let cases = [
        (1, true, true, true, true),
        (1, true, false, true, true),
        (2, true, true, true, true),
        (2, false, true, false, true),
        (1, false, true, true, true),
        // Circular logging has deleted the record that says whose changes these are.
        (1, true, true, false, true),
        (2, true, false, false, true),
        // So it has, and the log is of before its headers said what is attached.
        (1, true, true, true, false),
        (2, true, true, true, false),
    ];
    for (databases, circular, with_map, is_killed, is_told) in cases {
        let what = format!(
            "{databases} databases, circular {circular}, flush map {with_map}, killed {is_killed}, \
             told {is_told}"
        );
        let setup = Setup { circular, databases, ..two_databases() };
        let disk = disk_with_databases(1, &setup, MemoryOptions::default());
        let first_life = setup.clone();
        let tree = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&first_life)).await;
            let tree = instance.create_tree(databases, 1, 50, 0, 16).await.unwrap();
            insert(&instance, tree, 0..ROWS, 1).await;
            instance.close().await.unwrap();
            tree
        });
        let image_of = |disk: &Rc<MemoryDisk>| {
            let map = database_path(databases).with_extension("jfm");
            [database_path(databases), map]
                .map(|path| (path.clone(), disk.bytes(path).expect("there")))
        };
        let older = image_of(&disk);
        let second_life = setup.clone();
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&second_life)).await;
            insert(&instance, tree, ROWS..2 * ROWS, 1).await;
            for _ in 0..4 {
                move_on(&instance, &handle).await;
            }
            insert(&instance, tree, 2 * ROWS..3 * ROWS, 1).await;
            if !is_killed {
                instance.close().await.unwrap();
            }
        });
        if !is_told {
            tell_of_nothing_attached(&disk);
        }
        let (newer, log) = (image_of(&disk), disk.snapshot());
        for (path, bytes) in older.iter().take(1 + usize::from(with_map)) {
            disk.load(path, bytes);
        }
        let own = setup.clone();
        live(&disk, move |files, handle| async move {
            let refused = open(&files, &handle, &own, 1).await.err().expect(&what);
            let is_option = matches!(refused, EngineError::BadOption { name: "databases", .. });
            assert!(is_option, "{what}: {refused}");
            assert!(refused.to_string().contains("older"), "{what}: {refused}");
        });
        let kept = disk.snapshot();
        let gone = log.keys().find(|path| is_log(path) && !kept.contains_key(*path));
        assert_eq!(gone, None, "log was deleted");
        for (path, bytes) in &newer {
            disk.load(path, bytes);
        }
        live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup)).await;
            assert_eq!(rows_with(&instance, tree, 1).await, 3 * ROWS as usize);
            instance.close().await.unwrap();
        });
    }
}

/// The files of the first database, and of its log, after a life that closed; then a longer life.
fn older_files_and_a_later_life(setup: &Setup, is_killed: bool) -> (Rc<MemoryDisk>, Image, Tree) {
    let databases = setup.databases;
    let disk = disk_with_databases(1, setup, MemoryOptions::default());
    let of_life = setup.clone();
    let trees = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&of_life)).await;
        let first = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let last = instance.create_tree(databases, 1, 51, 0, 16).await.unwrap();
        insert(&instance, first, 0..ROWS, 1).await;
        insert(&instance, last, 0..ROWS, 2).await;
        instance.close().await.unwrap();
        (first, last)
    });
    let map = database_path(1).with_extension("jfm");
    let current = LogNames::new(LOG, "E00").current();
    let older = [database_path(1), map, current].map(|path| {
        let bytes = disk.bytes(&path).expect("there");
        (path, bytes)
    });
    let of_life = setup.clone();
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&of_life)).await;
        insert(&instance, trees.0, ROWS..2 * ROWS, 1).await;
        for _ in 0..4 {
            move_on(&instance, &handle).await;
        }
        if is_killed {
            insert(&instance, trees.1, ROWS..2 * ROWS, 2).await;
        } else {
            // The log that is left holds no change.
            instance.close().await.unwrap();
        }
    });
    (disk, older, trees.0)
}

type Image = [(PathBuf, Vec<u8>); 3];

/// Puts some of the older files back, which is refused; with the newest ones all is there.
fn refused_with(disk: &Rc<MemoryDisk>, setup: &Setup, files: &[(PathBuf, Vec<u8>)], tree: Tree) {
    let newest = disk.snapshot();
    for (path, bytes) in files {
        disk.load(path, bytes);
    }
    let own = setup.clone();
    live(disk, move |files, handle| async move {
        let refused = open(&files, &handle, &own, 1).await.err().expect("an older file was opened");
        let is_option = matches!(refused, EngineError::BadOption { name: "databases", .. });
        assert!(is_option && refused.to_string().contains("older"), "{refused}");
    });
    for (path, bytes) in &newest {
        disk.load(PathBuf::from("/").join(path), bytes);
    }
    let own = setup.clone();
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&own)).await;
        assert_eq!(rows_with(&instance, tree, 1).await, 2 * ROWS as usize);
        instance.close().await.unwrap();
    });
}

/// Why it matters: redo begins behind all that changed it, so nothing is redone over it, and it
/// goes on with the log of a life that it has not seen.
#[test]
fn an_older_file_that_was_shut_down_is_refused_beside_one_that_is_to_be_redone() {
    for circular in [true, false] {
        let setup = Setup { circular, ..two_databases() };
        let (disk, older, tree) = older_files_and_a_later_life(&setup, true);
        refused_with(&disk, &setup, &older[..2], tree);
    }
}

/// Why it matters: of more than 70 databases no generation said what was attached when it began,
/// and what is not known passed for no reason to object.
#[test]
fn of_a_hundred_databases_an_older_one_is_refused_as_of_two() {
    let setup = Setup { databases: 100, ..two_databases() };
    let (disk, older, tree) = older_files_and_a_later_life(&setup, false);
    refused_with(&disk, &setup, &older[..2], tree);
}

/// Why it matters: who puts back last night's file puts back its log, too, and a power cut may do
/// so by itself: log in between is missing all the same.
#[test]
fn an_old_generation_that_lies_there_hides_no_gap_behind_it() {
    let setup = Setup { databases: 1, ..two_databases() };
    let (disk, mut older, tree) = older_files_and_a_later_life(&setup, false);
    older[2].0 = LogNames::new(LOG, "E00").closed(1);
    refused_with(&disk, &setup, &older, tree);
}

/// Why it matters: the log says nothing of it, or changes of another were redone over it, and the
/// log that it needs would never have been read.
#[test]
fn a_database_of_another_log_is_refused_beside_one_that_is_to_be_redone() {
    for is_changed in [true, false] {
        let setup = Setup { databases: 4, ..two_databases() };
        let disk = disk_with_databases(1, &setup, MemoryOptions::default());
        disk.create_directory("/other");
        let of_life = setup.clone();
        let theirs = InstanceOptions {
            databases: vec![database_path(3), database_path(4)],
            log: LogNames::new("/other", "E00"),
            ..options(&setup)
        };
        let their_options = theirs.clone();
        let tree = live(&disk, move |files, handle| async move {
            let ours = vec![database_path(1), database_path(2)];
            let ours = open_paths(&files, &handle, &of_life, ours).await.unwrap();
            let theirs = open_with(&files, &handle, their_options).await;
            let first = ours.create_tree(1, 1, 50, 0, 16).await.unwrap();
            let second = ours.create_tree(2, 1, 50, 0, 16).await.unwrap();
            let of_theirs = theirs.create_tree(2, 1, 50, 0, 16).await.unwrap();
            insert(&theirs, of_theirs, 0..ROWS, 7).await;
            move_on(&ours, &handle).await;
            move_on(&theirs, &handle).await;
            insert(&ours, first, 0..ROWS, 1).await;
            if is_changed {
                insert(&ours, second, 0..ROWS, 2).await;
            }
            insert(&theirs, of_theirs, ROWS..2 * ROWS, 7).await;
            of_theirs
        });
        live(&disk, move |files, handle| async move {
            let mixed = vec![database_path(1), database_path(4)];
            let opened = open_paths(&files, &handle, &setup, mixed).await;
            let refused = opened.err().expect("a database of another log was opened");
            let named = |path: &Path| path == database_path(4);
            let is_named = matches!(&refused, EngineError::Diverged { path, .. } if named(path));
            assert!(is_named, "changed {is_changed}: {refused}");
            let theirs = open_with(&files, &handle, theirs).await;
            assert_eq!(rows_with(&theirs, tree, 7).await, 2 * ROWS as usize);
            theirs.close().await.unwrap();
        });
    }
}

/// Why it matters: what a newer engine has laid out is misread by this one, and what this one
/// writes among it by that.
#[test]
fn a_database_of_a_newer_format_is_not_opened_for_changes() {
    let setup = Setup::default();
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let sound = disk.bytes(database_path(1)).expect("it is there");
    for (version, update) in [(0x9999, 0x7777), (FORMAT_VERSION, FORMAT_UPDATE + 1)] {
        let mut header = DatabaseHeader::decode(&sound).unwrap();
        (header.version, header.update) = (version, update);
        let copy = header.encode();
        let newer = [&copy[..], &copy[..], &sound[2 * copy.len()..]].concat();
        disk.load(database_path(1), &newer);
        let own = setup.clone();
        live(&disk, move |files, handle| async move {
            let refused = open(&files, &handle, &own, 1).await.err().expect("it was opened");
            assert!(refused.to_string().contains("is newer than 0x620,0x14"), "{refused}");
        });
        assert_eq!(disk.bytes(database_path(1)), Some(newer));
    }
}

/// Makes the generations those of a version whose headers did not say what was attached.
fn tell_of_nothing_attached(disk: &Rc<MemoryDisk>) {
    for (path, mut bytes) in disk.snapshot().into_iter().filter(|(path, _)| is_log(path)) {
        let Ok(mut header) = GenerationHeader::decode(&bytes[..HEADER_BYTES]) else { continue };
        header.attached = Attached::default();
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        disk.load(PathBuf::from("/").join(path), &bytes);
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
        let refused = other.err().expect("two instances write one log").to_string();
        assert!(refused.contains("E00.log") && refused.contains("holds it"), "{refused}");
        insert(&one, tree, ROWS..2 * ROWS, 1).await;
        one.close().await.unwrap();
        let instance = open_paths(&files, &handle, &setup, vec![database_path(1)]).await.unwrap();
        assert_eq!(rows_with(&instance, tree, 1).await, 2 * ROWS as usize);
        instance.close().await.unwrap();
    });
}
