//! What is listed of a database.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the jobs work on the disks of this machine"
)]

use std::path::{Path, PathBuf};
use std::rc::Rc;

use plimsoll_engine::{LogTime, PageSize, Signature, create_database};
use plimsoll_io::{
    Caching, Clock, Context, Executor, Files, RealDisk, RealDiskOptions, StopSignal,
};
use plimsoll_tools::{EdbFile, WhenDirty, edb_tables_live};

/// A directory that is deleted at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn create(path: PathBuf) {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { caching: Caching::AllowBuffered, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone()).expect("a disk");
    let executor = Executor::new(clock, disk.clone());
    let files = Files::new(disk);
    let made = executor.run(async move {
        let signature = Signature::new(1, LogTime::default());
        create_database(&files, &path, PageSize::KIB_4, signature, Context::default()).await
    });
    made.expect("the disk answers").expect("a database");
}

fn listed(path: &Path) -> EdbFile {
    edb_tables_live(path, WhenDirty::Refuse, true, &StopSignal::default()).expect("a catalog")
}

/// Why it matters: the rows that are still there are counted without an error, and look like all.
#[test]
fn a_list_says_how_many_pages_the_file_lacks() {
    let name = format!("plimsoll-edb-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir(&folder.0).expect("a directory");
    let path = folder.0.join("database.edb");
    create(path.clone());
    let whole = listed(&path);
    assert_eq!((whole.pages_missing, whole.is_more_missing), (0, false));
    let file = std::fs::File::options().write(true).open(&path).expect("it is there");
    let length = file.metadata().expect("it is open").len();
    file.set_len(length - 4 * 4096).expect("it can be cut");
    let cut = listed(&path);
    assert_eq!((cut.pages_missing, cut.is_more_missing), (4, false));
    assert_eq!((cut.pages + 4, cut.tables.len()), (whole.pages, whole.tables.len()));
}
