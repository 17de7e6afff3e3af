//! Faults that were found once, each with the shortest story that shows it.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Instance;
use plimsoll_engine::set_checksum;
use plimsoll_engine::transaction::Commit;
use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Handle, Latency, LatencyPlan, Loss, MemoryDisk,
    MemoryOptions, NANOS_PER_MILLISECOND, OperationKind, Purpose, Random, Tracking,
};

use crate::support::*;

fn small_cache() -> Setup {
    Setup { cache_frames: 64, checkpoint_generations: 1, ..Setup::default() }
}

/// Rows `from..to` of a tree, one commit for ten rows, noted in the ledger as acknowledged.
async fn fill(
    instance: &Instance,
    tree: plimsoll_engine::btree::Tree,
    field: &Field,
    ledger: &RefCell<Ledger>,
    rows: std::ops::Range<u64>,
    byte: u8,
) {
    for first in rows.clone().step_by(10) {
        let transaction = instance.begin();
        let mut effects = Effects::new();
        let serial = ledger.borrow().committed.len() as u64;
        for number in first..(first + 10).min(rows.end) {
            let (key, data) = (row_key(number), vec![byte; 400]);
            if transaction.get(tree, &key).await.unwrap().is_some() {
                transaction.replace(tree, &key, &data).await.unwrap();
            } else {
                transaction.insert(tree, &key, &data).await.unwrap();
            }
            effects.push((tree, key, Some(data)));
        }
        let key = serial.to_be_bytes().to_vec();
        transaction.insert(field.serials, &key, b"committed").await.unwrap();
        effects.push((field.serials, key, Some(b"committed".to_vec())));
        ledger.borrow_mut().committed.push((serial, Rc::new(effects)));
        transaction.commit(Commit::Durable).await.unwrap();
        ledger.borrow_mut().acknowledged.push(serial);
    }
}

fn audited(disk: &Rc<MemoryDisk>, setup: &Setup, field: &Field, ledger: &Ledger, what: &str) {
    let (setup, field, ledger, what) =
        (setup.clone(), field.clone(), ledger.clone(), what.to_owned());
    run_on(&disk.clock().clone(), disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 4)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        audit(&instance, &field, &ledger).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// A fresh world with two trees of 500 rows each in the first database, closed cleanly.
fn filled(setup: &Setup, memory: MemoryOptions) -> (Rc<MemoryDisk>, Field, Ledger) {
    let clock = Rc::new(Clock::simulated());
    let disk = new_disk(&clock, 3, memory);
    let creating = setup.clone();
    let (field, ledger) = run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &creating).await.unwrap();
        let (instance, _) = open(&files, &handle, &creating, 3).await.unwrap();
        let field = create_field(&instance, &creating, 0, 0).await.unwrap();
        let ledger = RefCell::default();
        for tree in &field.data {
            fill(&instance, *tree, &field, &ledger, 0..500, 1).await;
        }
        instance.close().await.unwrap();
        (field, ledger.into_inner())
    })
    .unwrap();
    (disk, field, ledger)
}

fn sound_copy(disk: &Rc<MemoryDisk>) -> Rc<MemoryDisk> {
    disk.crash_image(Loss::Nothing, &mut Random::from_seed(8))
}

