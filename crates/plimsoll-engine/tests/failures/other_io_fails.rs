//! The n-th I/O fails, for every n, in everything that is not a running instance: creating and
//! preparing a database, verifying, exporting and repairing it, backing up, also under load, and
//! recovering in steps. `every_io_fails.rs` does the same to opening, working, checkpoints, closing
//! and crash recovery.
//!
//! Whatever fails, nothing panics and nothing hangs; the error is told; no file stays open or
//! locked, no memory is left over; what was begun and failed is not there or can be done again; and
//! nothing damaged is ever called sound.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::support::accounts::Accounts;
use crate::support::*;
use plimsoll_engine::error::EngineError;
use plimsoll_engine::instance::Recovery;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::reader::{DatabaseReader, ReadError, TextFormat, WhenDirty, write_table};
use plimsoll_engine::repair::repair;
use plimsoll_engine::verify::{Depth, FileVerdict, VerifyOptions, verify};
use plimsoll_engine::{PageSize, Signature};
use plimsoll_io::{
    Clock, Context, DiskErrorKind, Effect, FaultRule, Files, Handle, Loss, MemoryDisk,
    MemoryOptions, OperationKind, Purpose, Random, Stage, TraceEntry,
};
use plimsoll_prepare::{Extent, LongValues, Plan, PreparedDatabase, WriteOptions, write_database};

const KINDS: [DiskErrorKind; 3] = [DiskErrorKind::Medium, DiskErrorKind::Full, DiskErrorKind::Gone];
const PATH: &str = "/data/database 1.edb";

/// Every operation in the slow form, every `step`-th in the fast one.
#[derive(Clone, Copy)]
struct Sample {
    step: u64,
    /// Only operations done for this, if any is named.
    purpose: Option<Purpose>,
}

/// A disk that remembers its operations.
fn empty_disk() -> Rc<MemoryDisk> {
    let memory = MemoryOptions { trace_operations: 4_000, ..MemoryOptions::default() };
    new_disk(&Rc::new(Clock::simulated()), 3, memory)
}

/// Does `story` on copies of `base`, each time with another operation failing, and hands the disk,
/// sound again, to `judge` together with what the story said and whether a close was what failed:
/// on this disk a file whose close fails stays locked.
fn every<T: 'static, F: Future<Output = T> + 'static>(
    base: &Rc<MemoryDisk>,
    sample: Sample,
    story: impl Fn(Files, Handle) -> F + Copy,
    judge: impl Fn(Rc<MemoryDisk>, T, bool, &str),
) {
    let run = |rule: Option<FaultRule>| {
        let label = format!("{rule:?}");
        let disk = base.crash_image(Loss::Nothing, &mut Random::from_seed(5));
        let before = disk.events();
        let accounts = Accounts::open(&disk);
        if let Some(rule) = rule {
            disk.inject(rule);
        }
        let said = run_on(&disk.clock().clone(), &disk, story);
        let said = said.unwrap_or_else(|_| panic!("{label}: everything waits for ever"));
        disk.clear_faults();
        let counts = |entry: &&TraceEntry| {
            entry.stage == Stage::Submitted && Some(entry.purpose) == sample.purpose
        };
        let operations = match sample.purpose {
            Some(_) => disk.trace().iter().filter(counts).count() as u64,
            None => (disk.events() - before) / 2,
        };
        accounts.settle(&disk, &label);
        let close_failed = disk.trace().iter().any(|entry| {
            entry.kind == OperationKind::Close && matches!(entry.stage, Stage::Failed(_))
        });
        judge(disk, said, close_failed, &label);
        operations
    };
    let operations = run(None);
    assert!(operations > 10, "only {operations} operations: nothing to fail");
    let mut runs = 0;
    for nth in (1..=operations).step_by(sample.step as usize) {
        for (index, kind) in KINDS.into_iter().enumerate() {
            if sample.step > 1 && nth as usize / sample.step as usize % KINDS.len() != index {
                continue;
            }
            for limit in [1, u64::MAX] {
                let mut rule = FaultRule::new(Effect::Fail(kind)).nth(nth);
                rule.limit = limit;
                rule.filter.purpose = sample.purpose;
                run(Some(rule));
                runs += 1;
            }
        }
    }
    println!("{operations} operations, {runs} runs with one of them or all from one on failing");
}

async fn create(files: Files) -> Result<(), EngineError> {
    let signature = Signature::default();
    create_database_at(&files, signature).await
}

