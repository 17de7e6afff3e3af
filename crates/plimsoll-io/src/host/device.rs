//! The counters of the block device under a path.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::parse::numbers;
use crate::blockdevice::Identity;

const SECTOR_BYTES: u64 = 512;

/// What a block device has done since it appeared, for everybody on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTotals {
    /// Reads completed.
    pub reads: u64,
    /// Bytes they transferred.
    pub read_bytes: u64,
    /// Their times added up.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes they transferred.
    pub write_bytes: u64,
    /// Their times added up.
    pub write_ms: u64,
    /// Cache flushes completed, where the kernel counts them.
    pub flushes: Option<u64>,
    /// Their times added up.
    pub flush_ms: Option<u64>,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time in which anything was in flight.
    pub busy_ms: u64,
    /// Time times requests in flight.
    pub queued_ms: u64,
}

/// A whole disk, also where a path lies on one of its partitions: its neighbours there press on the
/// same device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The kernel's name.
    pub name: String,
    stat: PathBuf,
}

impl BlockDevice {
    /// The device under a path that may not exist yet, or the device the path itself is. `None`
    /// where there is none: memory, network, several devices.
    pub fn under(path: &Path) -> Option<BlockDevice> {
        let existing = path.ancestors().find_map(|place| fs::metadata(place).ok())?;
        let identity = match existing.file_type().is_block_device() {
            true => Identity::of(libc::major(existing.rdev()), libc::minor(existing.rdev()))?,
            false => Identity::below_file_system(
                libc::major(existing.dev()),
                libc::minor(existing.dev()),
            )?,
        };
        let folder = identity.disk_folder();
        let device = BlockDevice {
            name: folder.file_name()?.to_string_lossy().into_owned(),
            stat: folder.join("stat"),
        };
        device.read().is_some().then_some(device)
    }

    /// Its counters now.
    pub fn read(&self) -> Option<DeviceTotals> {
        device_totals(&fs::read_to_string(&self.stat).ok()?)
    }
}

/// The stat file of a block device; times are in milliseconds, sectors are 512 bytes whatever the
/// device's own are. Kernels before 5.5 have no flush fields.
pub(super) fn device_totals(text: &str) -> Option<DeviceTotals> {
    let fields = numbers(text);
    let at = |position: usize| fields.get(position).copied();
    Some(DeviceTotals {
        reads: at(0)?,
        read_bytes: at(2)? * SECTOR_BYTES,
        read_ms: at(3)?,
        writes: at(4)?,
        write_bytes: at(6)? * SECTOR_BYTES,
        write_ms: at(7)?,
        in_flight: at(8)?,
        busy_ms: at(9)?,
        queued_ms: at(10)?,
        flushes: at(15),
        flush_ms: at(16),
    })
}
