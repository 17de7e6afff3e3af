//! Removing any one sync makes a test fail. A disk that forgets one class of syncs stands in for an
//! engine without them; then power cuts show the loss: an acknowledged commit that is gone, or
//! databases that cannot be opened.
//!
//! Where forgetting a class does no harm, the table below says why it may still be there; the slow
//! form shows that it is indeed harmless.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::forgetful::{Forgetful, Sync};
use crate::support::*;
use plimsoll_io::{
    Clock, Executor, Files, Handle, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, Random, either,
};

/// What forgetting a class of syncs leads to.
enum Expected {
    /// A power cut shows it.
    Loss,
    /// Nothing, for this reason.
    Harmless(&'static str),
}

fn expected(sync: Sync) -> Expected {
    match sync {
        Sync::RolloverOfOld => Expected::Harmless(
            "the second directory sync of the rollover covers both renames, and nothing is written \
             to the new generation before it; \
             it is kept for file systems that do not order two renames of one directory",
        ),
        Sync::DatabaseLength => Expected::Harmless(
            "redo makes the file longer by itself, and the sync before a checkpoint covers \
             lengths; it is kept so that a full \
             thin-provisioned device shows before the log speaks of the new pages",
        ),
        Sync::FlushMapCreated | Sync::FlushMapName => Expected::Harmless(
            "a lost flush map is an empty one: its types are unknown until pages are read; kept so \
             that it is not lost for long",
        ),
        Sync::CheckpointBlocks | Sync::CheckpointCreated | Sync::CheckpointName => {
            Expected::Harmless(
                "an old or lost checkpoint file makes redo start at the generation the headers ask \
                 for, which is kept until they are durable; \
             kept because it bounds the time recovery takes",
            )
        }
        Sync::LogRead => Expected::Harmless(
            "only a process that was killed in a flush leaves log that can be read and is not \
             durable, and none is killed here: `lives/killed.rs`",
        ),
        _ => Expected::Loss,
    }
}

fn run_forgetting<F: Future<Output = ()> + 'static>(
    disk: &Rc<MemoryDisk>,
    forgetful: &Rc<Forgetful>,
    work: impl FnOnce(Files, Handle) -> F + 'static,
) {
    let executor = Executor::new(disk.clock().clone(), forgetful.clone());
    let handle = executor.handle();
    let guard = handle.sleep(3_600 * NANOS_PER_SECOND);
    drop(handle.spawn(async move {
        guard.await;
        panic!("the run does not end");
    }));
    let (power, files) = (disk.clone(), Files::new(forgetful.clone()));
    // Stalled means that the power is off.
    let _ = executor.run(async move {
        either(work(files, handle), async move { power.power_lost().await }).await;
    });
}

fn setup_for(random: &mut Random) -> Setup {
    Setup {
        cache_frames: 64 + random.below(30),
        checkpoint_generations: 1,
        databases: 1 + random.below(2) as u8,
        ..Setup::default()
    }
}

/// Creates, opens, works with frequent checkpoints, and is cut at some event; audits what is found.
/// Answers how many operations were forgotten.
fn world(seed: u64, forget: Option<Sync>, seen: &RefCell<BTreeMap<String, u64>>) -> u64 {
    let mut random = Random::from_seed(seed).child("world");
    let setup = setup_for(&mut random);
    let latency = Latency::Exponential { fixed_ns: 20_000, mean_ns: 100_000 };
    let memory = MemoryOptions { latency: LatencyPlan::of(latency), ..MemoryOptions::default() };
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, seed, memory);
    let forgetful = Forgetful::new(disk.clone(), forget);
    let known: Rc<RefCell<Known>> = Rc::default();
    // Most of what matters happens early; some worlds live long enough for several generations.
    let last_event = [60, 200, 600, 3_000, 20_000][random.below(5) as usize];
    disk.power_cut_at_event(1 + random.below(last_event));
    let (working, books) = (setup.clone(), known.clone());
    run_forgetting(&disk, &forgetful, move |files, handle| async move {
        busy_life(files, handle, working, books, seed).await;
    });
    disk.power_cut();
    for (name, count) in forgetful.seen() {
        *seen.borrow_mut().entry(name).or_default() += count;
    }
    let loss = if random.chance(0.5) { Loss::Everything } else { Loss::Drawn };
    let image = disk.crash_image(loss, &mut random);
    let known = known.borrow();
    // The second header copy is for a first one that cannot be read; both must be sufficient at any
    // moment.
    let wreck_first_copy = random.chance(0.3);
    let wreck_first_copy =
        forget == Some(Sync::HeaderSecond) || (forget.is_none() && wreck_first_copy);
    if known.created && wreck_first_copy {
        for number in 1..=setup.databases {
            image.corrupt(database_path(number), 0, |bytes| {
                bytes.iter_mut().take(1).for_each(|byte| *byte ^= 0xFF)
            });
        }
    }
    if !known.created {
        return forgetful.forgotten();
    }
    let (field, ledger) = (known.field.clone(), known.ledger.borrow().clone());
    run_on(&image.clock().clone(), &image, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, seed + 77).await.unwrap();
        if let Some(field) = field {
            audit(&instance, &field, &ledger).await.unwrap();
            work(&instance, &handle, &field, &Rc::new(RefCell::new(ledger)), seed + 78, 5).await;
        }
        instance.close().await.unwrap();
    })
    .unwrap();
    forgetful.forgotten()
}

