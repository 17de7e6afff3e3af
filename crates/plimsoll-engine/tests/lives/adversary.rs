//! What an adversary tried on 2026-11-26: recovery broken off in the middle of a generation, files
//! of another time put back, readers of the log that fail or know too much, and openings that
//! nobody waits for.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::deep::{DeepOptions, verify_deep};
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::{Instance, InstanceOptions, Recovery};
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::jobs::touched::touched_since;
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::follower::LogFollower;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, DiskErrorKind, Effect, FaultRule, Files, Handle, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, OperationKind, Purpose, Random,
};

use crate::life::*;
use crate::support::*;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn setup() -> Setup {
    Setup { checkpoint_generations: 100, ..Setup::default() }
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

async fn next_generation(instance: &Instance) {
    let log = &instance.store().log;
    log.make_durable(log.begin_generation().end).await.unwrap();
}

async fn put(instance: &Instance, tree: Tree, number: u64, with: u8) {
    let transaction = instance.begin();
    transaction.insert(tree, &row_key(number), &[with; 300]).await.unwrap();
    transaction.commit(Commit::Durable).await.unwrap();
}

async fn begin(files: &Files, handle: &Handle) -> Recovery {
    Recovery::begin(files.clone(), handle.clone(), options(&setup())).await.unwrap()
}

async fn activate(recovery: Recovery) -> Result<Rc<Instance>, EngineError> {
    Ok(recovery.activate(&mut Random::from_seed(1)).await?.0)
}

/// Something that is still there when the process dies.
fn leave_open<T: 'static>(handle: &Handle, open: T) {
    drop(handle.spawn(async move {
        let _open = open;
        std::future::pending::<()>().await;
    }));
}

/// Four generations with ten committed rows each; a transaction that never ends inserts, replaces
/// and deletes rows in each of them. With it comes what was committed in the end.
fn killed_in_a_long_transaction() -> (Rc<MemoryDisk>, Tree, Rows) {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let (tree, rows) = live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 1000..1040 {
            put(&instance, tree, number, 9).await;
        }
        let long = instance.begin();
        for generation in 0..4 {
            for number in generation * 10..generation * 10 + 10 {
                put(&instance, tree, number, 1).await;
                let (own, old) = (row_key(500 + number), row_key(1000 + number));
                long.insert(tree, &own, &[2; 200]).await.unwrap();
                long.replace(tree, &own, &[3; 100]).await.unwrap();
                long.replace(tree, &old, &[4; 250]).await.unwrap();
                if number % 2 == 0 {
                    long.delete(tree, &old).await.unwrap();
                }
            }
            next_generation(&instance).await;
        }
        let rows = dump(&instance, tree).await.unwrap();
        leave_open(&handle, long);
        (tree, rows)
    });
    (disk, tree, rows)
}

/// Why it matters: a replica with a deadline gives up a step that takes too long. Fed once more,
/// the generation would be taken back twice; without it, pages would be newer than the log.
#[test]
fn a_recovery_that_was_broken_off_in_a_generation_can_only_be_begun_again() {
    let mut broken_off = 0;
    for polls in 1.. {
        let (disk, tree, rows) = killed_in_a_long_transaction();
        let (dropped, refused) = live(&disk, move |files, handle| async move {
            let mut recovery = begin(&files, &handle).await;
            recovery.feed_next().await.unwrap();
            let dropped = give_up_after(polls, recovery.feed_next()).await.is_none();
            let fed = recovery.feed_all().await;
            let is_refused = |found: &Result<(), EngineError>| {
                matches!(found, Err(EngineError::BrokenOff { generation: 2 }))
            };
            let refused = is_refused(&fed);
            if refused {
                recovery.give_up_commits();
                match polls % 2 {
                    0 => assert!(is_refused(&activate(recovery).await.map(drop))),
                    _ => assert!(is_refused(&recovery.pause().await)),
                }
                recovery = begin(&files, &handle).await;
                recovery.feed_all().await.unwrap();
            } else {
                fed.unwrap();
            }
            let instance = activate(recovery).await.unwrap();
            assert!(dump(&instance, tree).await.unwrap() == rows, "polls {polls}");
            instance.close().await.unwrap();
            (dropped, refused)
        });
        broken_off += u64::from(refused);
        if !dropped {
            break;
        }
    }
    assert!(broken_off > 1, "{broken_off}");
}

