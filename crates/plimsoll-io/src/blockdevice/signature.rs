//! What a device that is not empty looks like: the marks that file systems, partition tables,
//! volume managers, RAID and encryption leave in its first and last mebibyte.
//!
//! Sources: the on-disk format documents of each system as far as they are published, else the
//! probing tables of util-linux (libblkid/src/superblocks, libblkid/src/partitions), read for
//! offsets and magic values. Limit: a device without any known mark may still hold data; that is
//! why the user must also name its serial.

/// How much of each end is looked at.
pub(crate) const SCAN_BYTES: usize = 1 << 20;
/// The name answered for one of our own databases (the ESE header's magic number at byte 4).
pub(crate) const DATABASE: &str = "an ESE database";

/// Where a mark lies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Bytes from the start.
    Start(usize),
    /// Bytes before the end.
    End(usize),
}
use Place::{End, Start};

/// One kind of mark: whose it is, where it may lie, what it is.
pub(super) struct Mark {
    pub owner: &'static str,
    pub magic: &'static [u8],
    pub places: &'static [Place],
}

const fn mark(owner: &'static str, magic: &'static [u8], places: &'static [Place]) -> Mark {
    Mark { owner, magic, places }
}

/// Marks at fixed places. Two-byte marks are few and only where our own header page has no content
/// of its own.
#[rustfmt::skip]
pub(super) const MARKS: &[Mark] = &[
    mark("a GPT partition table", b"EFI PART", &[Start(512), Start(4096), End(512), End(4096)]),
    mark("LVM", b"LABELONE", &[Start(0), Start(512), Start(1024), Start(1536)]),
    mark("Linux RAID", &[0xFC, 0x4E, 0x2B, 0xA9], &[Start(0), Start(4096)]),
    mark("DDF RAID", &[0xDE, 0x11, 0xDE, 0x11], &[End(512), End(257 * 512)]),
    mark("DDF RAID", &[0x11, 0xDE, 0x11, 0xDE], &[End(512), End(257 * 512)]),
    mark("Intel RAID", b"Intel Raid ISM Cfg Sig. ", &[End(1024), End(8192)]),
    mark("LUKS encryption", b"LUKS\xBA\xBE", &[Start(0)]),
    mark("LUKS encryption", b"SKUL\xBA\xBE", &[Start(0x4000), Start(0x8000), Start(0x10000),
        Start(0x20000), Start(0x40000), Start(0x80000)]),
    mark("ext2, ext3 or ext4", &[0x53, 0xEF], &[Start(0x438)]),
    mark("XFS", b"XFSB", &[Start(0)]),
    mark("Btrfs", b"_BHRfS_M", &[Start(0x10040)]),
    mark("F2FS", &[0x10, 0x20, 0xF5, 0xF2], &[Start(0x400)]),
    mark("JFS", b"JFS1", &[Start(0x8000)]),
    mark("ReiserFS", b"ReIsEr", &[Start(0x10034), Start(0x2034)]),
    mark("NILFS2", &[0x34, 0x34], &[Start(0x406)]),
    mark("GFS2", &[0x01, 0x16, 0x19, 0x70], &[Start(0x10000)]),
    mark("OCFS2", b"OCFSV2", &[Start(0x400), Start(0x800), Start(0x1000), Start(0x2000)]),
    mark("bcache or bcachefs", &[0xC6, 0x85, 0x73, 0xF6], &[Start(0x1018)]),
    mark("swap space", b"SWAPSPACE2", &[Start(4096 - 10), Start(8192 - 10), Start(16384 - 10),
        Start(65536 - 10)]),
    mark("swap space", b"SWAP-SPACE", &[Start(4096 - 10), Start(8192 - 10), Start(16384 - 10),
        Start(65536 - 10)]),
    mark("NTFS", b"NTFS    ", &[Start(3)]),
    mark("exFAT", b"EXFAT   ", &[Start(3)]),
    mark("ReFS", b"ReFS", &[Start(3)]),
    mark("BitLocker", b"-FVE-FS-", &[Start(3)]),
    mark("FAT", b"FAT32   ", &[Start(82)]),
    mark("FAT", b"FAT1", &[Start(54)]),
    mark("APFS", b"NXSB", &[Start(32)]),
    mark("HFS+", &[b'H', b'+', 0, 4], &[Start(1024)]),
    mark("HFS+", &[b'H', b'X', 0, 5], &[Start(1024)]),
    mark("ISO 9660", b"CD001", &[Start(0x8001)]),
    mark("UDF", b"BEA01", &[Start(0x8001)]),
    mark("SquashFS", b"hsqs", &[Start(0)]),
    mark("EROFS", &[0xE2, 0xE1, 0xF5, 0xE0], &[Start(0x400)]),
    mark("Ceph BlueStore", b"bluestore block device", &[Start(0)]),
    mark("VDO", b"dmvdo001", &[Start(0)]),
    mark("Stratis", b"!Stra0tis\x86\xFF\x02^\x41rh", &[Start(516), Start(4612)]),
    mark("Oracle ASM", b"ORCLDISK", &[Start(32)]),
    mark("an MBR partition table or boot sector", &[0x55, 0xAA], &[Start(510)]),
    mark(DATABASE, &[0xEF, 0xCD, 0xAB, 0x89], &[Start(4)]),
];

