//! Names in directories: rename, delete, list, sync. Device nodes are left alone: renaming or
//! deleting one would not touch the device but break the machine, and so would losing the link
//! below /dev/disk/by-id that leads to it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::errno_of;
use crate::{DiskError, DiskErrorKind, Entry};

fn refuse_devices(path: &Path, doing: &'static str) -> Result<(), DiskError> {
    match fs::metadata(path) {
        Ok(metadata)
            if metadata.file_type().is_block_device() || metadata.file_type().is_char_device() =>
        {
            Err(DiskError::new(DiskErrorKind::Unsupported, doing, path)
                .because("it leads to a device"))
        }
        _ => Ok(()),
    }
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), DiskError> {
    refuse_devices(from, "rename")?;
    refuse_devices(to, "rename")?;
    fs::rename(from, to).map_err(|error| DiskError::from_errno(errno_of(&error), "rename", from))
}

pub(super) fn delete(path: &Path) -> Result<(), DiskError> {
    refuse_devices(path, "delete")?;
    fs::remove_file(path).map_err(|error| DiskError::from_errno(errno_of(&error), "delete", path))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), DiskError> {
    // The standard library opens with O_CLOEXEC and reports the error of fsync; it retries only
    // EINTR, which cannot happen here because the workers block all signals.
    let directory = fs::File::open(path)
        .map_err(|error| DiskError::from_errno(errno_of(&error), "sync directory", path))?;
    directory
        .sync_all()
        .map_err(|error| DiskError::from_errno(errno_of(&error), "sync directory", path))
}

/// Names that are not UTF-8 are shown with replacement characters: no file of ours is called so.
pub(super) fn list(path: &Path) -> Result<Vec<Entry>, DiskError> {
    let failed = |error: std::io::Error| DiskError::from_errno(errno_of(&error), "list", path);
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Deleted by somebody else since the directory was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            length_bytes: if metadata.is_dir() { 0 } else { metadata.len() },
            is_directory: metadata.is_dir(),
        });
    }
    entries.sort();
    Ok(entries)
}