/// Taking back takes seconds on a slow disk, long enough for a checkpoint in the middle of it. If
/// that passes the records of what is still to be taken back, a second cut leaves half a
/// transaction.
#[test]
fn a_checkpoint_during_taking_back_keeps_what_the_next_recovery_needs() {
    let setup = small_cache();
    let latency = Latency::Constant(25 * NANOS_PER_MILLISECOND);
    let memory = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(1_000))
            .with_purpose(Purpose::DatabaseRead, latency),
        ..MemoryOptions::default()
    };
    let (disk, field, ledger) = filled(&setup, memory);
    let (working, trees, books) = (setup.clone(), field.clone(), RefCell::new(ledger.clone()));
    let ledger = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
        let unfinished = instance.begin();
        for number in 0..400 {
            let tree = trees.data[0];
            unfinished.replace(tree, &row_key(number), &[7; 100]).await.unwrap();
        }
        // Everything else moves on, so that the pages of the unfinished transaction get
        // written.
        fill(&instance, trees.data[1], &trees, &books, 0..500, 2).await;
        std::mem::forget(unfinished);
        books.into_inner()
    })
    .unwrap();
    let mut random = Random::from_seed(6);
    let cut = disk.crash_image(Loss::Everything, &mut random);
    for tenths in 2..40 {
        let recovering = cut.crash_image(Loss::Nothing, &mut random);
        recovering.power_cut_at(tenths * 200 * NANOS_PER_MILLISECOND);
        let opening = setup.clone();
        run_until_power_lost(&recovering, move |files, handle| async move {
            let _ = open(&files, &handle, &opening, 6).await;
        });
        recovering.power_cut();
        let again = recovering.crash_image(Loss::Everything, &mut random);
        audited(
            &again,
            &setup,
            &field,
            &ledger,
            &format!("second cut after {tenths} fifths of a second"),
        );
    }
}

/// A transaction that ends lazily ends before the record of that is durable. If the checkpoint
/// passed its first record meanwhile, a power cut would leave its changes on the pages, and nothing
/// in the log that takes them back. Found by world 1001103 of the power cuts.
#[test]
fn the_checkpoint_waits_until_the_end_of_a_transaction_is_durable() {
    for commits in [true, false] {
        let setup = small_cache();
        let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
        let (working, trees) = (setup.clone(), field.clone());
        run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
            let (transaction, tree) = (instance.begin(), trees.data[0]);
            for number in 0..5 {
                transaction.replace(tree, &row_key(number), &[7; 100]).await.unwrap();
            }
            let log = instance.store().log.clone();
            log.make_durable(log.tip()).await.unwrap();
            // Reading throws the changed pages out of the cache and so onto the disk.
            for _ in 0..50 {
                dump(&instance, trees.data[1]).await.unwrap();
            }
            assert!(
                instance.store().cache.oldest_dirty().is_none(),
                "nothing but the transaction holds the checkpoint"
            );
            if commits {
                transaction.commit(Commit::Lazy).await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
            instance.checkpoint().await.unwrap();
            assert!(log.durable() < log.tip(), "the end is in memory only");
        })
        .unwrap();
        let cut = disk.crash_image(Loss::Everything, &mut Random::from_seed(6));
        audited(&cut, &setup, &field, &ledger, "after the cut");
    }
}

/// The other way round: pages thrown out of the cache under an open transaction reach the disk only
/// after the log that takes it back.
#[test]
fn a_page_is_never_on_the_disk_before_its_log() {
    let setup = small_cache();
    let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
    let (working, trees) = (setup.clone(), field.clone());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
        let transaction = instance.begin();
        transaction.replace(trees.data[0], &row_key(0), &[7; 100]).await.unwrap();
        for _ in 0..50 {
            dump(&instance, trees.data[1]).await.unwrap();
        }
        assert!(instance.store().cache.oldest_dirty().is_none(), "the changed page is on the disk");
        std::mem::forget(transaction);
    })
    .unwrap();
    let cut = disk.crash_image(Loss::Nothing, &mut Random::from_seed(6));
    audited(&cut, &setup, &field, &ledger, "after the cut");
}

/// All changes of the second database lie before the checkpoint. After recovery its changes need
/// database times above those on its pages, or the recovery after that takes them for done.
#[test]
fn database_times_never_go_back() {
    let setup = Setup { databases: 2, ..small_cache() };
    let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
    let second = field.data[2];
    let mut random = Random::from_seed(6);
    let (mut disk, mut books) = (sound_copy(&disk), ledger);
    for round in 0..3u8 {
        let (working, trees, ledger) = (setup.clone(), field.clone(), RefCell::new(books));
        books = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
            // In the first round many changes, later ever fewer: their times would begin low
            // and stay low.
            let rows = [200, 60, 20][usize::from(round)];
            fill(&instance, second, &trees, &ledger, 0..rows, 10 + round).await;
            checkpoint_past_everything(&instance, &trees).await;
            // Something has to be redone, but not in the second database.
            fill(&instance, trees.data[0], &trees, &ledger, 0..10, 20 + round).await;
            ledger.into_inner()
        })
        .unwrap();
        disk = disk.crash_image(Loss::Everything, &mut random);
        let (working, trees, ledger) = (setup.clone(), field.clone(), RefCell::new(books));
        books = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &working, 6).await.unwrap();
            // Only in the log when the power fails: taken for done if its times are below those
            // on the pages.
            fill(&instance, second, &trees, &ledger, 0..20, 40 + round).await;
            ledger.into_inner()
        })
        .unwrap();
        disk = disk.crash_image(Loss::Everything, &mut random);
        let what = format!("round {round}");
        audited(&sound_copy(&disk), &setup, &field, &books, &what);
    }
}

