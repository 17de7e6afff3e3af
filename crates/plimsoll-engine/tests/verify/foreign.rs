//! Files that Windows leaves beside its databases: whose they are and which version wrote them is
//! asked before anything is called damaged.
//!
//! Every log of another size, every flush map and the last page of every backup was called damaged;
//! who believes it restores a sound database.

use std::path::PathBuf;
use std::rc::Rc;

use crate::golden::golden;
use plimsoll_engine::header_checksum;
use plimsoll_engine::verify::{FileReport, FileVerdict, HeaderCheck, VerifyOptions, verify};
use plimsoll_io::{Clock, Executor, Files, MemoryDisk, MemoryOptions, Random};

const FILE_TYPE: usize = 667;
const LOG: u8 = 3;
const FLUSH_MAP: u8 = 7;

fn verified(name: &str, bytes: &[u8]) -> FileReport {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    let path = PathBuf::from(format!("/db/{name}"));
    disk.create_directory("/db");
    disk.load(&path, bytes);
    let executor = Executor::new(clock, disk.clone());
    let (files, handle) = (Files::new(disk), executor.handle());
    let work = async move { verify(&files, &handle, &[path], &VerifyOptions::default()).await };
    let mut report = executor.run(work).expect("the disk answers everything");
    report.files.pop().expect("one file")
}

/// A file whose header has its checksum over `header_bytes`.
fn foreign(
    length: usize,
    header_bytes: usize,
    file_type: u8,
    fields: &[(usize, &[u8])],
) -> Vec<u8> {
    let mut bytes = vec![0xDA; length];
    bytes[..header_bytes].fill(0);
    bytes[FILE_TYPE] = file_type;
    for (offset, value) in fields {
        bytes[*offset..offset + value.len()].copy_from_slice(value);
    }
    let checksum = header_checksum(&bytes[..header_bytes]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn logs_of_other_versions_are_not_judged_whatever_their_size() {
    for (name, length, major) in [
        ("edb00001.log", 512 << 10, 8u32),
        ("edb.jtx", 2 << 20, 8),
        ("E00.log", 1 << 20, 7),
        ("E0000000001.log", 5 << 20, 7),
    ] {
        let log = foreign(length, 4096, LOG, &[(32, &major.to_le_bytes())]);
        let report = verified(name, &log);
        assert_eq!(report.verdict, FileVerdict::NotJudged, "{name}: {report:?}");
        assert_eq!((report.bad, report.kind), (0, "log"));
        let reason = report.error.expect("a reason");
        assert!(reason.contains("log version 0x") && reason.contains("is not ours"), "{reason}");
    }
}

#[test]
fn a_log_of_ours_that_is_cut_is_still_damaged() {
    let log =
        foreign(512 << 10, 4096, LOG, &[(32, &0x504Cu32.to_le_bytes()), (36, &2u32.to_le_bytes())]);
    let report = verified("E00.log", &log);
    assert_eq!(report.verdict, FileVerdict::Damaged, "{report:?}");
}

#[test]
fn a_flush_map_of_windows_is_not_judged() {
    let map = foreign(4 * 8192, 8192, FLUSH_MAP, &[(4, &0x89AB_CDEFu32.to_le_bytes())]);
    let report = verified("mail.jfm", &map);
    assert_eq!(report.verdict, FileVerdict::NotJudged, "{report:?}");
    assert_eq!((report.bad, report.headers.len()), (0, 0));
}

#[test]
fn a_spare_log_with_the_fill_of_another_program_is_not_judged() {
    for name in ["edbres00001.jrs", "edbtmp.jtx", "res1.log"] {
        let report = verified(name, &vec![0xDA; 1 << 20]);
        assert_eq!(report.verdict, FileVerdict::NotJudged, "{name}: {report:?}");
    }
}

/// Backups of Windows end in a page with what recovery needs and the checksum of a header.
#[test]
fn the_last_page_of_a_backup_is_checked_as_a_header() {
    for (name, page_bytes) in [("syn4k.edb", 4096), ("syn32k.edb", 32768)] {
        let mut bytes = golden(name);
        let end = bytes.len();
        let mut trailer = vec![0; page_bytes];
        trailer[40..600].fill(7);
        let checksum = header_checksum(&trailer);
        trailer[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes.extend(&trailer);
        let report = verified("backup.edb", &bytes);
        assert_eq!(report.verdict, FileVerdict::Sound, "{name}: {report:?}");
        assert_eq!(report.headers, [HeaderCheck::Ok; 3]);
        bytes[end + 300] ^= 1;
        let report = verified("backup.edb", &bytes);
        assert_eq!(report.verdict, FileVerdict::Damaged, "{name}: {report:?}");
        assert_eq!(report.reasons, ["the page that a backup ends in is damaged"]);
    }
}
