//! Names in directories: rename, delete, list, stat, sync, and directories themselves. Device nodes
//! are left alone: renaming or deleting one would not touch the device but break the machine, and
//! so would losing the link below /dev/disk/by-id that leads to it.

use std::ffi::OsStr;
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
    for found in fs::read_dir(path).map_err(failed)? {
        let found = found.map_err(failed)?;
        let metadata = match found.metadata() {
            Ok(metadata) => metadata,
            // Deleted by somebody else since the directory was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        entries.push(entry(entry_name(&found.file_name()), &metadata));
    }
    entries.sort();
    Ok(entries)
}

/// What a name stands for; a symbolic link is what it leads to.
pub(super) fn stat(path: &Path) -> Result<Entry, DiskError> {
    let failed = |error: std::io::Error| DiskError::from_errno(errno_of(&error), "stat", path);
    let metadata = fs::metadata(path).map_err(failed)?;
    Ok(entry(entry_name(path.file_name().unwrap_or_default()), &metadata))
}

pub(super) fn make_directory(path: &Path) -> Result<(), DiskError> {
    fs::create_dir(path)
        .map_err(|error| DiskError::from_errno(errno_of(&error), "make directory", path))
}

pub(super) fn remove_directory(path: &Path) -> Result<(), DiskError> {
    fs::remove_dir(path)
        .map_err(|error| DiskError::from_errno(errno_of(&error), "remove directory", path))
}

fn entry_name(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn entry(name: String, metadata: &fs::Metadata) -> Entry {
    let is_directory = metadata.is_dir();
    Entry { name, length_bytes: if is_directory { 0 } else { metadata.len() }, is_directory }
}
