//! Recovery one generation at a time: paused, killed between any two generations, begun again,
//! activated before the log ends. However it is cut up, what comes out is a run of commits without
//! a gap, and fed to the end it is every acknowledged one. What may not be activated is refused,
//! and a copy that has gone another way is found out.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::*;
use plimsoll_engine::btree::Tree;
use plimsoll_engine::error::{EngineError, PageDamage};
use plimsoll_engine::instance::{Instance, Recovery};
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::log::reader::LogReader;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, Disk, Effect, FaultRule, Loss, MemoryDisk, MemoryOptions, OperationKind, Purpose, Random,
};

fn setup() -> Setup {
    Setup {
        // So deep a checkpoint keeps every generation to be redone.
        checkpoint_generations: 100,
        cache_frames: 120,
        ..Setup::default()
    }
}

/// A disk whose power failed after several generations of work.
fn crashed(seed: u64) -> (Rc<MemoryDisk>, Field, Ledger) {
    crashed_with(setup(), seed)
}

fn crashed_with(setup: Setup, seed: u64) -> (Rc<MemoryDisk>, Field, Ledger) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let kept: Rc<RefCell<Option<Field>>> = Rc::default();
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let (field_out, books, off) = (kept.clone(), ledger.clone(), disk.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
        let field = create_field(&instance, &setup, 1_000, 500).await.unwrap();
        *field_out.borrow_mut() = Some(field.clone());
        let mut joins = Vec::new();
        for session in 0..4u64 {
            let (instance, field, ledger) = (instance.clone(), field.clone(), books.clone());
            let mut random = Random::from_seed(seed).child(&format!("session {session}"));
            joins.push(handle.spawn(async move {
                let weights = Weights::swarm(&mut random);
                for number in 0..1_000_000 {
                    let serial = session * 10_000_000 + number;
                    one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                        .await
                        .unwrap();
                }
            }));
        }
        while instance.store().log.durable().generation < 6 {
            handle.sleep(10_000_000).await;
        }
        off.power_cut();
    });
    let mut random = Random::from_seed(seed).child("image");
    let image = disk.crash_image(Loss::Drawn, &mut random);
    let field = kept.borrow().clone().unwrap();
    let books = ledger.borrow().clone();
    (image, field, books)
}

async fn begin(files: &plimsoll_io::Files, handle: &plimsoll_io::Handle) -> Recovery {
    Recovery::begin(files.clone(), handle.clone(), options(&setup())).await.unwrap()
}

#[test]
fn recovery_goes_on_after_a_pause_or_a_kill_between_any_two_generations() {
    for seed in 0..3 {
        let (mut disk, field, books) = crashed(seed);
        let mut random = Random::from_seed(seed).child("steps");
        let mut steps = 0;
        loop {
            let clock = disk.clock().clone();
            let kill = random.chance(0.5);
            let more = run_on(&clock, &disk, move |files, handle| async move {
                let mut recovery = begin(&files, &handle).await;
                let before = recovery.position();
                let mut fed = 0;
                // At least two, or a start held back by an unfinished transaction would never be
                // passed.
                while fed < 2 + steps / 4 && recovery.feed_next().await.unwrap() {
                    fed += 1;
                }
                assert!(recovery.position() > before);
                let more = fed == 2 + steps / 4;
                if !kill {
                    recovery.pause().await.unwrap();
                }
                more
            })
            .unwrap();
            disk.power_cut();
            disk = disk.crash_image(Loss::Drawn, &mut random);
            steps += 1;
            if !more || steps > 40 {
                break;
            }
        }
        let clock = disk.clock().clone();
        run_on(&clock, &disk, move |files, handle| async move {
            let (instance, report) = open(&files, &handle, &setup(), 5).await.unwrap();
            assert!(report.recovered);
            audit(&instance, &field, &books).await.unwrap();
            instance.close().await.unwrap();
        })
        .unwrap();
    }
}

