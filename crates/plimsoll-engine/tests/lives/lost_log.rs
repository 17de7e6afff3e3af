//! Log files that are gone. Recovery may open only what holds every commit that was acknowledged,
//! or say what is missing.

use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{Context, MemoryDisk, MemoryOptions, NANOS_PER_SECOND};

use crate::life::*;
use crate::support::*;

/// The newest generation in which a commit is acknowledged.
const NEWEST: u32 = 9;

fn setup() -> Setup {
    Setup { cache_frames: 4_000, checkpoint_generations: 20, databases: 2, ..Setup::default() }
}

/// Commits until the log is in its ninth generation, and dies. No page is written but those that
/// are given.
fn busy_life(disk: &Rc<MemoryDisk>) {
    live(disk, |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let mut number = 0;
        while instance.store().log.durable().generation < NEWEST {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 900]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            number += 1;
        }
        for database in instance.store().databases.all() {
            assert_eq!(database.header().generation_max_committed, NEWEST);
        }
    });
}

/// Why it matters: an administrator who restores a log folder from yesterday has to be told that
/// today's commits are not in it.
#[test]
fn however_many_of_the_newest_generations_are_gone_recovery_says_so() {
    for gone in 1..=NEWEST - 1 {
        let disk = disk_with_databases(u64::from(gone), &setup(), MemoryOptions::default());
        busy_life(&disk);
        live(&disk, move |files, handle| async move {
            let names = LogNames::new(LOG, "E00");
            files.delete(&names.current(), Context::default()).await.unwrap();
            for generation in NEWEST + 1 - gone..NEWEST {
                files.delete(&names.closed(generation), Context::default()).await.unwrap();
            }
            let opened = open(&files, &handle, &setup(), 1).await;
            let found = opened.map(drop).unwrap_err();
            let is_told = matches!(
                found,
                EngineError::CommittedLogMissing { committed: NEWEST, .. }
                    | EngineError::LogMissing { .. }
            );
            assert!(is_told, "{gone} generations gone: {found}");
        });
    }
}

/// Why it matters: the header must not promise a generation before there is one, or a cut in
/// between makes databases that cannot be opened.
#[test]
fn a_cut_at_any_event_of_a_rollover_leaves_databases_that_open() {
    let disk = disk_with_databases(1, &setup(), MemoryOptions::default());
    let images: Rc<std::cell::RefCell<Vec<Rc<MemoryDisk>>>> = Rc::default();
    let (taken, watched) = (images.clone(), disk.clone());
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        let random = std::cell::RefCell::new(plimsoll_io::Random::from_seed(3));
        for number in 0..2_000 {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 900]).await.unwrap();
            transaction.commit(Commit::Lazy).await.unwrap();
            if instance.store().log.unflushed_bytes()
                + u64::from(instance.store().log.durable().offset)
                > 1_030_000
            {
                break;
            }
        }
        // From here on every event, until the rollover is over.
        let first = instance.store().log.durable().generation;
        let (again, out) = (Rc::new(random), taken.clone());
        watched.look_at_cuts(move |disk| {
            let loss = plimsoll_io::Loss::Drawn;
            out.borrow_mut().push(disk.crash_image(loss, &mut again.borrow_mut()));
            disk.power_cut_at_event(disk.events() + 1);
            plimsoll_io::AfterLook::GoOn
        });
        watched.power_cut_at_event(watched.events() + 1);
        let mut number = 10_000;
        while instance.store().log.durable().generation == first {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 900]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            number += 1;
        }
        handle.sleep(NANOS_PER_SECOND / 100).await;
        watched.look_at_cuts(|_| plimsoll_io::AfterLook::GoOn);
    });
    let images = images.take();
    println!("{} cuts", images.len());
    assert!(images.len() > 20, "{} cuts", images.len());
    for image in images {
        live(&image, |files, handle| async move {
            open_with(&files, &handle, options(&setup())).await.abandon().await.unwrap();
        });
    }
}
