//! Recovery one generation at a time: paused, killed between any two generations, begun again, activated anywhere. However it is cut up, what comes out
//! is a run of commits without a gap, and fed to the end it is every acknowledged one.

mod support;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Recovery;
use plimsoll_engine::log::names::LogNames;
use plimsoll_io::{Clock, Disk, Loss, MemoryDisk, MemoryOptions, Random};
use support::*;

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
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, MemoryOptions::default());
    let kept: Rc<RefCell<Option<Field>>> = Rc::default();
    let ledger: Rc<RefCell<Ledger>> = Rc::default();
    let (field_out, books, off) = (kept.clone(), ledger.clone(), disk.clone());
    run_until_power_lost(&disk, move |files, handle| async move {
        create_databases(&files, &setup()).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup(), seed).await.unwrap();
        let field = create_field(&instance, &setup(), 1_000, 500).await.unwrap();
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
    Recovery::begin(files.clone(), handle.clone(), options(&setup()))
        .await
        .unwrap()
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
                // At least two, or a start held back by an unfinished transaction would never be passed.
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

/// Whoever gives up tries again at once, and must not find the databases locked by what was given up.
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
        assert!(matches!(
            refused.err(),
            Some(EngineError::LogMissing { generation: 3, .. })
        ));
    })
    .unwrap();
}
