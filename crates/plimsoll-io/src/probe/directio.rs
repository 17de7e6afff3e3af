//! Whether direct I/O works here, tried by reading one block of a file that is already there.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Buffer;
use crate::posix::{Geometry, last_errno};

/// Names looked at in one folder before giving up.
const NAMES_MAX: usize = 1000;

/// What is known of direct I/O.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbedDirectIo {
    /// The file or device that was read.
    pub tried_on: Option<PathBuf>,
    /// Whether reading it directly worked; none when there was nothing to try it on.
    pub reads_work: Option<bool>,
    /// The error number when it did not.
    pub errno: Option<i32>,
    /// What offsets and lengths must be multiples of.
    pub alignment_bytes: Option<u32>,
}

/// Tries the path itself, or else files in its folder and in the folders above on the same file
/// system.
pub(super) fn probe(path: &Path) -> ProbedDirectIo {
    for candidate in candidates(path) {
        match read_directly(&candidate) {
            // Somebody else's file, whose access time we could only read by changing it: try
            // another.
            Err(libc::EPERM | libc::EACCES) => {}
            Ok(alignment_bytes) => {
                return ProbedDirectIo {
                    tried_on: Some(candidate),
                    reads_work: Some(true),
                    errno: None,
                    alignment_bytes: Some(alignment_bytes),
                };
            }
            Err(errno) => {
                return ProbedDirectIo {
                    tried_on: Some(candidate),
                    reads_work: Some(false),
                    errno: Some(errno),
                    alignment_bytes: None,
                };
            }
        }
    }
    ProbedDirectIo::default()
}

fn candidates(path: &Path) -> Vec<PathBuf> {
    let Ok(metadata) = fs::metadata(path) else {
        return Vec::new();
    };
    if !metadata.is_dir() {
        return vec![path.to_owned()];
    }
    let on_same_file_system =
        |folder: &&Path| fs::metadata(folder).is_ok_and(|folder| folder.dev() == metadata.dev());
    path.ancestors()
        .take_while(on_same_file_system)
        .flat_map(files_in)
        .filter(|file| fs::metadata(file).is_ok_and(|file| file.dev() == metadata.dev()))
        .collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .take(NAMES_MAX)
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Reads the first block; answers the alignment.
fn read_directly(path: &Path) -> Result<u32, i32> {
    let c_path = CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::ENOENT)?;
    let mut flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_DIRECT;
    if path.is_file() {
        flags |= libc::O_NOATIME;
    }
    // SAFETY: the path is a C string that lives through the call.
    let fd = unsafe { libc::open64(c_path.as_ptr(), flags) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the descriptor was just opened and nobody else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let alignment_bytes = Geometry::of(file.as_fd())?.alignment_bytes();
    let mut buffer = Buffer::zeroed(alignment_bytes as usize);
    // SAFETY: the buffer is writable for its length and lives through the call.
    let read =
        unsafe { libc::pread64(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if read < 0 {
        return Err(last_errno());
    }
    Ok(alignment_bytes)
}