/// Why it matters: whoever drops a recovery or an opening tries again, in the same process.
#[test]
fn a_recovery_and_an_opening_that_are_dropped_let_go_of_their_files() {
    let catching_up = || Setup { checkpoint_generations: 1, ..Setup::default() };
    for polls in (0..).map(|step| step * 4) {
        let (disk, tree, rows) = killed_in_a_long_transaction();
        let opened = live(&disk, move |files, handle| async move {
            let opened = match polls {
                0 => {
                    let mut recovery = begin(&files, &handle).await;
                    recovery.feed_next().await.unwrap();
                    None
                }
                _ => give_up_after(polls, open(&files, &handle, &catching_up(), 3)).await,
            };
            let is_open = opened.is_some();
            if let Some(opened) = opened {
                opened.unwrap().0.close().await.unwrap();
            }
            handle.sleep(NANOS_PER_SECOND).await;
            let again = open(&files, &handle, &catching_up(), 4).await;
            let (instance, _) = again.unwrap_or_else(|error| panic!("polls {polls}: {error}"));
            assert!(dump(&instance, tree).await.unwrap() == rows, "polls {polls}");
            is_open
        });
        if opened {
            return;
        }
    }
}

/// Why it matters: a page has gone bad, and log that comes later makes it anew. Whoever tried to
/// activate too early must still be able to redo that log.
#[test]
fn an_activation_that_fails_sets_no_log_aside() {
    let without_images = || Setup { page_images: false, ..setup() };
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let tree = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&without_images())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        put(&instance, tree, 1, 1).await;
        instance.close().await.unwrap();
        tree
    });
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&without_images())).await;
        put(&instance, tree, 2, 2).await;
    });
    live(&disk, move |files, handle| async move {
        let held = InstanceOptions { hold_checkpoint: true, ..options(&setup()) };
        let instance = open_with(&files, &handle, held).await;
        next_generation(&instance).await;
        put(&instance, tree, 3, 3).await;
    });
    let of_root = PageSize::KIB_4.offset_of(tree.root);
    assert!(disk.corrupt(database_path(1), of_root, |bytes| bytes[..4096].fill(0xA5)));
    live(&disk, move |files, handle| async move {
        let mut recovery = begin(&files, &handle).await;
        let last = reader(&files).generations().await.unwrap().last().unwrap().generation;
        while recovery.next_generation() < last {
            assert!(recovery.feed_next().await.unwrap());
        }
        recovery.give_up_commits();
        let found = activate(recovery).await.map(drop);
        assert!(matches!(found, Err(EngineError::DamagedPages { .. })), "{found:?}");
        let instance = open_with(&files, &handle, options(&setup())).await;
        assert_eq!(dump(&instance, tree).await.unwrap().len(), 3);
    });
}

fn log_files(disk: &MemoryDisk) -> BTreeSet<String> {
    let names = disk.list_files().into_iter().map(|(path, _)| path.display().to_string());
    names.filter(|name| name.contains("E00") && !name.contains("tmp")).collect()
}

/// Why it matters: an older copy of the database and of `E00.log` is put back over a folder in
/// which newer generations have been closed. All of that log is redone; if the old file took the
/// place of the newest of it, the next recovery would find a gap.
#[test]
fn an_older_current_generation_takes_the_place_of_no_other() {
    for (closes, closed_twin, newer) in
        [(false, true, 5), (true, true, 5), (true, false, 5), (false, true, 0)]
    {
        let story = format!("closed {closes}, twin {closed_twin}, newer {newer}");
        let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
        let watched = disk.clone();
        let (tree, snapshot) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&setup())).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            put(&instance, tree, 0, 1).await;
            let snapshot = watched.snapshot();
            if closes {
                instance.close().await.unwrap();
                return (tree, watched.snapshot());
            }
            put(&instance, tree, 1, 1).await;
            next_generation(&instance).await;
            (tree, snapshot)
        });
        live(&disk, move |files, handle| async move {
            let kept = Setup { circular: false, ..setup() };
            let instance = open_with(&files, &handle, options(&kept)).await;
            for number in 10..10 + newer {
                put(&instance, tree, number, 1).await;
                next_generation(&instance).await;
            }
        });
        for (path, bytes) in snapshot.into_iter().filter(|(path, _)| !path.ends_with("E00tmp.log"))
        {
            disk.load(Path::new("/").join(path), &bytes);
        }
        if !closed_twin {
            let deleted = live(&disk, |files, _| async move {
                files.delete(&LogNames::new(LOG, "E00").closed(1), Context::default()).await
            });
            deleted.unwrap();
        }
        let before = log_files(&disk);
        if closes {
            // A file that was shut down, beside log that was not: it is older, and is refused.
            live(&disk, move |files, handle| async move {
                let refused = open(&files, &handle, &setup(), 0).await.err().expect(&story);
                assert!(refused.to_string().contains("older than its log"), "{story}: {refused}");
            });
            assert_eq!(log_files(&disk), before);
            continue;
        }
        let mut rows = None;
        for life in 0..3 {
            let s = story.clone();
            let found = live(&disk, move |files, handle| async move {
                let opened = open(&files, &handle, &setup(), life).await;
                let (instance, _) = opened.unwrap_or_else(|error| panic!("{s}, {life}: {error}"));
                put(&instance, tree, 100 + life, 1).await;
                dump(&instance, tree).await.unwrap()
            });
            let fewer = rows.replace(found.clone()).unwrap_or_default();
            assert!(fewer.keys().all(|key| found.contains_key(key)), "{story}");
            assert!(life == 0 || found.len() == fewer.len() + 1, "{story}: life {life}");
        }
        let after = log_files(&disk);
        assert!(after.is_superset(&before), "{story}: {before:?} {after:?}");
    }
}