#[test]
fn a_pause_moves_the_start_of_redo_forward() {
    let (disk, field, books) = crashed(3);
    let clock = disk.clock().clone();
    run_on(&clock, &disk, move |files, handle| async move {
        let mut recovery = begin(&files, &handle).await;
        let first = recovery.next_generation();
        for _ in 0..4 {
            assert!(recovery.feed_next().await.unwrap());
        }
        let redone = recovery.statistics();
        assert!(redone.applied > 0 && redone.generations == 4);
        recovery.pause().await.unwrap();
        let mut recovery = begin(&files, &handle).await;
        assert!(recovery.next_generation() >= first);
        recovery.feed_all().await.unwrap();
        let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
        audit(&instance, &field, &books).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// Whoever gives up tries again at once, and must not find the databases locked by what was given
/// up.
#[test]
fn when_a_recovery_is_abandoned_nobody_holds_its_files() {
    let (disk, _, _) = crashed(5);
    let world = disk.clone();
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let mut recovery = begin(&files, &handle).await;
        assert!(recovery.feed_next().await.unwrap());
        recovery.abandon().await;
        assert_eq!(world.in_flight(), 0, "its files are still being closed");
    })
    .unwrap();
}

#[test]
fn missing_log_is_named() {
    let (disk, _, _) = crashed(5);
    let clock = disk.clock().clone();
    run_on(&clock, &disk, move |files, handle| async move {
        let names = LogNames::new(LOG, "E00");
        files.delete(&names.closed(3), Default::default()).await.unwrap();
        let refused = Recovery::begin(files.clone(), handle.clone(), options(&setup())).await;
        assert!(matches!(refused.err(), Some(EngineError::LogMissing { generation: 3, .. })));
    })
    .unwrap();
}

/// Pages may be written only when they are older than the newest three generations, so that the log
/// may end that much earlier.
fn with_waypoint() -> Setup {
    Setup {
        waypoint_generations: 3,
        // So small that pages are written all the time.
        cache_frames: 64,
        ..setup()
    }
}

async fn begin_with_waypoint(files: &plimsoll_io::Files, handle: &plimsoll_io::Handle) -> Recovery {
    Recovery::begin(files.clone(), handle.clone(), options(&with_waypoint())).await.unwrap()
}

/// The last generation of the log on a disk.
async fn last_generation(files: &plimsoll_io::Files) -> u32 {
    let reader = LogReader::new(files.clone(), LogNames::new(LOG, "E00"), Default::default());
    reader.generations().await.unwrap().last().unwrap().generation
}

/// Whoever activates before redo has reached what the pages hold would work on pages from the
/// future: it is refused, and nothing is lost by trying.
#[test]
fn recovery_cannot_be_activated_before_it_has_reached_the_pages() {
    let (disk, field, books) = crashed(7);
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        for fed in [0, 1] {
            let mut recovery = begin(&files, &handle).await;
            for _ in 0..fed {
                assert!(recovery.feed_next().await.unwrap());
            }
            recovery.give_up_commits();
            let refused = recovery.activate(&mut Random::from_seed(1)).await.err();
            assert!(
                matches!(refused, Some(EngineError::ActivatedTooEarly { .. })),
                "after {fed}: {refused:?}"
            );
        }
        let (instance, _) = open(&files, &handle, &setup(), 5).await.unwrap();
        audit(&instance, &field, &books).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// The header remembers how far the log went: when the newest generations are gone with
/// acknowledged commits in them, that is said before anybody works on, and who gives the commits up
/// gets a sound database without them.
#[test]
fn generations_lost_with_commits_are_missed_and_can_be_given_up() {
    let mut missed = 0;
    for seed in 10..14 {
        let (disk, field, mut books) = crashed_with(with_waypoint(), seed);
        books.acknowledged.clear();
        missed += run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let last = last_generation(&files).await;
            let names = LogNames::new(LOG, "E00");
            // The power may have gone while the last was renamed.
            let newest = [names.current(), names.closed(last), names.closed(last - 1)];
            for path in newest {
                if files.exists(&path, Default::default()).await.unwrap() {
                    files.delete(&path, Default::default()).await.unwrap();
                }
            }
            let is_missed = match open(&files, &handle, &with_waypoint(), 5).await {
                Ok((instance, _)) => {
                    instance.close().await.unwrap();
                    return 0;
                }
                Err(error) => matches!(error, EngineError::CommittedLogMissing { .. }),
            };
            let mut recovery = begin_with_waypoint(&files, &handle).await;
            recovery.feed_all().await.unwrap();
            recovery.give_up_commits();
            let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
            let survived = audit(&instance, &field, &books).await.unwrap();
            assert!(survived < books.committed.len(), "the lost log held commits");
            instance.close().await.unwrap();
            // And they are given up for good.
            let (instance, _) = open(&files, &handle, &with_waypoint(), 6).await.unwrap();
            instance.close().await.unwrap();
            u32::from(is_missed)
        })
        .unwrap();
    }
    // The header is written now and then: what was lost right after it shows nowhere.
    assert!(missed >= 3, "lost generations were missed {missed} times of 4");
}