async fn create_database_at(files: &Files, signature: Signature) -> Result<(), EngineError> {
    let path = Path::new(PATH);
    plimsoll_engine::create::create_database(
        files,
        path,
        PageSize::KIB_4,
        signature,
        Context::default(),
    )
    .await
}

fn creating(sample: Sample) {
    every(
        &empty_disk(),
        sample,
        |files, _| create(files),
        |disk, made, close_failed, label| {
            assert!(label != "None" || made.is_ok());
            again_after_failure(disk, made.is_ok(), close_failed, label, |files, _| async move {
                create(files).await.map_err(|error| error.to_string())
            });
        },
    );
}

/// What failed can be done again, unless deleting what had been begun failed too; what succeeded is
/// there and opens.
fn again_after_failure<F: Future<Output = Result<(), String>> + 'static>(
    disk: Rc<MemoryDisk>,
    succeeded: bool,
    close_failed: bool,
    label: &str,
    again: impl FnOnce(Files, Handle) -> F,
) {
    let deletion_failed = disk.trace().iter().any(|entry| {
        entry.kind == OperationKind::Delete && matches!(entry.stage, Stage::Failed(_))
    });
    let disk = if close_failed {
        disk.crash_image(Loss::Nothing, &mut Random::from_seed(6))
    } else {
        disk
    };
    let clock = disk.clock().clone();
    if !succeeded {
        if disk.bytes(PATH).is_some() {
            assert!(deletion_failed, "{label}: what was begun is left behind");
            // All from one operation on failed, the deletion among them: the user deletes by hand.
            run_on(&clock, &disk, |files, _| async move {
                files.delete(Path::new(PATH), Context::default()).await.unwrap();
            })
            .unwrap();
        }
        run_on(&clock, &disk, again)
            .unwrap()
            .unwrap_or_else(|error| panic!("{label}: not possible again: {error}"));
    }
    let label = label.to_owned();
    run_on(&clock, &disk, |files, handle| async move {
        let opened = open(&files, &handle, &Setup::default(), 4).await;
        let (instance, _) = opened.unwrap_or_else(|error| panic!("{label}: {error}"));
        instance.close().await.unwrap();
    })
    .unwrap();
}

async fn prepare(files: Files, handle: Handle) -> Result<(), String> {
    let plan = Plan {
        long_values: Some(LongValues { every: 9, bytes: 20_000 }),
        ..Plan::new(PageSize::KIB_4, Extent::Records(300), 4)
    };
    let database = PreparedDatabase::new(plan).unwrap();
    let options = WriteOptions { block_bytes: 64 * 1024, depth: 3, ..WriteOptions::default() };
    let written = write_database(&files, &handle, Path::new(PATH), &database, &options).await;
    written.map(|_| ()).map_err(|error| error.to_string())
}

fn preparing(sample: Sample) {
    every(&empty_disk(), sample, prepare, |disk, made, close_failed, label| {
        assert!(label != "None" || made.is_ok());
        again_after_failure(disk, made.is_ok(), close_failed, label, prepare);
    });
}

/// A database with content, cleanly closed, and what it holds.
fn filled() -> (Rc<MemoryDisk>, Field, Ledger) {
    let disk = empty_disk();
    let filled = run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let setup = Setup::default();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let field = create_field(&instance, &setup, 300, 500).await.unwrap();
        let ledger = RefCell::default();
        let mut random = Random::from_seed(4);
        let weights = Weights::swarm(&mut random);
        for serial in 0..60 {
            one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                .await
                .unwrap();
        }
        instance.close().await.unwrap();
        (field, ledger.into_inner())
    });
    let (field, ledger) = filled.unwrap();
    (disk, field, ledger)
}

fn still_whole(
    disk: Rc<MemoryDisk>,
    close_failed: bool,
    field: &Field,
    ledger: &Ledger,
    label: &str,
) {
    let disk = if close_failed {
        disk.crash_image(Loss::Nothing, &mut Random::from_seed(6))
    } else {
        disk
    };
    let (field, ledger, label) = (field.clone(), ledger.clone(), label.to_owned());
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let opened = open(&files, &handle, &Setup::default(), 4).await;
        let (instance, _) = opened.unwrap_or_else(|error| panic!("{label}: {error}"));
        audit(&instance, &field, &ledger).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// A prepared database that an instance has opened and closed, so that every kind of file lies
/// there; they make one, also for the deep look.
fn prepared() -> Rc<MemoryDisk> {
    let disk = empty_disk();
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        prepare(files.clone(), handle.clone()).await.unwrap();
        let (instance, _) = open(&files, &handle, &Setup::default(), 4).await.unwrap();
        instance.close().await.unwrap();
    })
    .unwrap();
    disk
}