/// A log of some generations with a row in each; all records of it.
fn generations_with_rows(disk: &Rc<MemoryDisk>, count: u64) -> Vec<(Lsn, LogRecord)> {
    live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        for number in 0..count {
            put(&instance, tree, number, 1).await;
            next_generation(&instance).await;
        }
        handle.sleep(2 * NANOS_PER_SECOND).await;
        LogFollower::new(reader(&files), Lsn::new(1, 0)).poll().await.unwrap()
    })
}

/// Why it matters: a read fails once, or takes too long, and a copy goes on without the records
/// before it.
#[test]
fn a_follower_that_failed_or_was_dropped_is_told_every_record_all_the_same() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let all = generations_with_rows(&disk, 4);
    let watched = disk.clone();
    live(&disk, move |files, _| async move {
        for number in 1..40 {
            let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
            let fails = FaultRule::new(Effect::Fail(DiskErrorKind::Medium));
            watched.inject(fails.with_kind(OperationKind::Read).nth(number));
            let mut told = follower.poll().await.unwrap_or_default();
            watched.clear_faults();
            told.extend(follower.poll().await.unwrap());
            assert!(told == all, "failed {number}: {} of {} records", told.len(), all.len());

            let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
            let told = give_up_after(number, follower.poll()).await;
            let mut told = told.map(Result::unwrap).unwrap_or_default();
            told.extend(follower.poll().await.unwrap());
            assert!(told == all, "dropped {number}: {} of {} records", told.len(), all.len());
        }
    });
}

/// Why it matters: a copy that fetches the pages named, and no others, keeps old ones.
#[test]
fn pages_touched_since_a_place_whose_log_was_purged_are_not_named_in_part() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    generations_with_rows(&disk, 4);
    live(&disk, |files, _| async move {
        files.delete(&LogNames::new(LOG, "E00").closed(1), Context::default()).await.unwrap();
        let found = reader(&files).touched_since(Lsn::new(1, 0)).await;
        assert!(matches!(found, Err(EngineError::LogMissing { generation: 1, .. })), "{found:?}");
        let found = reader(&files).touched_since(Lsn::new(2, 100_000)).await;
        assert!(matches!(found, Err(EngineError::ForeignLog { .. })), "{found:?}");
        reader(&files).touched_since(Lsn::new(2, 0)).await.unwrap();
    });
}

/// Why it matters: generations were given up, and a client has followed them. It would wait until
/// the new history is as long as the old one, and miss all that came before.
#[test]
fn who_has_followed_by_generations_further_than_the_log_goes_is_told_so() {
    let (disk, tree, _) = killed_in_a_long_transaction();
    live(&disk, move |files, handle| async move {
        let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
        follower.poll().await.unwrap();
        let place = follower.position();
        let mut recovery = begin(&files, &handle).await;
        recovery.feed_next().await.unwrap();
        recovery.give_up_commits();
        let instance = activate(recovery).await.unwrap();
        let log = instance.store().log.clone();
        assert!(log.tip().generation + 1 < place.generation);
        let mut tail = LogTail::begin(&log, reader(&files), place, 1 << 20);
        let followed = follower.poll().await.map(drop);
        let touched = reader(&files).touched_since(place).await.map(drop);
        for number in 6000..6006 {
            put(&instance, tree, number, 5).await;
            next_generation(&instance).await;
        }
        let told = tail.next().await.map(drop);
        for (found, who) in [(told, "tail"), (followed, "follower"), (touched, "touched pages")] {
            assert!(matches!(found, Err(EngineError::ForeignLog { .. })), "{who}: {found:?}");
        }
        // What is to come next may be waited for.
        let to_come = Lsn::new(log.tip().generation + 1, 0);
        let mut tail = LogTail::begin(&log, reader(&files), to_come, 1 << 20);
        assert!(LogFollower::new(reader(&files), to_come).poll().await.unwrap().is_empty());
        next_generation(&instance).await;
        assert_eq!(tail.next().await.unwrap().unwrap().from, to_come);
    });
}

