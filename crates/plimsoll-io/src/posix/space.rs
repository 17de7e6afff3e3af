//! Making a file longer: free space is looked at before the file is touched, then blocks are
//! allocated, and a failure half way is undone.

use std::os::fd::AsRawFd;

use super::{OpenFile, last_errno, uninterrupted};
use crate::{DiskError, DiskErrorKind};

/// What a reader of the results must know when the file system could not reserve blocks.
const NO_RESERVATION: &str = "the file system cannot reserve space (fallocate is not supported): \
 files are sparse until written";

/// Makes the file at least `length_bytes` long. Answers a remark where space could not be reserved.
pub(super) fn extend(
    file: &OpenFile,
    length_bytes: u64,
) -> Result<Option<&'static str>, DiskError> {
    let failed = |errno| DiskError::from_errno(errno, "extend", &file.path).at(0, length_bytes);
    let old_bytes = file.length_bytes().map_err(failed)?;
    if length_bytes <= old_bytes {
        return Ok(None);
    }
    if file.is_device {
        return Err(DiskError::new(DiskErrorKind::Full, "extend", &file.path)
            .at(0, length_bytes)
            .because(format!("the device holds {old_bytes} bytes")));
    }
    let wanted_bytes = length_bytes - old_bytes;
    let free_bytes = free_bytes(file).map_err(failed)?;
    if free_bytes < wanted_bytes {
        return Err(DiskError::new(DiskErrorKind::Full, "extend", &file.path)
            .at(old_bytes, wanted_bytes)
            .because(format!("the file system has {free_bytes} bytes left")));
    }
    let fd = file.fd.as_raw_fd();
    // SAFETY: no pointers are passed, the descriptor is open as long as `file` lives.
    let allocate = || unsafe { libc::fallocate64(fd, 0, old_bytes as i64, wanted_bytes as i64) };
    let Err(errno) = uninterrupted(|| allocate().into()) else {
        return Ok(None);
    };
    match errno {
        libc::EOPNOTSUPP | libc::ENOSYS => {
            set_length(file, length_bytes).map_err(failed)?;
            Ok(Some(NO_RESERVATION))
        }
        errno => {
            // Some file systems have grown the file as far as they could.
            set_length(file, old_bytes).map_err(failed)?;
            Err(failed(errno))
        }
    }
}

fn set_length(file: &OpenFile, length_bytes: u64) -> Result<(), i32> {
    // SAFETY: no pointers are passed, the descriptor is open as long as `file` lives.
    let set = || unsafe { libc::ftruncate64(file.fd.as_raw_fd(), length_bytes as i64) };
    uninterrupted(|| set().into()).map(drop)
}

fn free_bytes(file: &OpenFile) -> Result<u64, i32> {
    // SAFETY: an all-zero statvfs is a valid value of that plain C structure.
    let mut facts: libc::statvfs64 = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable and the descriptor is open.
    if unsafe { libc::fstatvfs64(file.fd.as_raw_fd(), &mut facts) } != 0 {
        return Err(last_errno());
    }
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}
