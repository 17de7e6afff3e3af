//! Whole block devices as files: who they are, whether they are free, and whose consent is needed
//! to write.
//!
//! Reading a device is always allowed. Writing needs three things: the user has named the device's
//! serial, nobody uses the device (the kernel's exclusive open, no partitions, no holders, no
//! second path to the same disk), and it carries no signature of anybody's data. Nothing here is
//! ever wiped or overwritten on the way.

mod identity;
mod signature;
#[cfg(test)]
mod tests;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

pub(crate) use identity::Identity;
pub(crate) use signature::{DATABASE, SCAN_BYTES, find_signature};

use crate::posix::uninterrupted;
use crate::{Buffer, DiskError, DiskErrorKind, OpenMode};

/// Refuses a device that must not be written, before it is opened for writing.
pub(crate) fn check_before_opening(
    identity: &Identity,
    destroy_serials: &[String],
    doing: &'static str,
) -> Result<(), DiskError> {
    let occupied = |detail: String| {
        Err(DiskError::new(DiskErrorKind::Occupied, doing, identity.best_path()).because(detail))
    };
    let token = identity.consent_token();
    if !destroy_serials.contains(&token) {
        return occupied(format!("its serial is {token} and was not given as the one to destroy"));
    }
    match use_by_others(identity) {
        Some(user) => occupied(user),
        None => Ok(()),
    }
}

/// Who uses the device without having it open: partitions, devices built on it, a second path to
/// it.
pub(crate) fn use_by_others(identity: &Identity) -> Option<String> {
    if let Some(partition) = identity.partitions().first() {
        return Some(format!("it has partitions, such as {partition}"));
    }
    if let Some(holder) = identity.holders().first() {
        return Some(format!("{holder} is built on it (multipath, LVM, RAID or encryption)"));
    }
    let twin = identity.other_paths().into_iter().next()?;
    Some(format!("{twin} has the same serial: it is one of several paths to one disk"))
}

/// Refuses an opened device that carries somebody's data.
pub(crate) fn check_content(
    fd: &OwnedFd,
    capacity_bytes: u64,
    mode: OpenMode,
    identity: &Identity,
    doing: &'static str,
) -> Result<(), DiskError> {
    let failed = |errno| DiskError::from_errno(errno, doing, identity.best_path());
    let scan_bytes = capacity_bytes.min(SCAN_BYTES as u64);
    let head = read_at(fd, 0, scan_bytes).map_err(failed)?;
    let tail = read_at(fd, capacity_bytes - scan_bytes, scan_bytes).map_err(failed)?;
    let error = |kind, detail: String| {
        Err(DiskError::new(kind, doing, identity.best_path()).because(detail))
    };
    match find_signature(&head, &tail, capacity_bytes) {
        None => Ok(()),
        Some(DATABASE) if mode == OpenMode::Write => Ok(()),
        Some(DATABASE) => {
            error(DiskErrorKind::AlreadyExists, "it holds a database already".to_owned())
        }
        Some(signature) => {
            error(DiskErrorKind::Occupied, format!("it carries the signature of {signature}"))
        }
    }
}

/// Reads without the seam: this runs on a worker, before the device is part of any measurement.
fn read_at(fd: &OwnedFd, offset: u64, length_bytes: u64) -> Result<Buffer, i32> {
    let mut buffer = Buffer::zeroed(length_bytes as usize);
    let (memory, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the buffer is writable for its length and lives through the call.
    let read = || unsafe { libc::pread64(fd.as_raw_fd(), memory.cast(), length, offset as i64) };
    match uninterrupted(|| read() as i64)? {
        read if read as usize == length => Ok(buffer),
        _ => Err(libc::EIO),
    }
}

/// Whether a path leads to a block device.
pub(crate) fn is_block_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}