/// Killed with an open transaction, in generations of their own, with little checkpoint depth.
fn short_lives(disk: &Rc<MemoryDisk>, short: fn() -> Setup) -> Tree {
    let tree = live(disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&short())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        make_durable(&instance).await;
        tree
    });
    for life in 0..3u64 {
        live(disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&short())).await;
            let long = instance.begin();
            for number in 0..4 {
                long.insert(tree, &row_key(900 + number), &[7; 400]).await.unwrap();
                put(&instance, tree, life * 4 + number, 1).await;
                if number % 2 == 0 {
                    next_generation(&instance).await;
                }
            }
            leave_open(&handle, long);
        });
    }
    tree
}

/// Why it matters: such an opening writes pages, moves the checkpoint and deletes log before
/// anybody works, and each of that can be cut short by the power or by an error.
#[test]
fn an_opening_that_lets_go_of_log_may_be_cut_short_anywhere() {
    let short = || Setup { checkpoint_generations: 1, page_images: false, ..Setup::default() };
    let memory = || MemoryOptions { atomic_write_bytes: 4096, ..MemoryOptions::default() };
    let effects = [
        Effect::CutPowerWhenDone,
        Effect::Fail(DiskErrorKind::Full),
        Effect::Fail(DiskErrorKind::Medium),
    ];
    for effect in effects {
        for nth in (1..).map(|step| step * 11) {
            let disk = disk_with_databases(1, &short(), memory());
            let tree = short_lives(&disk, short);
            let (off, opened) = (disk.clone(), Rc::new(Cell::new(false)));
            let is_open = opened.clone();
            run_until_power_lost(&disk, move |files, handle| async move {
                off.inject(FaultRule::new(effect).nth(nth));
                let instance = open(&files, &handle, &short(), 5).await;
                off.clear_faults();
                is_open.set(instance.is_ok());
            });
            live(&cut_power(&disk), move |files, handle| async move {
                let found = open(&files, &handle, &short(), 6).await;
                let (instance, _) =
                    found.unwrap_or_else(|error| panic!("{effect:?} {nth}: {error}"));
                assert_eq!(dump(&instance, tree).await.unwrap().len(), 12, "{effect:?} {nth}");
                instance.close().await.unwrap();
            });
            if opened.get() {
                break;
            }
        }
    }
}

/// Why it matters: an option that is far too large must not wrap around to one that is too small,
/// nor stop an instance.
#[test]
fn options_at_their_limits_do_no_harm() {
    type Change = fn(&mut InstanceOptions);
    let changes: [(Change, bool); 8] = [
        (|options| options.checkpoint_depth_bytes = u64::MAX, true),
        (|options| options.checkpoint_depth_bytes = 1 << 52, true),
        (|options| options.waypoint_generations = u32::MAX, true),
        (|options| options.extension_pages = u32::MAX, false),
        (|options| options.extension_pages = 0, true),
        (|options| options.log_buffer_bytes = 1, true),
        (|options| options.databases.push(database_path(1).with_extension("db")), false),
        (|options| options.writes_outstanding_max = usize::MAX, true),
    ];
    for (index, (change, is_taken)) in changes.into_iter().enumerate() {
        let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
        live(&disk, move |files, handle| async move {
            let mut options = options(&Setup::default());
            change(&mut options);
            let mut random = Random::from_seed(1);
            let opened = Instance::open(files, handle.clone(), options, &mut random).await;
            let Ok((instance, _)) = opened else {
                assert!(!is_taken, "{index}: {:?}", opened.map(drop));
                return;
            };
            let tree = instance.create_tree(1, 1, 50, 0, 300).await.unwrap();
            for number in 0..4 {
                put(&instance, tree, number, 1).await;
                next_generation(&instance).await;
            }
            handle.sleep(NANOS_PER_SECOND / 10).await;
            let is_deep = index < 2;
            assert!(!is_deep || instance.store().cache.dirty_frames() > 0, "{index}: written");
            instance.close().await.unwrap();
        });
    }
}