/// Drives every changed page out by reading others, and moves the checkpoint past all that was done
/// so far.
async fn checkpoint_past_everything(instance: &Rc<Instance>, field: &Field) {
    let tip = instance.store().log.tip();
    for _ in 0..50 {
        for tree in [field.data[0], field.data[1], field.data[3]] {
            dump(instance, tree).await.unwrap();
        }
        instance.checkpoint().await.unwrap();
        if instance.store().checkpoint.get() >= tip {
            return;
        }
    }
    panic!("the checkpoint does not pass what was done");
}

/// A rollback that meets an unreadable page leaves uncommitted data on other pages. Such an
/// instance must not be closed as clean.
#[test]
fn a_rollback_that_fails_leaves_the_rest_to_recovery() {
    let setup = small_cache();
    let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
    let (working, trees, broken) = (setup.clone(), field.clone(), disk.clone());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
        let transaction = instance.begin();
        for number in 0..200 {
            transaction.replace(trees.data[0], &row_key(number), &[7; 100]).await.unwrap();
        }
        dump(&instance, trees.data[1]).await.unwrap();
        let fault =
            FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::DatabaseRead);
        broken.inject(fault.nth(3));
        assert!(transaction.rollback().await.is_err(), "the third read fails");
        assert!(instance.close().await.is_err(), "half a rollback was closed as clean");
    })
    .unwrap();
    disk.clear_faults();
    audited(&disk, &setup, &field, &ledger, "after a failed rollback");
}

/// After a failed sync the next one may report success and have written nothing: the files cannot
/// be declared clean any more.
#[test]
fn a_failed_sync_of_a_checkpoint_poisons_the_instance() {
    let setup = small_cache();
    let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
    let (working, trees, broken) = (setup.clone(), field.clone(), disk.clone());
    let books = RefCell::new(ledger);
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &working, 5).await.unwrap();
        fill(&instance, trees.data[0], &trees, &books, 0..300, 2).await;
        dump(&instance, trees.data[1]).await.unwrap();
        let fault =
            FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_kind(OperationKind::SyncFile);
        broken.inject(fault.with_path_part(".edb").nth(1));
        assert!(instance.checkpoint().await.is_err(), "the sync fails");
        assert!(
            instance.close().await.is_err(),
            "a database was closed as clean after a failed sync"
        );
    })
    .unwrap();
}

/// Work over several generations on a set of hot pages, with checkpoints: pages are imaged,
/// written, changed again and written again. Every write of a page at the cut is torn. An image
/// that the checkpoint has passed does not mend it.
#[test]
fn an_image_is_never_older_than_the_checkpoint() {
    let setup = small_cache();
    let (disk, field, ledger) = filled(&setup, MemoryOptions::default());
    for seed in 0..12u64 {
        let mut random = Random::from_seed(seed).child("hot pages");
        let world = disk.crash_image(Loss::Nothing, &mut random);
        let cut = FaultRule::new(Effect::CutPowerWhenSubmitted).with_kind(OperationKind::Write);
        world.inject(cut.with_purpose(Purpose::DatabaseWrite).nth(40 + random.below(400)));
        let (working, trees) = (setup.clone(), field.clone());
        let books = Rc::new(RefCell::new(ledger.clone()));
        let written = books.clone();
        run_until_power_lost(&world, move |files, handle| async move {
            let Ok((instance, _)) = open(&files, &handle, &working, seed).await else {
                return;
            };
            hot_life(&instance, &handle, &trees, &written).await;
        });
        world.power_cut();
        let torn = Loss::Chance { survival: 1.0, tearing: 1.0 };
        let image = world.crash_image(torn, &mut random);
        audited(&image, &setup, &field, &books.borrow(), &format!("seed {seed}"));
    }
}

