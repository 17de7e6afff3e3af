//! What the block device behind a file says of itself, read from sysfs and statx: block sizes, the
//! alignment direct I/O needs, the unit that is written without tearing.
//!
//! Source: statx(2) (STATX_DIOALIGN, Linux 6.1) and the kernel's "Queue sysfs files" document. A
//! file system without a single block device below it (network, tmpfs) tells nothing; then the
//! least assumption is made.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::last_errno;
use crate::blockdevice::Identity;

/// The least a block device can address; assumed where nothing else is known.
const SECTOR_BYTES: u32 = 512;

/// Sizes that decide how a file may be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Tells devices apart: a block device's own number, or that of the one below the file system.
    pub device: u64,
    /// The device's addressing unit, if there is one device.
    pub logical_block_bytes: Option<u32>,
    /// The unit the medium writes, if there is one device and it says so.
    pub physical_block_bytes: Option<u32>,
    /// What direct I/O on this file needs according to the file system; zero when it says that
    /// direct I/O is impossible.
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
        let (number, device) = if is_device {
            let (major, minor) = (facts.stx_rdev_major, facts.stx_rdev_minor);
            ((major, minor), Identity::of(major, minor))
        } else {
            let (major, minor) = (facts.stx_dev_major, facts.stx_dev_minor);
            ((major, minor), Identity::below_file_system(major, minor))
        };
        let block_size = |name| {
            let bytes = device.as_ref().and_then(|device| device.number(name));
            bytes.and_then(|bytes| u32::try_from(bytes).ok())
        };
        Ok(Self {
            device: u64::from(number.0) << 32 | u64::from(number.1),
            logical_block_bytes: block_size("queue/logical_block_size"),
            physical_block_bytes: block_size("queue/physical_block_size"),
            direct_alignment_bytes: (facts.stx_mask & libc::STATX_DIOALIGN != 0)
                .then_some(facts.stx_dio_offset_align),
        })
    }

    /// Offsets and lengths must be multiples of this.
    pub(crate) fn alignment_bytes(&self) -> u32 {
        let direct = self.direct_alignment_bytes.filter(|bytes| *bytes > 0);
        direct.or(self.logical_block_bytes).unwrap_or(SECTOR_BYTES).max(SECTOR_BYTES)
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