/// Linux RAID superblocks near the end, and ZFS uberblocks, in the byte order of the host that
/// wrote them.
const LINUX_RAID: [u8; 4] = [0xFC, 0x4E, 0x2B, 0xA9];
const LINUX_RAID_SWAPPED: [u8; 4] = [0xA9, 0x2B, 0x4E, 0xFC];
const ZFS_UBERBLOCK: [u8; 8] = 0x00BA_B10C_u64.to_le_bytes();
const ZFS_UBERBLOCK_SWAPPED: [u8; 8] = 0x00BA_B10C_u64.to_be_bytes();
/// A ZFS label: two at each end of the device, the uberblocks in its second half.
const ZFS_LABEL_BYTES: usize = 256 * 1024;
const ZFS_UBERBLOCK_STEP: usize = 1024;

/// Whose data a device carries. `head` and `tail` are its first and last bytes, at most
/// [`SCAN_BYTES`] each.
pub(crate) fn find_signature(
    head: &[u8],
    tail: &[u8],
    capacity_bytes: u64,
) -> Option<&'static str> {
    let found = MARKS.iter().find(|mark| {
        mark.places.iter().any(|place| match place {
            Start(offset) => bytes_at(head, *offset, mark.magic.len()) == Some(mark.magic),
            End(before) => tail
                .len()
                .checked_sub(*before)
                .is_some_and(|offset| bytes_at(tail, offset, mark.magic.len()) == Some(mark.magic)),
        })
    });
    if let Some(mark) = found {
        return Some(mark.owner);
    }
    if has_linux_raid_at_end(tail, capacity_bytes) {
        return Some("Linux RAID");
    }
    (has_zfs(head) || has_zfs(aligned_tail(tail, capacity_bytes))).then_some("ZFS")
}

fn bytes_at(bytes: &[u8], offset: usize, length: usize) -> Option<&[u8]> {
    bytes.get(offset..offset.checked_add(length)?)
}

/// Version 1.0 lies 8 KiB before the end, on a 4 KiB boundary; version 0.90 in the last whole 64
/// KiB but one.
fn has_linux_raid_at_end(tail: &[u8], capacity_bytes: u64) -> bool {
    let tail_start = capacity_bytes - tail.len() as u64;
    let version_1_0 = capacity_bytes.saturating_sub(8192) & !4095;
    let version_0_90 = (capacity_bytes & !65535).saturating_sub(65536);
    [version_1_0, version_0_90].iter().any(|place| {
        let offset = place.checked_sub(tail_start).map(|offset| offset as usize);
        let found = offset.and_then(|offset| bytes_at(tail, offset, 4));
        found == Some(&LINUX_RAID) || found == Some(&LINUX_RAID_SWAPPED)
    })
}

/// ZFS counts its labels from a capacity rounded down to whole labels.
fn aligned_tail(tail: &[u8], capacity_bytes: u64) -> &[u8] {
    let beyond = (capacity_bytes % ZFS_LABEL_BYTES as u64) as usize;
    let end = tail.len().saturating_sub(beyond);
    let start = end.saturating_sub(2 * ZFS_LABEL_BYTES);
    &tail[start..end]
}

fn has_zfs(labels: &[u8]) -> bool {
    labels
        .chunks_exact(ZFS_LABEL_BYTES)
        .take(2)
        .flat_map(|label| label[ZFS_LABEL_BYTES / 2..].chunks_exact(ZFS_UBERBLOCK_STEP))
        .any(|slot| slot.starts_with(&ZFS_UBERBLOCK) || slot.starts_with(&ZFS_UBERBLOCK_SWAPPED))
}
