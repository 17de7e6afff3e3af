//! What is not there any more: pages behind the end of a file that was cut, pages that were written
//! and are blank, logs that are empty.
//!
//! Why it matters: every page that is still there is sound, so a check that only looks at those
//! passes a database of which half is lost.

use crate::golden::{DATABASE, golden, on_memory_disk, real, synthetic};
use crate::patient::{Patient, TABLE};
use plimsoll_engine::reader::{DatabaseReader, WhenDirty};
use plimsoll_engine::repair::repair;
use plimsoll_engine::verify::{Depth, FileReport, FileVerdict, VerifyOptions, verify};
use plimsoll_engine::{PageSize, header_checksum};
use plimsoll_io::{Clock, Executor, Files, MemoryDisk, MemoryOptions, Random};

fn verified(bytes: &[u8], depth: Depth) -> FileReport {
    on_memory_disk(bytes, move |files, handle| async move {
        let options = VerifyOptions { depth, ..VerifyOptions::default() };
        let mut report = verify(&files, &handle, &[DATABASE.into()], &options).await;
        report.files.remove(0)
    })
}

fn page_size_of(bytes: &[u8]) -> PageSize {
    PageSize::from_bytes(u32::from_le_bytes(bytes[236..240].try_into().unwrap()))
        .expect("a page size")
}

/// A file cut where a page ends holds sound pages only; the database itself says how many there
/// should be.
#[test]
fn a_file_cut_between_pages_is_damage() {
    for (name, _, bytes) in synthetic().into_iter().chain(real()) {
        let page_bytes = page_size_of(&bytes).bytes();
        let pages = bytes.len() / page_bytes - 2;
        for left in [pages / 2, 40.min(pages / 2), 1] {
            let report = verified(&bytes[..(left + 2) * page_bytes], Depth::Pages);
            assert_eq!(report.verdict, FileVerdict::Damaged, "{name}, {left} of {pages}");
            assert!(report.pages_missing > 0, "{name}, {left} of {pages}: {report:?}");
            assert!(report.reasons[0].contains("missing at its end"), "{:?}", report.reasons);
            if left > 10 {
                assert!(report.pages_missing <= (pages - left) as u64, "{name}");
            }
        }
    }
}

/// Why it matters: the page that says how far a database reaches may be gone itself. A figure that
/// is far too small, without a word, has people look for one page where thousands are lost.
#[test]
fn where_nobody_knows_how_many_pages_are_missing_nobody_says_so() {
    for name in ["syn4k.edb", "syn32k.edb"] {
        let bytes = golden(name);
        let page_bytes = page_size_of(&bytes).bytes();
        for (left, floor) in [(0, true), (1, true), (100, false)] {
            let cut = bytes[..(left + 2) * page_bytes].to_vec();
            let report = verified(&cut, Depth::Pages);
            assert_eq!(report.is_more_missing, floor, "{name}, {left} left");
            let said = report.reasons.join("; ");
            assert_eq!(said.contains("at least 1 page is missing"), floor, "{said}");
            assert_eq!(said.contains("by its own account it reaches"), !floor, "{said}");
            let repaired = on_memory_disk(&cut, |files, handle| async move {
                repair(&files, &handle, DATABASE.as_ref()).await.expect("it is a database")
            });
            assert_eq!(repaired.pages_missing, report.pages_missing, "{name}, {left} left");
            assert_eq!(repaired.is_more_missing, floor, "{name}, {left} left");
        }
    }
}

/// Why it matters: what is read of a file that lacks its end looks complete as long as nothing in
/// it leads there.
#[test]
fn a_reader_knows_what_its_database_lacks() {
    let bytes = golden("syn32k.edb");
    for (lacking, expected) in [(0, (0, false)), (4, (4, false))] {
        let cut = bytes[..bytes.len() - lacking * 32768].to_vec();
        let found = on_memory_disk(&cut, |files, handle| async move {
            let opened = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await;
            opened.expect("the catalog is there").pages_missing().await.expect("it can be read")
        });
        assert_eq!(found, expected, "{lacking} pages cut off");
    }
}