/// Why it matters: who finds a table under a name must find the only one, and what a refused one
/// had taken must not be lost to the file.
#[test]
fn a_table_whose_name_is_taken_is_refused_and_leaves_nothing() {
    let disk = disk_with_databases(1, &Setup::default(), MemoryOptions::default());
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&Setup::default())).await;
        let make = |name: &str| {
            let (instance, table) = (instance.clone(), message_table(name));
            handle.spawn(async move { instance.create_table(1, table).await.map(drop) })
        };
        let (one, other) = (make("Same"), make("Same"));
        let (one, other) = (one.await, other.await);
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        for name in ["same", "MSysObjects"] {
            assert!(make(name).await.is_err(), "{name}");
        }
        instance.open_table(1, "Same").await.unwrap();
        instance.close().await.unwrap();
        let deep = verify_deep(&files, &handle, database_path(1), DeepOptions::default()).await;
        assert!(deep.unwrap().findings.is_empty());
    });
}

/// Why it matters: a close that was cut short leaves one database clean and another dirty, and a
/// replica of both redoes their log in steps.
#[test]
fn of_two_databases_one_of_which_was_closed_both_are_recovered_in_steps() {
    let two = || Setup { databases: 2, ..setup() };
    let disk = disk_with_databases(1, &two(), MemoryOptions::default());
    let watched = disk.clone();
    let trees = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&two())).await;
        let mut trees = Vec::new();
        for database in 1..=2 {
            trees.push(instance.create_tree(database, 1, 50, 0, 16).await.unwrap());
        }
        for number in 0..6 {
            for tree in &trees {
                put(&instance, *tree, number, 1).await;
            }
            next_generation(&instance).await;
        }
        let both = [instance.database(1).unwrap(), instance.database(2).unwrap()];
        let is_dirty = |index: usize| both[index].header().needs_recovery();
        let closing = handle.spawn(instance.clone().close());
        while is_dirty(0) {
            handle.sleep(1_000).await;
        }
        let hangs = FaultRule::new(Effect::Hang).with_purpose(Purpose::Header);
        watched.inject(hangs.with_path_part("database 2"));
        handle.sleep(NANOS_PER_SECOND).await;
        watched.clear_faults();
        assert!(!closing.is_finished());
        trees
    });
    // Whoever waits for a write that hangs holds its file, so the power goes, too.
    live(&cut_power(&disk), move |files, handle| async move {
        for _ in 0..3 {
            let mut recovery =
                Recovery::begin(files.clone(), handle.clone(), options(&two())).await.unwrap();
            while recovery.next_generation() < 4 {
                assert!(recovery.feed_next().await.unwrap());
            }
            recovery.pause().await.unwrap();
        }
        let instance = open_with(&files, &handle, options(&two())).await;
        for tree in trees {
            assert_eq!(dump(&instance, tree).await.unwrap().len(), 6);
        }
        instance.close().await.unwrap();
    });
}

/// Why it matters: work that began before a close goes on after it, and must neither wait for ever
/// nor report success over files that are closed.
#[test]
fn what_goes_on_after_a_close_is_refused_or_whole() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    live(&disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        put(&instance, tree, 1, 1).await;
        let next = instance.store().log.tip().generation + 1;
        for (name, generation) in [("near", 1), ("next", next)] {
            instance.hold_log_durably(name, generation).await.unwrap();
        }
        let mut backup = Backup::start(&instance, 1, 64 * 1024).unwrap();
        backup.next_chunk().await.unwrap().unwrap();
        // Nothing waits for it in memory: it reads files that are closed.
        let log = instance.store().log.clone();
        let mut tail = LogTail::begin(&log, reader(&files), Lsn::new(1, 0), 0);
        instance.clone().close().await.unwrap();
        assert!(backup.next_chunk().await.is_err());
        assert!(backup.finish().await.is_err());
        assert!(touched_since(&instance, 1, 0).await.is_err());
        assert!(instance.hold_log_durably("late", 1).await.is_err());
        assert!(instance.checkpoint().await.is_err());
        let mut told = Vec::new();
        while let Some(run) = tail.next().await.unwrap() {
            told.extend(run.records().unwrap());
        }
        assert!(told == LogFollower::new(reader(&files), Lsn::new(1, 0)).poll().await.unwrap());
        let clean = Recovery::begin(files.clone(), handle.clone(), options(&setup())).await;
        let clean = clean.map(drop);
        assert!(matches!(clean, Err(EngineError::BadOption { .. })), "{clean:?}");
        let again = open_with(&files, &handle, options(&setup())).await;
        assert_eq!(again.holds().len(), 2);
        again.close().await.unwrap();
    });
}
