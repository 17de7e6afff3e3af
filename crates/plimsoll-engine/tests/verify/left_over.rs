//! What a power cut leaves of the log, and is nobody's loss: log that was deleted and came back in
//! part, and a generation under both of its names.

use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::transaction::Commit;
use plimsoll_engine::verify::{FileReport, VerifyOptions, VerifyReport, verify};
use plimsoll_io::{
    Clock, Files, Handle, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Random,
};

use crate::support::*;

pub fn setup(circular: bool, checkpoint_generations: u64) -> Setup {
    Setup { checkpoint_generations, cache_frames: 400, circular, ..Setup::default() }
}

/// A commit in each of several generations; then the process dies.
pub fn busy_disk(setup: Setup, held: Option<u32>) -> Rc<MemoryDisk> {
    let disk = new_disk(&Rc::new(Clock::simulated()), 1, MemoryOptions::default());
    run_on(&disk.clock().clone(), &disk, move |files, handle| async move {
        create_databases(&files, &setup).await.unwrap();
        let (instance, _) = open(&files, &handle, &setup, 1).await.unwrap();
        let tree = instance.create_tree(1, 1, 50, 0, 16).await.unwrap();
        if let Some(generation) = held {
            instance.hold_log_durably("client", generation).await.unwrap();
        }
        for number in 0..6 {
            let transaction = instance.begin();
            transaction.insert(tree, &row_key(number), &[1; 200]).await.unwrap();
            transaction.commit(Commit::Durable).await.unwrap();
            let log = &instance.store().log;
            log.make_durable(log.begin_generation().end).await.unwrap();
        }
        handle.sleep(3 * NANOS_PER_SECOND).await;
        instance.checkpoint().await.unwrap();
    })
    .unwrap();
    disk.process_died();
    disk
}

/// All files whose names do not hold one of these words.
pub fn files_of(disk: &MemoryDisk, without: &[&str]) -> Vec<PathBuf> {
    let paths = disk.list_files().into_iter().map(|(path, _)| path);
    let wanted = |path: &PathBuf| {
        let name = path.to_string_lossy();
        !name.contains("tmp") && !without.iter().any(|word| name.contains(word))
    };
    paths.filter(wanted).collect()
}

pub fn verified(disk: &Rc<MemoryDisk>, paths: Vec<PathBuf>) -> VerifyReport {
    let work = move |files: Files, handle: Handle| async move {
        verify(&files, &handle, &paths, &VerifyOptions::default()).await
    };
    run_on(&disk.clock().clone(), disk, work).unwrap()
}

/// The numbers of closed generations for which this holds.
fn closed(report: &VerifyReport, holds: fn(&FileReport) -> bool) -> Vec<u32> {
    let names = LogNames::new(LOG, "E00");
    let of = |file: &FileReport| names.generation_of(file.path.file_name()?.to_str()?);
    report.files.iter().filter(|file| holds(file)).filter_map(of).collect()
}

/// Why it matters: who is told that sound log is damaged restores what needs no restoring.
#[test]
fn log_of_which_a_power_cut_brings_back_a_part_is_not_accused() {
    let disk = busy_disk(setup(true, 2), None);
    let mut random = Random::from_seed(4);
    let mut with_gaps = 0;
    for round in 0..40 {
        let loss = Loss::Chance { survival: 0.5, tearing: 0.0 };
        let image = disk.crash_image(loss, &mut random);
        let report = verified(&image, files_of(&image, &[]));
        let accused: Vec<_> = report.files.iter().filter_map(|file| file.error.clone()).collect();
        assert!(accused.is_empty() && report.is_sound(), "round {round}: {accused:?}");
        let (all, left_over) = (closed(&report, |_| true), closed(&report, |file| file.left_over));
        let is_gap = |pair: &[u32]| pair[0] + 1 < pair[1];
        let behind_gap = all.windows(2).rfind(|pair| is_gap(pair)).map(|pair| pair[0]);
        let wanted = all.iter().filter(|number| Some(**number) <= behind_gap).copied();
        assert_eq!(left_over, wanted.collect::<Vec<_>>(), "round {round}: of {all:?}");
        with_gaps += u32::from(behind_gap.is_some());
        let alone = verified(&image, files_of(&image, &[".edb", ".chk"]));
        assert_eq!(alone.is_sound(), behind_gap.is_none(), "nobody knows whether it is needed");
    }
    assert!(with_gaps > 10, "{with_gaps} with gaps");
}

/// Why it matters: the same gap is a loss where all log is kept, or where what is gone is needed by
/// a database or by a client.
#[test]
fn a_gap_in_log_that_is_kept_or_is_needed_is_damage() {
    for (story, setup, held) in [
        ("kept", setup(false, 2), None),
        ("needed", setup(true, 100), None),
        ("held", setup(true, 2), Some(1)),
    ] {
        let disk = busy_disk(setup, held);
        let report = verified(&disk, files_of(&disk, &["E0000000002.", ".holds"]));
        assert!(closed(&report, |file| file.left_over).is_empty(), "{story}");
        let error = report.files.iter().find_map(|file| file.error.clone()).expect(story);
        assert!(error.contains("generation 2 is missing"), "{story}: {error}");
    }
}

/// Why it matters: a power cut between the two names of a generation leaves both, and who is told
/// that the next one is missing looks for what never was.
#[test]
fn a_generation_that_lies_there_twice_is_no_gap() {
    let names = LogNames::new(LOG, "E00");
    let disk = busy_disk(setup(false, 2), None);
    let [one, other] = [1, 2].map(|life| {
        let image = disk.crash_image(Loss::Nothing, &mut Random::from_seed(life));
        run_on(&image.clock().clone(), &image, move |files, handle| async move {
            handle.sleep(life * NANOS_PER_SECOND).await;
            let (instance, _) = open(&files, &handle, &setup(false, 2), life).await.unwrap();
            instance.close().await.unwrap();
        })
        .unwrap();
        image
    });
    let current = |disk: &MemoryDisk| disk.bytes(names.current()).unwrap();
    one.load(names.closed(8), &current(&one));
    let report = verified(&one, files_of(&one, &[]));
    assert!(report.is_sound(), "{:?}", report.files.iter().find(|file| file.error.is_some()));
    one.load(names.closed(8), &current(&other));
    let report = verified(&one, files_of(&one, &[]));
    let error = report.files.iter().find_map(|file| file.error.clone()).unwrap();
    assert!(error.contains("it is generation 8, as ") && error.contains("another"), "{error}");
}

/// Why it matters: log that is kept until a backup is no log that may have gaps, and a power cut in
/// the middle of its deletion would make some.
#[test]
fn log_that_was_truncated_for_a_backup_comes_back_without_gaps() {
    for event in 0..40 {
        let disk = busy_disk(setup(false, 1), None);
        let cut = disk.clone();
        run_until_power_lost(&disk, move |files, handle| async move {
            let (instance, _) = open(&files, &handle, &setup(false, 1), 2).await.unwrap();
            instance.checkpoint().await.unwrap();
            cut.power_cut_at_event(cut.events() + 1 + event);
            let _ = instance.truncate_log(u32::MAX).await;
            handle.sleep(NANOS_PER_SECOND).await;
            cut.power_cut();
        });
        let loss = Loss::Chance { survival: 0.5, tearing: 0.0 };
        let image = disk.crash_image(loss, &mut Random::from_seed(event));
        let report = verified(&image, files_of(&image, &[]));
        let accused: Vec<_> = report.files.iter().filter_map(|file| file.error.clone()).collect();
        assert!(report.is_sound(), "event {event}: {accused:?}");
    }
}
