//! Checkpoints and flush maps that are damaged as a whole.
//!
//! Why it matters: who is told that a checkpoint is no database, and should check the path, looks
//! for another fault than the one there is.

use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_engine::flushmap::flush_map_path;
use plimsoll_engine::log::names::LogNames;
use plimsoll_engine::verify::{FileReport, FileVerdict};
use plimsoll_io::MemoryDisk;

use crate::left_over::{busy_disk, setup, verified};
use crate::support::*;

fn report_on(disk: &Rc<MemoryDisk>, path: &PathBuf, bytes: &[u8]) -> FileReport {
    disk.load(path, bytes);
    verified(disk, vec![path.clone()]).files.remove(0)
}

#[test]
fn damaged_checkpoints_and_flush_maps_are_called_what_they_are() {
    let disk = busy_disk(setup(true, 2), None);
    let (checkpoint, map) =
        (LogNames::new(LOG, "E00").checkpoint(), flush_map_path(&database_path(1)));
    for (path, kind, words) in
        [(checkpoint, "checkpoint", "checkpoint file"), (map, "flush_map", "flush map")]
    {
        let sound = disk.bytes(&path).expect("the engine made it");
        assert_eq!(report_on(&disk, &path, &sound).verdict, FileVerdict::Sound, "{kind}");
        let garbage = vec![0xA5; sound.len()];
        let mut no_type = sound.clone();
        no_type[..4096].fill(0x5A);
        let zeros = vec![0; sound.len()];
        for (story, bytes) in [
            ("cut within a block", &sound[..100]),
            ("cut within its first page", &sound[..4096]),
            ("empty", &[][..]),
            ("garbage", &garbage),
            ("garbage at its start", &no_type),
            ("zeros", &zeros),
        ] {
            let report = report_on(&disk, &path, bytes);
            assert_eq!((report.kind, report.verdict), (kind, FileVerdict::Damaged), "{story}");
            let said = report.error.unwrap_or_default() + &report.reasons.join("; ");
            assert!(said.contains(words) || story.ends_with("start"), "{story}: {said}");
            assert!(!said.contains("database;") && !said.contains("path"), "{story}: {said}");
        }
        disk.load(&path, &sound);
    }
}
