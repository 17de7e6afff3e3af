//! The operations that only exist as blocking system calls, as messages to a worker and back.

use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use super::{OpenFile, OpenRules, last_errno, names, space};
use crate::{DiskError, Entry, OpenMode};

/// What a worker is asked to do.
pub(crate) enum Chore {
    Open { path: PathBuf, mode: OpenMode, rules: Arc<OpenRules> },
    Close(Arc<OpenFile>),
    Extend(Arc<OpenFile>, u64),
    Rename { from: PathBuf, to: PathBuf },
    Delete(PathBuf),
    SyncDirectory(PathBuf),
    List(PathBuf),
    Stat(PathBuf),
    MakeDirectory(PathBuf),
    RemoveDirectory(PathBuf),
}

/// What a worker answers.
pub(crate) enum ChoreAnswer {
    Done,
    Opened(OpenFile),
    Entries(Vec<Entry>),
    Entry(Entry),
}

/// A finished chore.
pub(crate) struct ChoreDone {
    pub tag: u32,
    pub result: Result<ChoreAnswer, DiskError>,
    /// What a reader of the results must know.
    pub remark: Option<&'static str>,
}

/// Does one chore; this is what the workers run.
pub(crate) fn do_chore((tag, chore): (u32, Chore)) -> ChoreDone {
    let mut remark = None;
    let done = |()| ChoreAnswer::Done;
    let result = match chore {
        Chore::Open { path, mode, rules } => {
            OpenFile::open(&path, mode, &rules).map(ChoreAnswer::Opened)
        }
        Chore::Close(file) => close(file).map(done),
        Chore::Extend(file, length_bytes) => space::extend(&file, length_bytes).map(|said| {
            remark = said;
            ChoreAnswer::Done
        }),
        Chore::Rename { from, to } => names::rename(&from, &to).map(done),
        Chore::Delete(path) => names::delete(&path).map(done),
        Chore::SyncDirectory(path) => names::sync_directory(&path).map(done),
        Chore::List(path) => names::list(&path).map(ChoreAnswer::Entries),
        Chore::Stat(path) => names::stat(&path).map(ChoreAnswer::Entry),
        Chore::MakeDirectory(path) => names::make_directory(&path).map(done),
        Chore::RemoveDirectory(path) => names::remove_directory(&path).map(done),
    };
    ChoreDone { tag, result, remark }
}

/// Closes with the answer of close(2), which some file systems use to report a lost write.
fn close(file: Arc<OpenFile>) -> Result<(), DiskError> {
    let Some(file) = Arc::into_inner(file) else {
        unreachable!("a file is closed when nothing is in flight on it");
    };
    file.unlock();
    let OpenFile { fd, path, .. } = file;
    // SAFETY: the descriptor is taken out of its owner and closed once.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 {
        Ok(())
    } else {
        Err(DiskError::from_errno(last_errno(), "close", path))
    }
}