/// Everything on the disk but the log that was only prepared.
fn all_files(disk: &MemoryDisk) -> Vec<PathBuf> {
    let files = disk.list_files().into_iter();
    files.map(|(path, _)| Path::new("/").join(path)).collect()
}

/// Whether something but a close has failed. A flush map that is looked for in vain is an answer,
/// not a failure.
fn something_failed(disk: &MemoryDisk) -> bool {
    disk.trace()
        .iter()
        .any(|entry| entry.kind != OperationKind::Close && matches!(entry.stage, Stage::Failed(_)))
}

fn opens(disk: Rc<MemoryDisk>, close_failed: bool, label: &str) {
    let disk = if close_failed {
        disk.crash_image(Loss::Nothing, &mut Random::from_seed(6))
    } else {
        disk
    };
    let label = label.to_owned();
    run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let opened = open(&files, &handle, &Setup::default(), 4).await;
        let (instance, _) = opened.unwrap_or_else(|error| panic!("{label}: {error}"));
        instance.close().await.unwrap();
    })
    .unwrap();
}

/// What could not be read is not sound, in no file, and neither is what the deep look could not
/// read.
fn verifying(sample: Sample, depth: Depth) {
    let base = prepared();
    let contents = |disk: &MemoryDisk| {
        all_files(disk).into_iter().map(|path| disk.bytes(&path)).collect::<Vec<_>>()
    };
    let (before, paths) = (contents(&base), all_files(&base));
    assert!(paths.len() >= 4, "database, flush map, log and checkpoint: {paths:?}");
    let paths = &*Vec::leak(paths);
    let story = move |files: Files, handle: Handle| async move {
        let options = VerifyOptions { depth, read_bytes: 32 * 1024, ..VerifyOptions::default() };
        verify(&files, &handle, paths, &options).await
    };
    every(&base, sample, story, |disk, report, close_failed, label| {
        let wrong = report.files.iter().filter(|file| file.verdict != FileVerdict::Sound);
        let wrong: Vec<_> = wrong.map(|file| (&file.path, file.verdict)).collect();
        assert!(label != "None" || wrong.is_empty(), "{wrong:?}");
        assert!(
            label == "None" || !something_failed(&disk) || !wrong.is_empty(),
            "{label}: called sound although not all of it could be read"
        );
        assert!(contents(&disk) == before, "{label}: verify writes");
        opens(disk, close_failed, label);
    });
}

/// An export ends with the error, having given what comes before it, or it is whole: a page read
/// ahead and not needed may have failed.
fn exporting(sample: Sample) {
    let base = prepared();
    let story = |files: Files, handle: Handle| async move {
        let mut text = Vec::new();
        let exported = async {
            let reader = DatabaseReader::open(&files, &handle, PATH, WhenDirty::Refuse).await?;
            let tables = reader.tables().to_vec();
            let mut written = Ok(());
            for placed in &tables {
                let mut sink = |piece: Vec<u8>| {
                    text.extend(piece);
                    ControlFlow::Continue(())
                };
                written =
                    write_table(&reader, placed, TextFormat::JsonLines, &mut sink).await.map(drop);
                if written.is_err() {
                    break;
                }
            }
            let closed = reader.close().await;
            written.and(closed)
        };
        let ended: Result<(), ReadError> = exported.await;
        (ended.map_err(|error| error.to_string()), text)
    };
    let image = base.crash_image(Loss::Nothing, &mut Random::from_seed(5));
    let whole = run_on(&image.clock().clone(), &image, story);
    let whole = whole.unwrap().1;
    assert!(whole.len() > 100_000, "{} bytes show little", whole.len());
    every(&base, sample, story, |disk, (ended, text), close_failed, label| {
        assert!(label != "None" || ended.is_ok(), "{ended:?}");
        assert!(ended.is_err() || text == whole, "{label}: half an export is called whole");
        assert!(whole.starts_with(&text), "{label}: something else was exported");
        opens(disk, close_failed, label);
    });
}

