//! Two histories of one log stream. A copy takes over where its log ended and goes on; what the one
//! before it logged after that never happened. Where both have the generation in which they part,
//! its number and its creation time say nothing.

use std::rc::Rc;

use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::{Instance, InstanceOptions, Recovery};
use plimsoll_engine::log::Lsn;
use plimsoll_engine::log::follower::LogFollower;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::log::record::LogRecord;
use plimsoll_engine::log::tail::LogTail;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Context, Effect, FaultRule, Files, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND,
    OperationKind, Random,
};

use crate::life::*;
use crate::support::*;

fn setup(page_images: bool) -> Setup {
    Setup { page_images, checkpoint_generations: 20, cache_frames: 64, ..Setup::default() }
}

async fn insert(instance: &Rc<Instance>, tree: Tree, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let transaction = instance.begin();
        transaction.insert(tree, &row_key(number), &[number as u8; 700]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
    }
}

fn image(disk: &Rc<MemoryDisk>) -> Rc<MemoryDisk> {
    disk.crash_image(Loss::Nothing, &mut Random::from_seed(1))
}

/// Commits rows 0..20 and then 20..`rows` of one generation; what a copy had after the first 20,
/// and what there is in the end.
fn parted_in_one_generation(setup: &Setup, rows: u64) -> (Tree, Rc<MemoryDisk>, Rc<MemoryDisk>) {
    let disk = disk_with_databases(1, setup, MemoryOptions::default());
    let (watched, setup) = (disk.clone(), setup.clone());
    let (tree, copy) = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        insert(&instance, tree, 0..20).await;
        let copy = image(&watched);
        insert(&instance, tree, 20..rows).await;
        handle.sleep(NANOS_PER_SECOND).await;
        (tree, copy)
    });
    (tree, copy, image(&disk))
}

/// Recovers the copy and commits rows from 1000 on.
fn take_over(setup: &Setup, copy: &Rc<MemoryDisk>, tree: Tree) {
    let setup = setup.clone();
    live(copy, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        insert(&instance, tree, 1000..1020).await;
    });
}

/// Puts the new history behind the generation in which the old one ended.
fn give_new_history(to: &Rc<MemoryDisk>, from: &Rc<MemoryDisk>) {
    let names = LogNames::new(LOG, "E00");
    let own = to.bytes(names.current()).unwrap();
    to.load(names.closed(1), &own);
    to.load(names.current(), &from.bytes(names.current()).unwrap());
}

fn opened(setup: &Setup, disk: &Rc<MemoryDisk>, tree: Tree) -> Result<Vec<Vec<u8>>, EngineError> {
    let setup = setup.clone();
    live(disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 9).await?;
        let rows = dump(&instance, tree).await.unwrap();
        Ok(rows.into_keys().collect())
    })
}

/// Why it matters: rows of both histories would stand beside each other, and no check of the files
/// could tell.
#[test]
fn a_database_that_went_further_in_the_generation_of_the_fork_is_refused_the_new_history() {
    for (page_images, rows) in [(true, 21), (true, 60), (true, 400), (false, 21), (false, 400)] {
        let setup = setup(page_images);
        let (tree, copy, old) = parted_in_one_generation(&setup, rows);
        take_over(&setup, &copy, tree);
        give_new_history(&old, &copy);
        let found = opened(&setup, &old, tree);
        let is_refused = matches!(&found, Err(EngineError::Diverged { .. }));
        assert!(is_refused, "{rows} rows: {:?}", found.map(|rows| rows.len()));
    }
}

/// A flush that was under way when the power failed: one leg of a mirror lost it, the other has it,
/// and recovery read the first. It was never acknowledged, and what was acknowledged since does not
/// know of it.
#[test]
fn log_that_was_given_up_and_comes_back_is_cut_where_the_next_generation_goes_on() {
    for page_images in [true, false] {
        let setup = setup(page_images);
        let disk = disk_with_databases(1, &setup, MemoryOptions::default());
        let (watched, s) = (disk.clone(), setup.clone());
        let (tree, leg) = live(&disk, move |files, handle| async move {
            let instance = open_with(&files, &handle, options(&s)).await;
            let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
            insert(&instance, tree, 0..20).await;
            let leg = image(&watched);
            insert(&instance, tree, 20..21).await;
            (tree, leg)
        });
        let names = LogNames::new(LOG, "E00");
        let other_leg = disk.bytes(names.current()).unwrap();
        take_over(&setup, &leg, tree);
        leg.load(names.closed(1), &other_leg);
        let rows = opened(&setup, &leg, tree)
            .unwrap_or_else(|error| panic!("images {page_images}: {error}"));
        let mut wanted: Vec<Vec<u8>> = (0..20).chain(1000..1020).map(row_key).collect();
        wanted.sort();
        assert_eq!(rows, wanted, "images {page_images}");
    }
}

fn reader(files: &Files) -> LogReader {
    LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Context::default())
}

/// All records of the tail of a log that is closed meanwhile.
async fn told_by_tail(
    instance: Rc<Instance>,
    files: &Files,
    from: Lsn,
) -> Result<Vec<(Lsn, LogRecord)>, EngineError> {
    let mut tail = LogTail::begin(&instance.store().log, reader(files), from, 1 << 20);
    instance.close().await?;
    let mut told = Vec::new();
    while let Some(run) = tail.next().await? {
        told.extend(run.records()?);
    }
    Ok(told)
}

