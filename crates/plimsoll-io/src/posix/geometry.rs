//! What the block device behind a file says of itself, read from sysfs and statx: block sizes, the alignment direct I/O
//! needs, the unit that is written without tearing.
//!
//! Source: statx(2) (STATX_DIOALIGN, Linux 6.1) and the kernel's "Queue sysfs files" document. A file system without a
//! single block device below it (network, tmpfs) tells nothing; then the least assumption is made.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::last_errno;

/// The least a block device can address; assumed where nothing else is known.
const SECTOR_BYTES: u32 = 512;

/// Sizes that decide how a file may be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// The device's addressing unit, if there is one device.
    pub logical_block_bytes: Option<u32>,
    /// The unit the medium writes, if there is one device and it says so.
    pub physical_block_bytes: Option<u32>,
    /// What direct I/O on this file needs according to the file system; zero when it says that direct I/O is impossible.
    pub direct_alignment_bytes: Option<u32>,
}

impl Geometry {
    /// The geometry of an open file or block device.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Result<Self, i32> {
        // SAFETY: an all-zero statx is a valid value of that plain C structure.
        let mut facts: libc::statx = unsafe { std::mem::zeroed() };
        // SAFETY: the path is an empty C string, the structure is writable, the descriptor is open.
        let result = unsafe {
            libc::statx(
                file.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH,
                libc::STATX_BASIC_STATS | libc::STATX_DIOALIGN,
                &mut facts,
            )
        };
        if result != 0 {
            return Err(last_errno());
        }
        let is_device = u32::from(facts.stx_mode) & libc::S_IFMT == libc::S_IFBLK;
        let queue = if is_device {
            queue_folder(facts.stx_rdev_major, facts.stx_rdev_minor)
        } else {
            queue_below_file_system(facts.stx_dev_major, facts.stx_dev_minor)
        };
        let attribute = |name| queue.as_ref().and_then(|folder| number_in(&folder.join(name)));
        Ok(Self {
            logical_block_bytes: attribute("logical_block_size"),
            physical_block_bytes: attribute("physical_block_size"),
            direct_alignment_bytes: (facts.stx_mask & libc::STATX_DIOALIGN != 0)
                .then_some(facts.stx_dio_offset_align),
        })
    }

    /// Offsets and lengths must be multiples of this.
    pub(crate) fn alignment_bytes(&self) -> u32 {
        let direct = self.direct_alignment_bytes.filter(|bytes| *bytes > 0);
        direct
            .or(self.logical_block_bytes)
            .unwrap_or(SECTOR_BYTES)
            .max(SECTOR_BYTES)
    }

    /// What the device writes whole, as far as it says.
    pub(crate) fn atomic_write_bytes(&self) -> u32 {
        self.physical_block_bytes.unwrap_or(SECTOR_BYTES)
    }

    /// Whether the device rewrites a larger block than the one it lets us address ("512e").
    pub(crate) fn emulates_smaller_blocks(&self) -> bool {
        matches!((self.logical_block_bytes, self.physical_block_bytes),
                 (Some(logical), Some(physical)) if logical < physical)
    }
}

/// The queue attributes of a block device; a partition shares those of its disk.
pub(crate) fn queue_folder(major: u32, minor: u32) -> Option<PathBuf> {
    let device = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let disk = if device.join("partition").exists() {
        device.parent()?.to_owned()
    } else {
        device
    };
    Some(disk.join("queue")).filter(|queue| queue.is_dir())
}

fn queue_below_file_system(major: u32, minor: u32) -> Option<PathBuf> {
    queue_folder(major, minor).or_else(|| {
        // btrfs and its like have a device number of their own; the mount names the real device.
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let source = mount_source(&mounts, major, minor)?;
        let number = fs::metadata(source).ok()?.rdev();
        queue_folder(libc::major(number), libc::minor(number))
    })
}

/// The source of the mount with this device number, from the text of /proc/self/mountinfo (proc(5)).
fn mount_source(mounts: &str, major: u32, minor: u32) -> Option<&Path> {
    let wanted = format!("{major}:{minor}");
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(&wanted))?;
    let (_, after_separator) = line.split_once(" - ")?;
    after_separator
        .split(' ')
        .nth(1)
        .filter(|source| source.starts_with("/dev/"))
        .map(Path::new)
}

fn number_in(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