/// Activated in the middle, the stream becomes another history: what is committed in it survives
/// the next crash, nothing of the old one comes back, the old log is still there to look at, and a
/// copy that followed the old history is refused the new one.
#[test]
fn a_stream_activated_in_the_middle_is_another_history() {
    let (disk, field, books) = crashed_with(with_waypoint(), 21);
    let before = disk.crash_image(Loss::Nothing, &mut Random::from_seed(1));
    let fork: Rc<RefCell<(u32, Ledger)>> = Rc::default();
    let (forked, off, tree) = (fork.clone(), disk.clone(), field.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        let last = last_generation(&files).await;
        let mut recovery = begin_with_waypoint(&files, &handle).await;
        while recovery.next_generation() < last - 1 {
            assert!(recovery.feed_next().await.unwrap());
        }
        recovery.give_up_commits();
        let mut ledger = books.clone();
        ledger.acknowledged.clear();
        let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
        let survived = audit(&instance, &tree, &ledger).await.unwrap();
        assert!(survived > 0 && survived < ledger.committed.len());
        ledger.committed.truncate(survived);
        let ledger = RefCell::new(ledger);
        let mut random = Random::from_seed(22);
        for number in 0..400 {
            let serial = 900_000_000 + number;
            one_transaction(
                &instance,
                &tree,
                &Weights::swarm(&mut random),
                serial,
                &mut random,
                &ledger,
            )
            .await
            .unwrap();
        }
        *forked.borrow_mut() = (last, ledger.into_inner());
        off.power_cut();
    });
    let (last, ledger) = fork.take();
    assert!(ledger.acknowledged.len() > 50, "commits after the fork were acknowledged");
    let image = disk.crash_image(Loss::Drawn, &mut Random::from_seed(3));
    let aside =
        |(path, _): &(std::path::PathBuf, u64)| path.extension().is_some_and(|end| end == "aside");
    assert_eq!(image.list_files().iter().filter(|file| aside(file)).count(), 2);
    let new_log: Vec<_> = image.snapshot().into_iter().collect();
    run_on(&image.clock().clone(), &image, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &with_waypoint(), 5).await.unwrap();
        audit(&instance, &field, &ledger).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();

    // The copy: the old databases with all of the old log redone, and then the log of the new
    // history in its place.
    let copy = before.clone();
    run_on(&before.clock().clone(), &before, move |files, handle| async move {
        let mut recovery = begin_with_waypoint(&files, &handle).await;
        while recovery.next_generation() < last {
            assert!(recovery.feed_next().await.unwrap());
        }
        for (path, _) in copy.list_files().into_iter().filter(|(path, _)| path.starts_with("log")) {
            let path = std::path::Path::new("/").join(path);
            files.delete(&path, Default::default()).await.unwrap();
        }
        for (path, bytes) in new_log.into_iter().filter(|(path, _)| path.starts_with("log")) {
            copy.load(path, &bytes);
        }
        let mut refused = None;
        while refused.is_none() {
            match recovery.feed_next().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => refused = Some(error),
            }
        }
        assert!(
            refused.is_none() || matches!(refused, Some(EngineError::ForeignLog { .. })),
            "{refused:?}"
        );
        let activated = recovery.activate(&mut Random::from_seed(2)).await;
        assert!(
            refused.is_some() || activated.is_err(),
            "a copy of the old history took the new log for its own"
        );
    })
    .unwrap();
}

/// The disk has acknowledged a write and lost it, the checkpoint has passed what was in it, and
/// then the page was changed again in the cache. What redo made of the old page would pass every
/// check, without the row in between.
#[test]
fn redo_changes_no_page_that_has_lost_a_write() {
    let setup = Setup {
        page_images: false,
        cache_frames: 400,
        checkpoint_generations: 1,
        ..Setup::default()
    };
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions {
        // Nothing but the lost write is wrong with this disk: it does not tear pages.
        atomic_write_bytes: 4096,
        ..MemoryOptions::default()
    };
    let disk = new_disk(&clock, 1, memory);
    let (losing, worked) = (disk.clone(), setup.clone());
    let (page, others) = run_on(&clock, &disk, move |files, handle| async move {
        let setup = worked;
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let kept = instance.create_tree(1, 1, 50, 0, 3).await.unwrap();
        let others = instance.create_tree(1, 1, 51, 0, 3).await.unwrap();
        let insert = async |key: &[u8]| {
            let transaction = instance.begin();
            transaction.insert(kept, key, key).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
        };
        insert(b"n").await;
        write_back_all_by_now(&instance, others).await;
        insert(b"m").await;
        let lost = FaultRule::new(Effect::LoseWrite)
            .with_kind(OperationKind::Write)
            .with_purpose(Purpose::DatabaseWrite);
        losing.inject(lost);
        write_back_all_by_now(&instance, others).await;
        losing.clear_faults();
        assert!(losing.injected()["lose_write"] > 0);
        instance.checkpoint().await.unwrap();
        insert(b"a").await;
        losing.power_cut();
        (kept.root, others.root)
    })
    .unwrap();
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(1));
    let opened = run_on(&image.clock().clone(), &image, move |files, handle| async move {
        open(&files, &handle, &setup, 2).await.map(|_| ())
    });
    match opened.unwrap() {
        Err(EngineError::DamagedPages { pages, .. }) => {
            let found = pages.iter().find(|(number, _)| *number == page);
            let too_old =
                found.is_some_and(|(_, damage)| matches!(damage, PageDamage::TooOld { .. }));
            assert!(too_old, "page {page} beside {others}: {pages:?}");
        }
        other => panic!("redo changed a page that had lost a write: {other:?}"),
    }
}

/// Writes log until every page that is dirty now has been written back: the checkpoint may not fall
/// further behind than a generation.
async fn write_back_all_by_now(instance: &Instance, others: Tree) {
    let now = instance.store().log.tip();
    for number in 0u64.. {
        let oldest = instance.store().cache.oldest_dirty();
        if oldest.is_some_and(|oldest| oldest >= now) {
            return;
        }
        assert!(number < 4_000, "{oldest:?} is dirty still, {now} was asked for");
        let transaction = instance.begin();
        let key = number.to_be_bytes();
        transaction.insert(others, &key, &[1; 3_000]).await.unwrap();
        transaction.rollback().await.unwrap();
    }
}