/// A repair that fails leaves each page as it was or mended and a sound header, and doing it again
/// mends the rest.
fn repairing(sample: Sample) {
    let base = prepared();
    let sound = base.bytes(PATH).unwrap();
    let mut damaged = sound.clone();
    for page in [3, 9, 40, 41] {
        damaged[(page + 1) * 4096 + 700] ^= 4;
    }
    damaged[4096 + 100] ^= 1;
    base.load(PATH, &damaged);
    let story = |files: Files, handle: Handle| async move {
        let repaired = repair(&files, &handle, Path::new(PATH)).await;
        repaired.map_err(|error| error.to_string())
    };
    let pages_of = |bytes: &[u8]| bytes[2 * 4096..].to_vec();
    let (sound, damaged) = (pages_of(&sound), pages_of(&damaged));
    every(&base, sample, story, |disk, repaired, close_failed, label| {
        assert!(label != "None" || repaired.is_ok(), "{repaired:?}");
        assert!(repaired.is_err() || !something_failed(&disk), "{label}: nothing told");
        let found = pages_of(&disk.bytes(PATH).unwrap());
        let as_it_should_be = found == sound;
        assert!(repaired.is_err() || as_it_should_be, "{label}: not all of it was mended");
        let mut pages = found.chunks(4096).zip(sound.chunks(4096).zip(damaged.chunks(4096)));
        let is_known = pages.all(|(page, (sound, damaged))| page == sound || page == damaged);
        assert!(is_known, "{label}: a page is neither as it was nor mended");
        let disk = if close_failed {
            disk.crash_image(Loss::Nothing, &mut Random::from_seed(6))
        } else {
            disk
        };
        let again = run_on(&disk.clock().clone(), &disk, story).unwrap();
        assert!(again.is_ok(), "{label}: not possible again: {again:?}");
        assert!(pages_of(&disk.bytes(PATH).unwrap()) == sound, "{label}: mended wrongly");
        opens(disk, false, label);
    });
}

/// The backup ends with the error, or is whole.
fn backing_up(sample: Sample) {
    let (base, field, ledger) = filled();
    let story = |files: Files, handle: Handle| async move {
        let Ok((instance, _)) = open(&files, &handle, &Setup::default(), 4).await else {
            return None;
        };
        let copied = async {
            let mut backup = Backup::start(&instance, 1, 16 * 1024)?;
            let mut pages = Vec::new();
            while let Some(chunk) = backup.next_chunk().await? {
                pages.extend_from_slice(&chunk.bytes);
            }
            backup.finish().await?;
            Ok::<_, EngineError>(pages)
        }
        .await;
        let _ = instance.close().await;
        copied.ok()
    };
    let pages = base.bytes(PATH).map(|file| file[2 * 4096..].to_vec());
    every(&base, sample, story, |disk, copied, close_failed, label| {
        assert!(label != "None" || copied.is_some());
        if let Some(copied) = copied {
            assert!(Some(copied) == pages, "{label}: a copy that is none");
        }
        still_whole(disk, close_failed, &field, &ledger, label);
    });
}

/// The backup fails, and sessions that work meanwhile do not notice: the instance goes on, closes
/// cleanly, and holds everything.
fn backing_up_under_load(sample: Sample) {
    let (base, field, ledger) = filled();
    let sample = Sample { purpose: Some(Purpose::Backup), ..sample };
    let base_field = &*Box::leak(Box::new(field.clone()));
    let base_ledger = &*Box::leak(Box::new((ledger.committed.len(), Rc::new(ledger.clone()))));
    let story = |files: Files, handle: Handle| async move {
        let (instance, _) = open(&files, &handle, &Setup::default(), 4).await.unwrap();
        let ledger = Rc::new(RefCell::new((*base_ledger.1).clone()));
        let stop = Rc::new(Cell::new(false));
        let session = {
            let (instance, ledger, stop) = (instance.clone(), ledger.clone(), stop.clone());
            handle.spawn(async move {
                let mut random = Random::from_seed(8);
                let weights = Weights::swarm(&mut random);
                let mut serial = 1_000;
                // A few more after the backup has ended.
                let mut left = 20;
                while left > 0 {
                    left -= u64::from(stop.get());
                    serial += 1;
                    one_transaction(&instance, base_field, &weights, serial, &mut random, &ledger)
                        .await?;
                }
                Ok::<_, EngineError>(())
            })
        };
        let copied = async {
            let mut backup = Backup::start(&instance, 1, 16 * 1024)?;
            while backup.next_chunk().await?.is_some() {}
            backup.finish().await.map(drop)
        }
        .await;
        stop.set(true);
        session.await.expect("sessions go on");
        instance.checkpoint().await.expect("checkpoints go on");
        instance.close().await.expect("a clean close");
        (copied.is_ok(), Rc::try_unwrap(ledger).ok().unwrap().into_inner())
    };
    every(&base, sample, story, |disk, (copied, ledger), close_failed, label| {
        let is_failed = |entry: &TraceEntry| {
            entry.purpose == Purpose::Backup && matches!(entry.stage, Stage::Failed(_))
        };
        assert_eq!(copied, !disk.trace().iter().any(is_failed), "{label}");
        assert!(label != "None" || copied);
        assert!(ledger.committed.len() > base_ledger.0 + 10, "{label}: nobody worked");
        still_whole(disk, close_failed, &field, &ledger, label);
    });
}