/// Why it matters: who reads that a file has no bytes looks for another fault than who reads that
/// it was cut off.
#[test]
fn what_is_shorter_than_a_header_has_its_length_said_by_all() {
    for length in [100, 5000] {
        let said = on_memory_disk(&golden("syn32k.edb")[..length], |files, handle| async move {
            let opened = DatabaseReader::open(&files, &handle, DATABASE, WhenDirty::Refuse).await;
            let repaired = repair(&files, &handle, DATABASE.as_ref()).await;
            [opened.err().unwrap().to_string(), repaired.unwrap_err().to_string()]
        });
        for text in said {
            assert!(text.contains(&format!("({length} bytes)")), "{text}");
        }
    }
}

/// Of a file that is a little too long, the reason names the bytes.
#[test]
fn what_is_wrong_beside_pages_is_said_in_sentences() {
    let mut bytes = golden("syn32k.edb");
    bytes[100] ^= 1;
    bytes.truncate(100 * 32768 + 4096);
    let report = verified(&bytes, Depth::Pages);
    let said = report.reasons.join("; ");
    for words in ["first copy of its header", "4096 bytes", "missing at its end"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Pages that were never written are harmless where they are free, and a loss where something is
/// stored.
#[test]
fn a_blank_page_is_damage_only_where_something_is_stored() {
    for (name, _, bytes) in synthetic().into_iter().chain(real()) {
        let report = verified(&bytes, Depth::Space);
        assert_eq!(report.reasons, [""; 0], "{name}: a sound database is sound");
    }
    let mut patient = Patient::new();
    assert_eq!(verified(&patient.bytes, Depth::Space).verdict, FileVerdict::Sound);
    let leaves = patient.leaves(TABLE);
    for leaf in &leaves[10..13] {
        patient.raw(*leaf).fill(0);
    }
    let report = verified(&patient.bytes, Depth::Space);
    assert_eq!(
        (report.verdict, report.blank_in_use),
        (FileVerdict::Damaged, 3),
        "{:?}",
        report.reasons
    );
    assert_eq!(verified(&patient.bytes, Depth::Pages).blank_in_use, 0, "not asked for");
}

/// A generation is never empty again once it was in use; only those made ready or held in reserve
/// may be.
#[test]
fn an_empty_log_is_a_lost_one() {
    let cases = [
        ("E00.log", 0, FileVerdict::Damaged),
        ("E0000000001.log", 0, FileVerdict::Damaged),
        ("E0000000002.LOG", 1 << 20, FileVerdict::Damaged),
        ("E00tmp.log", 1 << 20, FileVerdict::Sound),
        ("E00tmp.log", 0, FileVerdict::Sound),
        ("E00res00001.jrs", 1 << 20, FileVerdict::Sound),
        ("res1.log", 1 << 20, FileVerdict::Sound),
    ];
    for (name, length, expected) in cases {
        let clock = std::rc::Rc::new(Clock::simulated());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
        let path = std::path::PathBuf::from(format!("/db/{name}"));
        disk.create_directory("/db");
        disk.load(&path, &vec![0; length]);
        let executor = Executor::new(clock, disk.clone());
        let (files, handle) = (Files::new(disk), executor.handle());
        let work = async move { verify(&files, &handle, &[path], &VerifyOptions::default()).await };
        let report = executor.run(work).expect("the disk answers everything");
        assert_eq!(report.files[0].verdict, expected, "{name}: {:?}", report.files[0]);
    }
}

/// A database that needs its log cannot be checked as a whole, which says nothing against it.
#[test]
fn a_database_that_needs_its_log_is_not_damaged_for_that() {
    const STATE: usize = 52;
    const DIRTY: u8 = 2;
    let mut bytes = golden("syn4k.edb");
    for header in bytes.chunks_mut(4096).take(2) {
        header[STATE] = DIRTY;
        let checksum = header_checksum(header);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    let report = verified(&bytes, Depth::Deep);
    assert_eq!(report.state.as_deref(), Some("Dirty"));
    assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.reasons);
    let why = report.deep_error.expect("why it was not checked");
    assert!(why.contains("not shut down cleanly"), "{why}");
    assert!(report.deep.is_none());
}