/// Why it matters: a copy that is fed log of a history that was given up is a copy of something
/// that never was.
#[test]
fn who_follows_the_log_is_told_of_one_history_only() {
    let setup = setup(true);
    let (tree, copy, old) = parted_in_one_generation(&setup, 60);
    take_over(&setup, &copy, tree);
    let names = LogNames::new(LOG, "E00");
    copy.load(names.closed(1), &old.bytes(names.current()).unwrap());
    live(&copy, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let followed = LogFollower::new(reader(&files), Lsn::new(1, 0)).poll().await.unwrap();
        let told = told_by_tail(instance, &files, Lsn::new(1, 0)).await.unwrap();
        let mut history = reader(&files).read_history(1).await.unwrap();
        let mut logged = Vec::new();
        while let Some(generation) = history.next().await.unwrap() {
            logged.extend(generation.records(0).map(Result::unwrap));
        }
        assert!(logged.iter().filter(|(at, _)| at.generation == 1).count() > 20);
        assert!(told == logged, "{} records told, {} logged", told.len(), logged.len());
        assert!(logged.starts_with(&followed) && followed.len() > 20);
    });
}

/// Why it matters: what a copy has heard may be taken back, and it comes back with a place that the
/// log does not reach any more. It must be told, and the instance must live on.
#[test]
fn who_has_followed_further_than_the_log_goes_is_told_so() {
    let setup = setup(true);
    let (tree, copy, old) = parted_in_one_generation(&setup, 60);
    let of_old = setup.clone();
    let place = live(&old, |files, _| async move {
        let mut follower = LogFollower::new(reader(&files), Lsn::new(1, 0));
        let told = follower.poll().await.unwrap();
        assert!(told.len() > 60);
        follower.position()
    });
    take_over(&of_old, &copy, tree);
    live(&copy, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup)).await;
        let followed = LogFollower::new(reader(&files), place).poll().await;
        assert!(matches!(followed, Err(EngineError::ForeignLog { .. })), "{followed:?}");
        let told = told_by_tail(instance, &files, place).await;
        assert!(matches!(told, Err(EngineError::ForeignLog { .. })), "{told:?}");
    });
}

/// Why it matters: the checkpoint file still names a place in the generation that was given up. In
/// the new one of that number nothing lay before it, and durable commits were not redone.
#[test]
fn a_checkpoint_of_a_history_given_up_hides_nothing_of_the_new_one() {
    let setup =
        Setup { circular: false, checkpoint_generations: 1, cache_frames: 400, ..Setup::default() };
    let disk = disk_with_databases(1, &setup, MemoryOptions::default());
    let (imaged, of_life) = (disk.clone(), setup.clone());
    let (tree, image) = live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&of_life)).await;
        let tree = instance.create_tree(1, 1, 50, 0, 64).await.unwrap();
        let other = instance.create_tree(1, 1, 51, 0, 64).await.unwrap();
        insert(&instance, tree, 0..20).await;
        let log = &instance.store().log;
        for _ in 0..4 {
            log.make_durable(log.begin_generation().end).await.unwrap();
            handle.sleep(2 * NANOS_PER_SECOND).await;
        }
        instance.checkpoint().await.unwrap();
        let image = [database_path(1), database_path(1).with_extension("jfm")]
            .map(|path| (path.clone(), imaged.bytes(path).expect("it is there")));
        for _ in 0..2 {
            log.make_durable(log.begin_generation().end).await.unwrap();
        }
        // A transaction keeps the checkpoint in generation 7, behind some of it.
        insert(&instance, tree, 100..160).await;
        let long = instance.begin();
        long.insert(other, &row_key(9_000), &[9; 200]).await.unwrap();
        log.make_durable(log.begin_generation().end).await.unwrap();
        insert(&instance, other, 0..200).await;
        handle.sleep(5 * NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
        assert_eq!(instance.store().checkpoint.get().generation, 7);
        drop(handle.spawn(async move {
            let _open = long;
            std::future::pending::<()>().await;
        }));
        (tree, image)
    });
    for (path, bytes) in image {
        disk.load(path, &bytes);
    }
    let (cutting, of_life) = (disk.clone(), setup.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        let options = InstanceOptions { checkpoint_depth_bytes: 100 << 20, ..options(&of_life) };
        let mut recovery = Recovery::begin(files, handle, options).await.unwrap();
        while recovery.next_generation() < 7 {
            assert!(recovery.feed_next().await.unwrap());
        }
        recovery.give_up_commits();
        let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
        insert(&instance, tree, 500..520).await;
        let file_of_checkpoint =
            FaultRule::new(Effect::CutPowerWhenSubmitted).with_kind(OperationKind::Write);
        cutting.inject(file_of_checkpoint.with_path_part(".chk"));
        let _ = instance.checkpoint().await;
        panic!("the checkpoint file was not written");
    });
    let found = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    live(&found, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let rows = dump(&instance, tree).await.unwrap();
        let lost = (500..520).filter(|number| !rows.contains_key(&row_key(*number)));
        assert_eq!(lost.collect::<Vec<_>>(), Vec::<u64>::new());
        instance.close().await.unwrap();
    });
}
