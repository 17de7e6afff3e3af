//! A copy of the databases that is brought forward with the log of the original: paused with a
//! checkpoint that has moved on, and activated before the end of the log, so that the rest is set
//! aside.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::instance::Recovery;
use plimsoll_engine::log::names::LogNames;
use plimsoll_io::{
    Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, OperationKind, Random,
    Stage,
};

use crate::support::*;

fn setup() -> Setup {
    Setup {
        checkpoint_generations: 1,
        circular: false,
        page_images: false,
        extension_pages: 16,
        // So large that pages stay unwritten until they have to be.
        cache_frames: 600,
        ..Setup::default()
    }
}

fn memory() -> MemoryOptions {
    MemoryOptions {
        // Page images are off, so nothing may tear.
        atomic_write_bytes: 4096,
        trace_operations: 200_000,
        ..MemoryOptions::default()
    }
}

/// The databases as they were early in a life, beside all of its log.
struct Original {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Bytes of the database at the end of the life.
    grown_to: usize,
    field: Field,
    ledger: Ledger,
}

impl Original {
    /// A life of a dozen generations, each long enough for a checkpoint.
    fn of_seed(seed: u64) -> Original {
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, seed, memory());
        let looked_at = disk.clone();
        run_on(&clock, &disk, move |files, handle| async move {
            let setup = setup();
            create_databases(&files, &setup).await.unwrap();
            let (instance, _) = open(&files, &handle, &setup, seed).await.unwrap();
            let field = create_field(&instance, &setup, 3_000, 2_500).await.unwrap();
            let ledger: RefCell<Ledger> = RefCell::default();
            let mut random = Random::from_seed(seed).child("original");
            let mut early = None;
            for generation in 0..12 {
                for number in 0..60 {
                    let (serial, weights) =
                        (generation * 1_000 + number, Weights::swarm(&mut random));
                    let done =
                        one_transaction(&instance, &field, &weights, serial, &mut random, &ledger);
                    done.await.unwrap();
                }
                let log = &instance.store().log;
                log.make_durable(log.begin_generation().end).await.unwrap();
                handle.sleep(2 * NANOS_PER_SECOND).await;
                if generation == 2 {
                    early = Some(looked_at.snapshot());
                }
            }
            assert!(instance.store().checkpoint.get().generation > 8, "the checkpoint went on");
            let is_log = |path: &Path| {
                path.starts_with("log") && path.extension().is_some_and(|end| end == "log")
            };
            let mut copied: Vec<_> = early.expect("taken").into_iter().collect();
            copied.retain(|(path, _)| !is_log(path));
            copied.extend(looked_at.snapshot().into_iter().filter(|(path, _)| is_log(path)));
            instance.close().await.unwrap();
            let grown_to = looked_at.bytes(database_path(1)).expect("it is there").len();
            Original { files: copied, grown_to, field, ledger: ledger.into_inner() }
        })
        .unwrap()
    }

    fn copy(&self) -> Rc<MemoryDisk> {
        let clock = Rc::new(Clock::simulated());
        let disk = new_disk(&clock, 77, memory());
        for (path, bytes) in &self.files {
            disk.load(path, bytes);
        }
        disk
    }
}

async fn begin(files: &Files, handle: &Handle) -> Recovery {
    Recovery::begin(files.clone(), handle.clone(), options(&setup())).await.unwrap()
}

async fn feed_before(recovery: &mut Recovery, generation: u32) {
    while recovery.next_generation() < generation {
        assert!(recovery.feed_next().await.unwrap(), "the log goes on");
    }
}

fn length_bytes(disk: &MemoryDisk) -> usize {
    disk.bytes(database_path(1)).expect("it is there").len()
}