/// What the outside was told.
#[derive(Default)]
struct Known {
    created: bool,
    field: Option<Field>,
    ledger: Rc<RefCell<Ledger>>,
}

async fn busy_life(
    files: Files,
    handle: Handle,
    setup: Setup,
    known: Rc<RefCell<Known>>,
    seed: u64,
) {
    if create_databases(&files, &setup).await.is_err() {
        return;
    }
    known.borrow_mut().created = true;
    for life in 0..2 {
        let Ok((instance, _)) = open(&files, &handle, &setup, seed + life).await else {
            return;
        };
        if known.borrow().field.is_none() {
            let Ok(field) = create_field(&instance, &setup, 1_500, 1_100).await else {
                return;
            };
            let tip = instance.store().log.tip();
            if instance.store().log.make_durable(tip).await.is_err() {
                return;
            }
            known.borrow_mut().field = Some(field);
        }
        let field = known.borrow().field.clone().expect("it was just set");
        let ledger = known.borrow().ledger.clone();
        for turn in 0..30 {
            work(&instance, &handle, &field, &ledger, seed * 100 + life * 40 + turn, 12).await;
            if instance.checkpoint().await.is_err() {
                return;
            }
        }
        if instance.close().await.is_err() {
            return;
        }
    }
}

async fn work(
    instance: &Rc<plimsoll_engine::instance::Instance>,
    handle: &Handle,
    field: &Field,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    transactions: u64,
) {
    let weights = Weights {
        insert: 4,
        delete: 1,
        replace: 4,
        lazy: 0.1,
        rollback: 0.1,
        savepoint: 0.1,
        operations_max: 6,
        narrow: 0.1,
    };
    let mut joins = Vec::new();
    for session in 0..2u64 {
        let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            for number in 0..transactions {
                let serial = seed * 100_000 + session * 1_000 + number;
                let done =
                    one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                        .await;
                if done.is_err() {
                    return;
                }
            }
        }));
    }
    for join in joins {
        join.await;
    }
}

/// The first seed of which the audit fails.
fn first_loss(sync: Sync, worlds: u64) -> Option<u64> {
    let seen = RefCell::default();
    (1..=worlds)
        .find(|seed| catch_unwind(AssertUnwindSafe(|| world(*seed, Some(sync), &seen))).is_err())
}

#[test]
fn with_every_sync_done_nothing_is_lost_and_every_sync_is_known() {
    let seen = RefCell::default();
    for seed in first_seed(1)..=first_seed(40) {
        world(seed, None, &seen);
    }
    let seen = seen.into_inner();
    println!("{seen:?}");
    for sync in Sync::ALL {
        let name = format!("{sync:?}");
        assert!(seen.contains_key(&name), "{name} never happened: the worlds are too small");
    }
    let unknown: Vec<&String> = seen.keys().filter(|name| name.starts_with("unknown")).collect();
    assert!(unknown.is_empty(), "syncs this test does not know: {unknown:?}");
}

#[test]
fn forgetting_any_one_sync_that_matters_is_found_out() {
    let mut missed = Vec::new();
    for sync in Sync::ALL {
        if matches!(expected(sync), Expected::Loss) {
            match first_loss(sync, 400) {
                Some(seed) => println!("{sync:?}: found out by seed {seed}"),
                None => missed.push(sync),
            }
        }
    }
    assert!(missed.is_empty(), "nobody misses {missed:?}");
}

#[test]
#[ignore = "slow: hundreds of power cuts for every sync that is not strictly needed; `make slow`"]
fn forgetting_a_sync_that_is_said_to_be_harmless_is_harmless() {
    for sync in Sync::ALL {
        if let Expected::Harmless(why) = expected(sync) {
            let found = first_loss(sync, 400);
            assert!(found.is_none(), "{sync:?}: seed {found:?} contradicts: {why}");
            println!("{sync:?}: {why}");
        }
    }
}
