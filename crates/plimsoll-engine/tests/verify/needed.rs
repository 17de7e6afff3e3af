//! The log that a database needs that was not shut down cleanly.
//!
//! Why it matters: each page of such a database may be sound, and it is lost all the same where its
//! log is. Who is told that it is sound learns that from the engine, when it is too late.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::database::peek_header;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::verify::{FileReport, FileVerdict};
use plimsoll_io::{Clock, Context, MemoryDisk, MemoryOptions};

use crate::golden::{DATABASE, on_memory_disk, real};
use crate::left_over::{busy_disk, setup, verified};
use crate::support::*;

fn names() -> LogNames {
    LogNames::new(LOG, "E00")
}

fn all(_: &Path) -> bool {
    true
}

/// A copy of some of the files; those that are made ready for later are left out.
fn copy_of(disk: &MemoryDisk, is_wanted: impl Fn(&Path) -> bool) -> Rc<MemoryDisk> {
    let copy = new_disk(&Rc::new(Clock::simulated()), 2, MemoryOptions::default());
    for path in named(disk, |path| path != names().prepared() && is_wanted(path)) {
        copy.load(&path, &disk.bytes(&path).unwrap());
    }
    copy
}

fn named(disk: &MemoryDisk, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let paths = disk.list_files().into_iter().map(|(path, _)| Path::new("/").join(path));
    paths.filter(|path| is_wanted(path)).collect()
}

fn needs(disk: &Rc<MemoryDisk>) -> (u32, u32) {
    let header = run_on(&disk.clock().clone(), disk, |files, _| async move {
        peek_header(&files, &database_path(1), Context::default()).await.unwrap()
    })
    .unwrap();
    assert!(header.needs_recovery());
    let last = header.generation_max_required.max(header.generation_max_committed);
    (header.generation_min_required, last)
}

/// What is said of the database where these files are named.
fn said_of(disk: &Rc<MemoryDisk>, is_named: impl Fn(&Path) -> bool) -> FileReport {
    let report = verified(disk, named(disk, is_named));
    report.files.into_iter().find(|file| file.kind == "database").expect("it is named")
}

#[test]
fn log_that_a_header_asks_for_is_missed() {
    let disk = busy_disk(setup(true, 100), None);
    let (first, last) = needs(&disk);
    assert!(first + 2 < last, "{first} to {last}");
    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
    let old_current = copy_of(&disk, all);
    old_current.load(names().current(), &disk.bytes(names().closed(first + 1)).unwrap());
    for (story, damaged, missing) in [
        ("all log", copy_of(&disk, |path| !is_log(path)), first),
        ("the current log", copy_of(&disk, |path| path != names().current()), last),
        ("the oldest log", copy_of(&disk, |path| path != names().closed(first)), first),
        ("one in the middle", copy_of(&disk, |path| path != names().closed(first + 1)), first + 1),
        ("the current log is an old one", old_current, last),
    ] {
        let report = said_of(&damaged, all);
        assert_eq!(report.verdict, FileVerdict::Damaged, "{story}");
        let said = report.reasons.join("; ");
        let generation = format!("generation {missing} ");
        assert!(said.contains(&generation) && said.contains("missing"), "{story}: {said}");
    }
}

/// An old log in the place of the current one is no log that a power cut brought back.
#[test]
fn an_old_log_in_the_place_of_the_current_one_is_not_left_over() {
    let disk = busy_disk(setup(true, 2), None);
    // The same history, of which the other disk kept the beginning.
    let long_ago = busy_disk(setup(true, 100), None);
    let (oldest, _) = needs(&long_ago);
    let (first, last) = needs(&disk);
    assert!(oldest + 1 < first && first < last, "{oldest}; {first} to {last}");
    disk.load(names().current(), &long_ago.bytes(names().closed(oldest)).unwrap());
    let report = verified(&disk, named(&disk, |path| path != names().prepared()));
    let current = report.files.iter().find(|file| file.path == names().current()).unwrap();
    assert!(!current.left_over && current.verdict == FileVerdict::Damaged, "{current:?}");
    let error = current.error.as_deref().unwrap_or_default();
    assert!(error.contains(&format!("it is generation {oldest},")), "{error}");
    assert!(!report.is_sound());
}