/// The log says where the checkpoint of the original was, and a pause goes on from there:
/// everything before it must be in the files of the copy, and not in a cache of the disk.
#[test]
fn what_a_pause_has_passed_survives_a_power_cut() {
    let original = Original::of_seed(1);
    let mut disk = original.copy();
    assert!(length_bytes(&disk) < original.grown_to, "the original has grown since");
    let mut random = Random::from_seed(3);
    let mut starts = Vec::new();
    for steps in [4, 3] {
        let start = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
            let mut recovery = begin(&files, &handle).await;
            let start = recovery.next_generation();
            feed_before(&mut recovery, start + steps).await;
            recovery.pause().await.unwrap();
            start
        })
        .unwrap();
        starts.push(start);
        disk.power_cut();
        disk = disk.crash_image(Loss::Everything, &mut random);
    }
    let (field, ledger) = (original.field, original.ledger);
    let last = run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        let mut recovery = begin(&files, &handle).await;
        let start = recovery.next_generation();
        recovery.feed_all().await.unwrap();
        let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
        let survived = audit(&instance, &field, &ledger).await.unwrap();
        assert_eq!(survived, ledger.committed.len(), "all of the log was there");
        instance.close().await.unwrap();
        start
    })
    .unwrap();
    starts.push(last);
    assert!(length_bytes(&disk) >= original.grown_to, "the copy has grown with its original");
    assert!(
        starts.is_sorted_by(|before, after| before < after),
        "each pause moved the start on: {starts:?}"
    );
}

/// Files that were set aside, by generation and number.
fn aside(disk: &MemoryDisk) -> Vec<String> {
    let files = disk.list_files().into_iter();
    let names =
        files.map(|(path, _)| path.file_name().expect("a name").to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".aside")).collect()
}

async fn fork(files: &Files, handle: &Handle, before: u32) {
    let mut recovery = begin(files, handle).await;
    feed_before(&mut recovery, before).await;
    recovery.give_up_commits();
    let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
    instance.close().await.unwrap();
}

/// The log that is given up must not come back beside the log of the new history. So its new names
/// are durable before anything of that history is written.
#[test]
fn what_is_set_aside_stays_aside_whatever_a_power_cut_takes() {
    let original = Original::of_seed(2);
    let disk = original.copy();
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        fork(&files, &handle, 8).await;
    })
    .unwrap();
    let set_aside = aside(&disk);
    assert!(set_aside.len() > 2, "{set_aside:?}");
    // The same once more, to the first write after the renames.
    let trace = disk.trace();
    let created = trace.iter().position(|entry| {
        entry.kind == OperationKind::Create && entry.path.to_string_lossy().contains("E00tmp")
    });
    let renamed = trace[..created.expect("a generation was begun")]
        .iter()
        .rposition(|entry| entry.kind == OperationKind::Rename && entry.stage == Stage::Done);
    let renamed = renamed.expect("generations were renamed");
    let next_write = trace[renamed..].iter().find(|entry| {
        matches!(entry.kind, OperationKind::Create | OperationKind::Write)
            && entry.stage == Stage::Submitted
    });
    let cut_at = next_write.expect("the new history was written").event;
    let again = original.copy();
    again.power_cut_at_event(cut_at);
    run_until_power_lost(&again, move |files, handle| async move {
        fork(&files, &handle, 8).await;
    });
    assert!(again.is_off(), "the power failed");
    let image = again.crash_image(Loss::Everything, &mut Random::from_seed(5));
    assert_eq!(aside(&image), set_aside);
}

/// Given up twice, a generation has two pasts. Both are kept: somebody may want to look at them.
#[test]
fn what_was_set_aside_once_is_not_overwritten() {
    let original = Original::of_seed(3);
    let disk = original.copy();
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let mut recovery = begin(&files, &handle).await;
        feed_before(&mut recovery, 8).await;
        recovery.give_up_commits();
        let (instance, _) = recovery.activate(&mut Random::from_seed(1)).await.unwrap();
        let log = &instance.store().log;
        for _ in 0..3 {
            log.make_durable(log.begin_generation().end).await.unwrap();
        }
        instance.abandon().await.unwrap();
        let mut recovery = begin(&files, &handle).await;
        feed_before(&mut recovery, 10).await;
        recovery.give_up_commits();
        let (instance, _) = recovery.activate(&mut Random::from_seed(2)).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
    let names = LogNames::new(LOG, "E00");
    let kept = |number| disk.bytes(names.set_aside(10, number));
    let of_original =
        original.files.iter().find(|(path, _)| Path::new("/").join(path) == names.closed(10));
    assert!(kept(1) == of_original.map(|(_, bytes)| bytes.clone()), "the first past is as it was");
    assert!(kept(2).is_some() && kept(2) != kept(1), "{:?}", aside(&disk));
}
