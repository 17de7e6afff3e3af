//! The n-th I/O fails, for every n: while an instance is opened, works, checkpoints, shuts down and
//! opens again, and while it recovers.
//!
//! Whatever fails, nothing panics, nothing hangs (an hour of virtual time is the guard), no file
//! stays open, no memory is left over, and when the disk is sound again the databases open and hold
//! every acknowledged commit. One run per I/O and kind of error, on a copy of the same disk. The
//! failing operation may be one of the background tasks', so the error may show anywhere or
//! nowhere: what counts is what is found afterwards.

use std::cell::RefCell;
use std::rc::Rc;

use crate::support::accounts::Accounts;
use crate::support::*;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Files, Handle, Loss, MemoryDisk, MemoryOptions,
    OperationKind, Random, Stage, TraceEntry,
};

const KINDS: [DiskErrorKind; 3] = [DiskErrorKind::Medium, DiskErrorKind::Full, DiskErrorKind::Gone];

/// Whether only the n-th operation fails, or every one from the n-th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Once,
    FromThenOn,
}

/// A disk to copy, and what is known of its databases.
struct Base {
    disk: Rc<MemoryDisk>,
    field: Field,
    ledger: Ledger,
    setup: Setup,
}

fn setup() -> Setup {
    Setup { cache_frames: 64, checkpoint_generations: 1, ..Setup::default() }
}

fn weights() -> Weights {
    Weights {
        insert: 4,
        delete: 2,
        replace: 3,
        lazy: 0.3,
        rollback: 0.15,
        savepoint: 0.2,
        operations_max: 6,
        narrow: 0.2,
    }
}

/// Two sessions of a few dozen transactions. Stops at the first error.
async fn work(
    instance: &Rc<Instance>,
    handle: &Handle,
    field: &Field,
    ledger: &Rc<RefCell<Ledger>>,
    seed: u64,
    transactions: u64,
) {
    let mut joins = Vec::new();
    for session in 0..2u64 {
        let (instance, field, ledger) = (instance.clone(), field.clone(), ledger.clone());
        let mut random = Random::from_seed(seed).child(&format!("session {session}"));
        joins.push(handle.spawn(async move {
            for number in 0..transactions {
                let serial = seed * 1_000_000 + session * 1_000 + number;
                let done =
                    one_transaction(&instance, &field, &weights(), serial, &mut random, &ledger)
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

/// A database that is larger than the cache, closed cleanly or left as a power cut leaves it.
fn base(clean: bool) -> Base {
    let setup = setup();
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryOptions { trace_operations: 10_000, ..MemoryOptions::default() };
    let disk = new_disk(&clock, 7, memory);
    let creating = setup.clone();
    let (field, ledger) = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &creating).await.unwrap();
        let (instance, _) = open(&files, &handle, &creating, 7).await.unwrap();
        let field = create_field(&instance, &creating, 600, 700).await.unwrap();
        let ledger: Rc<RefCell<Ledger>> = Rc::default();
        work(&instance, &handle, &field, &ledger, 1, 110).await;
        if clean {
            instance.close().await.unwrap();
        } else {
            instance.checkpoint().await.unwrap();
            work(&instance, &handle, &field, &ledger, 2, 25).await;
            // Left unfinished, so that recovery has something to take back.
            let unfinished = instance.begin();
            for number in 0..12 {
                let _ = unfinished.replace(field.data[0], &row_key(number * 5), &[9; 300]).await;
            }
            instance.store().log.make_durable(instance.store().log.tip()).await.unwrap();
            std::mem::forget(unfinished);
        }
        let books = ledger.borrow().clone();
        (field, books)
    })
    .unwrap();
    Base { disk, field, ledger, setup }
}

/// Opens, works over a rollover with a checkpoint in the middle, closes, opens and closes again.
/// Any step may fail.
async fn story(
    files: Files,
    handle: Handle,
    setup: Setup,
    field: Field,
    ledger: Rc<RefCell<Ledger>>,
) {
    let Ok((instance, _)) = open(&files, &handle, &setup, 11).await else {
        return;
    };
    work(&instance, &handle, &field, &ledger, 3, 180).await;
    let _ = instance.checkpoint().await;
    work(&instance, &handle, &field, &ledger, 4, 180).await;
    let closed = instance.close().await;
    if let Ok((instance, report)) = open(&files, &handle, &setup, 12).await {
        assert!(
            closed.is_err() || !report.recovered,
            "a close that reports success leaves clean databases"
        );
        let _ = instance.close().await;
    }
}

/// Only opening and closing: for a base that needs recovery.
async fn recovery_story(files: Files, handle: Handle, setup: Setup) {
    if let Ok((instance, _)) = open(&files, &handle, &setup, 13).await {
        let _ = instance.close().await;
    }
}

/// Runs the story on a copy of the base with a fault; answers how many operations there were.
fn run_with_fault(base: &Base, rule: Option<FaultRule>, recovering: bool) -> u64 {
    let mut random = Random::from_seed(99);
    let disk = base
        .disk
        .crash_image(if recovering { Loss::Everything } else { Loss::Nothing }, &mut random);
    let label = format!("{rule:?}");
    let accounts = Accounts::open(&disk);
    if let Some(rule) = rule {
        disk.inject(rule);
    }
    let ledger = Rc::new(RefCell::new(base.ledger.clone()));
    let (setup, field, books) = (base.setup.clone(), base.field.clone(), ledger.clone());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        if recovering {
            recovery_story(files, handle, setup).await;
        } else {
            story(files, handle, setup, field, books).await;
        }
    })
    .unwrap_or_else(|_| panic!("{label}: everything waits for ever"));
    let operations = disk.events() / 2;
    if label == "None" && !recovering {
        let renames =
            disk.trace().iter().filter(|entry| entry.kind == OperationKind::Rename).count();
        assert!(
            renames > 8,
            "the story rolls over: opening twice alone takes four renames, seen twice each"
        );
    }
    disk.clear_faults();
    accounts.settle(&disk, &label);
    let close_failed = |entry: &TraceEntry| {
        entry.kind == OperationKind::Close && matches!(entry.stage, Stage::Failed(_))
    };
    if disk.trace().iter().any(close_failed) {
        // A file whose close fails stays locked on this disk; a real one is closed even so. Another
        // process takes over.
        let image = disk.crash_image(Loss::Nothing, &mut random);
        check_sound(base, &image, &ledger.borrow(), &label);
    } else {
        // The same disk, the same process: whatever is still open is found out by its lock.
        check_sound(base, &disk, &ledger.borrow(), &label);
    }
    accounts.settle(&disk, &label);
    operations
}

fn check_sound(base: &Base, disk: &Rc<MemoryDisk>, ledger: &Ledger, label: &str) {
    let (setup, field, books) = (base.setup.clone(), base.field.clone(), ledger.clone());
    let label = label.to_owned();
    let hung = label.clone();
    run_on(&disk.clock().clone(), disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 14)
            .await
            .unwrap_or_else(|error| panic!("{label}: cannot be opened afterwards: {error}"));
        let kept = audit(&instance, &field, &books).await;
        kept.unwrap_or_else(|error| panic!("{label}: cannot be read afterwards: {error}"));
        instance.close().await.unwrap();
    })
    .unwrap_or_else(|_| panic!("{hung}: opening afterwards waits for ever"));
}