#[test]
fn a_database_whose_log_is_all_there_is_sound_and_its_state_is_said() {
    let disk = busy_disk(setup(true, 100), None);
    let (first, last) = needs(&disk);
    let is_database = |path: &Path| path == database_path(1);
    for (story, report) in [
        ("all named", said_of(&disk, |path| path != names().prepared())),
        ("the newest log is beside the others", said_of(&disk, |path| path != names().current())),
        ("its log is elsewhere", said_of(&disk, is_database)),
        ("its log is nowhere", said_of(&copy_of(&disk, is_database), all)),
    ] {
        assert_eq!(report.verdict, FileVerdict::Sound, "{story}: {:?}", report.reasons);
        let said = report.remarks.join("; ");
        for words in ["not shut down cleanly", &format!("{first} to {last}"), "flush map"] {
            assert!(said.contains(words), "{story}: {said}");
        }
        let is_unknown = story.ends_with("where");
        assert_eq!(said.contains("none of its log was named"), is_unknown, "{story}: {said}");
    }
}

/// Why it matters: one old generation, from an archive, says nothing of where the log lies that the
/// database needs now.
#[test]
fn log_from_before_what_is_needed_does_not_say_that_the_rest_is_missing() {
    let disk = busy_disk(setup(true, 2), None);
    // The same history, of which the other disk kept the beginning.
    let long_ago = busy_disk(setup(true, 100), None);
    let (oldest, _) = needs(&long_ago);
    let (first, last) = needs(&disk);
    assert!(oldest < first && first < last, "{oldest}; {first} to {last}");
    let alone = copy_of(&disk, |path| path == database_path(1));
    let archive = LogNames::new("/archive", "E00");
    alone.create_directory("/archive");
    alone.load(archive.closed(oldest), &long_ago.bytes(names().closed(oldest)).unwrap());
    let report = said_of(&alone, all);
    assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.reasons);
    let said = report.remarks.join("; ");
    assert!(said.contains(&format!("{first} to {last}")), "{said}");
    assert!(said.contains("only log from before that was found"), "{said}");
    // Next to one that is needed the others are missed.
    alone.load(archive.closed(last - 1), &disk.bytes(names().closed(last - 1)).unwrap());
    let report = said_of(&alone, all);
    assert_eq!(report.verdict, FileVerdict::Damaged, "{:?}", report.remarks);
}

/// Windows may keep the log of a database anywhere.
#[test]
fn databases_of_windows_that_need_their_log_are_not_accused() {
    for (name, entry, mut bytes) in real() {
        const STATE: usize = 52;
        const REQUIRED: std::ops::Range<usize> = 296..304;
        let page_bytes = u32::from_le_bytes(bytes[236..240].try_into().unwrap()) as usize;
        for header in bytes.chunks_mut(page_bytes).take(2) {
            header[STATE] = 2;
            header[REQUIRED].copy_from_slice(&[5, 0, 0, 0, 7, 0, 0, 0]);
            let checksum = plimsoll_engine::header_checksum(header);
            header[..4].copy_from_slice(&checksum.to_le_bytes());
        }
        let report = on_memory_disk(&bytes, |files, handle| async move {
            let options = plimsoll_engine::verify::VerifyOptions::default();
            let paths = [DATABASE.into()];
            plimsoll_engine::verify::verify(&files, &handle, &paths, &options).await
        });
        let report = &report.files[0];
        assert_eq!(report.verdict, FileVerdict::Sound, "{name}, {entry}: {:?}", report.reasons);
        assert!(report.remarks.join("; ").contains("not shut down cleanly"), "{name}");
    }
}