/// A database whose log has several generations to be redone.
fn cut() -> (Rc<MemoryDisk>, Field, Ledger) {
    let disk = empty_disk();
    let worked = run_on(&disk.clock().clone(), &disk, |files, handle| async move {
        let setup = deep();
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 4).await.unwrap();
        let field = create_field(&instance, &setup, 300, 700).await.unwrap();
        let ledger = RefCell::default();
        let mut random = Random::from_seed(4);
        let weights = Weights {
            insert: 4,
            delete: 2,
            replace: 4,
            lazy: 0.0,
            rollback: 0.1,
            savepoint: 0.1,
            operations_max: 8,
            narrow: 0.2,
        };
        let mut serial = 0;
        while instance.store().log.tip().generation < 3 {
            one_transaction(&instance, &field, &weights, serial, &mut random, &ledger)
                .await
                .unwrap();
            serial += 1;
        }
        (field, ledger.into_inner())
    });
    let (field, ledger) = worked.unwrap();
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(4));
    (image, field, ledger)
}

fn deep() -> Setup {
    Setup { checkpoint_generations: 100, ..Setup::default() }
}

/// One generation, a pause, the rest, activation. Whatever of it fails, beginning anew comes to the
/// same end.
fn recovering_in_steps(sample: Sample) {
    let (base, field, ledger) = cut();
    let story = |files: Files, handle: Handle| async move {
        let begin = || Recovery::begin(files.clone(), handle.clone(), options(&deep()));
        let mut recovery = begin().await?;
        if let Err(error) = recovery.feed_next().await {
            recovery.abandon().await;
            return Err(error);
        }
        recovery.pause().await?;
        let mut recovery = begin().await?;
        if let Err(error) = recovery.feed_all().await {
            recovery.abandon().await;
            return Err(error);
        }
        let (instance, _) = recovery.activate(&mut Random::from_seed(9)).await?;
        instance.close().await
    };
    every(&base, sample, story, |disk, recovered, close_failed, label| {
        assert!(label != "None" || recovered.is_ok(), "{recovered:?}");
        still_whole(disk, close_failed, &field, &ledger, label);
    });
}

const SAMPLED: Sample = Sample { step: 7, purpose: None };
const ALL: Sample = Sample { step: 1, purpose: None };

#[test]
fn creating_survives_any_io_failing() {
    creating(ALL);
}

#[test]
fn preparing_survives_any_io_failing() {
    preparing(ALL);
}

#[test]
fn verifying_survives_any_io_failing() {
    verifying(SAMPLED, Depth::Pages);
    verifying(SAMPLED, Depth::Deep);
}

#[test]
fn exporting_and_repairing_survive_any_io_failing() {
    exporting(SAMPLED);
    repairing(ALL);
}

#[test]
fn backing_up_survives_any_io_failing() {
    backing_up(SAMPLED);
}

#[test]
fn an_instance_goes_on_when_its_backup_fails() {
    backing_up_under_load(ALL);
}

#[test]
fn recovering_in_steps_survives_any_io_failing() {
    recovering_in_steps(SAMPLED);
}

#[test]
#[ignore = "slow: every operation and every kind of failure; `make slow`"]
fn everything_else_survives_every_io_failing() {
    verifying(ALL, Depth::Pages);
    verifying(ALL, Depth::Deep);
    exporting(ALL);
    repairing(ALL);
    backing_up(ALL);
    recovering_in_steps(ALL);
}