fn rule(kind: DiskErrorKind, nth: u64, extent: Extent) -> FaultRule {
    let mut rule = FaultRule::new(Effect::Fail(kind)).nth(nth);
    if extent == Extent::FromThenOn {
        rule.limit = u64::MAX;
    }
    rule
}

fn every(recovering: bool, choose: impl Fn(u64) -> Vec<(DiskErrorKind, Extent)>) {
    let base = base(!recovering);
    let operations = run_with_fault(&base, None, recovering);
    assert!(operations > 100, "only {operations} operations: nothing to fail");
    let mut runs = 0;
    for nth in 1..=operations {
        for (kind, extent) in choose(nth) {
            run_with_fault(&base, Some(rule(kind, nth, extent)), recovering);
            runs += 1;
        }
    }
    println!("{operations} operations, {runs} runs with one of them failing");
}

/// Every third operation, each kind of error in turn.
fn a_sample(nth: u64) -> Vec<(DiskErrorKind, Extent)> {
    if nth.is_multiple_of(3) { one_of_each(nth / 3) } else { Vec::new() }
}

fn one_of_each(nth: u64) -> Vec<(DiskErrorKind, Extent)> {
    let extent = if nth.is_multiple_of(4) { Extent::FromThenOn } else { Extent::Once };
    vec![(KINDS[nth as usize % 3], extent)]
}

fn all(_nth: u64) -> Vec<(DiskErrorKind, Extent)> {
    KINDS.into_iter().flat_map(|kind| [(kind, Extent::Once), (kind, Extent::FromThenOn)]).collect()
}

#[test]
fn a_run_survives_any_one_io_failing() {
    every(false, a_sample);
}

#[test]
fn recovery_survives_any_one_io_failing() {
    every(true, one_of_each);
}

#[test]
#[ignore = "slow: six kinds of failure for every operation; `make slow`"]
fn a_run_and_recovery_survive_every_io_failing_in_every_way() {
    every(false, all);
    every(true, all);
}

fn is_medium_error(error: &EngineError) -> bool {
    matches!(error, EngineError::Disk(error) if error.kind == DiskErrorKind::Medium)
}

/// After the error nothing more is promised, so nothing more may be acknowledged.
#[test]
fn a_failed_log_write_poisons_the_instance() {
    let base = base(true);
    let disk = base.disk.crash_image(Loss::Nothing, &mut Random::from_seed(5));
    let (setup, field, broken) = (base.setup.clone(), base.field.clone(), disk.clone());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 15).await.unwrap();
        broken.inject(
            FaultRule::new(Effect::Fail(DiskErrorKind::Medium))
                .with_purpose(plimsoll_io::Purpose::LogWrite)
                .nth(1),
        );
        let transaction = instance.begin();
        transaction.insert(field.serials, b"lost", b"lost").await.unwrap();
        let committed = transaction.commit(plimsoll_engine::transaction::Commit::Durable).await;
        assert!(
            matches!(&committed, Err(EngineError::Poisoned { cause }) if is_medium_error(cause)),
            "{committed:?}"
        );
        let next = instance.begin();
        let changed = next.insert(field.serials, b"more", b"more").await;
        assert!(
            matches!(&changed, Err(EngineError::Poisoned { cause }) if is_medium_error(cause)),
            "{changed:?}"
        );
        drop(next);
        assert!(instance.close().await.is_err());
    })
    .unwrap();
    let ledger = base.ledger.clone();
    check_sound(&base, &disk, &ledger, "after a failed log write");
}