async fn hot_life(
    instance: &Rc<Instance>,
    handle: &Handle,
    field: &Field,
    ledger: &Rc<RefCell<Ledger>>,
) {
    for turn in 0..60u64 {
        // A few hot rows in every turn, and a moving window that fills the log and drives the
        // cleaner.
        fill(instance, field.data[0], field, ledger, 0..20, turn as u8).await;
        let window = turn * 37 % 460;
        fill(instance, field.data[1], field, ledger, window..window + 40, turn as u8).await;
        if turn % 3 == 2 && instance.checkpoint().await.is_err() {
            return;
        }
        handle.sleep(30 * NANOS_PER_MILLISECOND).await;
    }
}

/// The disk of these tests tells the truth: with nothing at risk a crash image is the disk itself.
#[test]
fn a_write_through_disk_needs_no_mercy() {
    let setup = small_cache();
    let memory = MemoryOptions { tracking: Tracking::WriteThrough, ..MemoryOptions::default() };
    let (disk, field, ledger) = filled(&setup, memory);
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(2));
    audited(&image, &setup, &field, &ledger, "write through");
}

/// Why it matters: an instance that goes around in a circle does nothing else any more, and waits
/// for nothing that could be stopped.
#[test]
fn free_space_that_leads_around_in_a_circle_is_refused() {
    const AVAILABLE_ROOT: u32 = 3;
    let (clock, setup) = (Rc::new(Clock::simulated()), Setup::default());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    let s = setup.clone();
    run_on(
        &clock,
        &disk,
        move |files, _| async move { create_databases(&files, &s).await.unwrap() },
    )
    .unwrap();
    disk.corrupt(database_path(1), setup.size.offset_of(AVAILABLE_ROOT), |bytes| {
        let page = &mut bytes[..setup.size.bytes()];
        page[20..24].copy_from_slice(&AVAILABLE_ROOT.to_le_bytes());
        set_checksum(page, AVAILABLE_ROOT);
    });
    run_on(&clock, &disk, move |files, handle| async move {
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let found = instance.create_tree(1, 1, 50, 0, 5_000).await;
        assert!(matches!(found, Err(EngineError::DamagedPage { .. })), "{found:?}");
    })
    .unwrap();
}

/// Why it matters: a number that is given out again makes one row read the value of another.
#[test]
fn when_all_numbers_of_long_values_are_given_out_a_further_one_is_refused() {
    let (clock, setup) = (Rc::new(Clock::simulated()), Setup::default());
    let disk = new_disk(&clock, 1, MemoryOptions::default());
    run_on(&clock, &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let table = instance.create_table(1, message_table("Messages")).await.unwrap();
        let place = table.placed().long_values.unwrap();
        let transaction = instance.begin();
        let last_but_one = (u32::MAX - 1).to_be_bytes();
        let tree = tree_of(1, place.root, place.object);
        transaction.insert(tree, &last_but_one, &[1, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
        transaction.commit(Commit::Durable).await.unwrap();
        instance.close().await.unwrap();

        let (instance, _) = open(&files, &handle, &setup, 2).await.unwrap();
        let table = instance.open_table(1, "Messages").await.unwrap();
        let (id, body) = (table.column("id").unwrap(), table.column("body").unwrap());
        let one = 1i32.to_le_bytes();
        for (bytes, is_taken) in [(9_000, false), (10, true), (9_000, false)] {
            let text = vec![b'b'; bytes];
            let transaction = instance.begin();
            let inserted =
                table.insert(&transaction, &[(id, Some(&one[..])), (body, Some(&text[..]))]).await;
            assert_eq!(inserted.is_ok(), is_taken, "{inserted:?}");
            transaction.rollback().await.unwrap();
        }
        instance.close().await.unwrap();
    })
    .unwrap();
}
