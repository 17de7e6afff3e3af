//! Writes that were lost, in a database that is only verified.
//!
//! Why it matters: what a page held before has a checksum that fits. A check that looks at pages
//! alone passes a disk that lost what it acknowledged.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::PageSize;
use plimsoll_engine::flushmap::flush_map_path;
use plimsoll_engine::page::PageView;
use plimsoll_engine::verify::{FileReport, FileVerdict, VerifyOptions, verify};
use plimsoll_io::{MemoryDisk, Random};

use crate::damage::patient::Patient;
use crate::support::*;

fn verified(disk: &Rc<MemoryDisk>, paths: &[PathBuf]) -> FileReport {
    let paths = paths.to_vec();
    let report = run_on(&disk.clock().clone(), disk, |files, handle| async move {
        verify(&files, &handle, &paths, &VerifyOptions::default()).await
    });
    report.expect("the disk answers everything").files.remove(0)
}

/// The page and the file, where a page is put back to what it was before its last write.
fn stale(patient: &Patient) -> (u32, Vec<u8>) {
    let mut random = Random::from_seed(1);
    let flush_type = |page| PageView::new(page, patient.size).flush_type();
    for page in &patient.pages {
        let range = patient.place(*page);
        if let Some(before) = patient.before(*page, &mut random)
            && flush_type(before) != flush_type(&patient.new[range.clone()])
        {
            let mut bytes = patient.new.clone();
            bytes[range].copy_from_slice(before);
            return (*page, bytes);
        }
    }
    panic!("every page was written as often as it takes for its flush type to come back");
}

/// The map is found beside the database, or among the files that are named. Where it is not, the
/// report says that nothing was compared.
#[test]
fn a_lost_write_is_found_where_there_is_a_flush_map() {
    for size in [PageSize::KIB_4, PageSize::KIB_32] {
        let patient = Patient::new(size);
        let (database, map) = (database_path(1), flush_map_path(&database_path(1)));
        let sound = verified(&patient.copy(&patient.new), std::slice::from_ref(&database));
        assert_eq!((sound.verdict, sound.lost), (FileVerdict::Sound, 0), "{:?}", sound.reasons);
        assert_eq!(sound.flush_map, Some(map.clone()));

        let (page, bytes) = stale(&patient);
        let disk = patient.copy(&bytes);
        let found = verified(&disk, std::slice::from_ref(&database));
        assert_eq!((found.verdict, found.lost, found.lost_first), (FileVerdict::Damaged, 1, page));
        assert_eq!(found.reasons, [format!("the last write of page {page} was lost (-1119)")]);

        // A copy under another name may be older than the map, which accuses nobody.
        let copy = database.with_extension("old");
        disk.load(&copy, &bytes);
        let beside = verified(&disk, std::slice::from_ref(&copy));
        assert_eq!((beside.verdict, beside.flush_map), (FileVerdict::Sound, None));
        // Named together with the map it is meant.
        assert_eq!(verified(&disk, &[copy, map.clone()]).lost, 1);

        // The map of a block device lies with the logs.
        let elsewhere = Path::new("/db/device001.jfm");
        disk.load(elsewhere, &disk.bytes(&map).expect("it is there"));
        disk.load(&map, &[]);
        let alone = verified(&disk, std::slice::from_ref(&database));
        assert_eq!((alone.verdict, alone.flush_map), (FileVerdict::Sound, None));
        let named = verified(&disk, &[database.clone(), elsewhere.to_owned()]);
        assert_eq!((named.lost, named.flush_map.as_deref()), (1, Some(elsewhere)));
    }
}

/// A page whose first write was lost is blank, as free pages are.
#[test]
fn a_page_whose_first_write_was_lost_is_found() {
    let patient = Patient::new(PageSize::KIB_4);
    let page = *patient.pages.last().expect("it has pages");
    let mut bytes = patient.new.clone();
    bytes[patient.place(page)].fill(0);
    let found = verified(&patient.copy(&bytes), &[database_path(1)]);
    assert_eq!((found.verdict, found.lost, found.lost_first), (FileVerdict::Damaged, 1, page));
}
