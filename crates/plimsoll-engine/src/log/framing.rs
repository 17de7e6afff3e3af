//! How a generation's payload is cut into units that can be checked one by one.
//!
//! A unit is what one write may tear between. Every unit carries the number of the flush that wrote
//! it, so that a reader can tell the unfinished last flush (its units may be there in any subset)
//! from damage (a unit is bad although a later flush was acknowledged).
//!
//! ```text
//! 512-byte sectors (editions 2003 to 2010, our own):
//!   u32 CRC-32C of the rest, seeded with generation and index | u32 flush | u16 used payload bytes | u16 low bits of generation |
//!   500 bytes payload                                                                               (12 bytes of overhead)
//! 4096-byte segments (edition 2013, the layout of real v8 logs with our flush number in its zero bytes):
//!   u64 page checksum seeded with the index | LGPOS | LOGTIME | u32 flush, u16 used, 2 zero, u32 CRC-32C | u32 0x2000 | 4056 bytes payload
//! ```
//!
//! With segments the last, partly filled segment is followed by an identical shadow that names the
//! segment it shadows. A rewrite of the segment is made durable before the shadow is touched, so
//! one of the two is always whole. A sector is taken to be written atomically; on disks with larger
//! physical sectors that is not so, and probe warns.
//!
//! The page checksum alone does not see every torn segment: it is an exclusive-or with an
//! error-correcting code, and whole sectors of very regular data cancel out in it. A page can be
//! put back from an image then; a log has no second record, so its segments carry a CRC besides.

use crc_fast::{CrcAlgorithm, Digest};
use plimsoll_io::is_zero;

use super::{GENERATION_BYTES, HEADER_BYTES, Lsn};
use crate::checksum::block_checksum;
use crate::logtime::{LogPosition, LogTime};

/// The framing of a log stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// 512-byte sectors.
    Sectors512,
    /// 4 KiB segments with shadow.
    Segments4096,
}

/// What a unit on disk turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// Never written since the file was formatted.
    Blank,
    /// Checksum wrong, or it belongs elsewhere.
    Bad,
    /// Whole.
    Good {
        /// Flush that wrote it.
        flush: u32,
        /// Payload bytes in use.
        used_bytes: usize,
        /// The unit it stands for: its own index, or one less for a shadow.
        stands_for: u32,
    },
}

const SECTOR_OVERHEAD_BYTES: usize = 12;
const SEGMENT_OVERHEAD_BYTES: usize = 40;
const SEGMENT_FLAGS: u32 = 0x2000;

impl Framing {
    /// Bytes of a unit.
    pub fn unit_bytes(self) -> usize {
        match self {
            Framing::Sectors512 => 512,
            Framing::Segments4096 => 4096,
        }
    }

    fn overhead_bytes(self) -> usize {
        match self {
            Framing::Sectors512 => SECTOR_OVERHEAD_BYTES,
            Framing::Segments4096 => SEGMENT_OVERHEAD_BYTES,
        }
    }

    /// Payload bytes of a unit.
    pub fn payload_bytes(self) -> usize {
        self.unit_bytes() - self.overhead_bytes()
    }

    /// Whether the last partly filled unit needs a shadow.
    pub fn has_shadow(self) -> bool {
        self == Framing::Segments4096
    }

    /// Index of the first unit after the header.
    pub fn first_unit(self) -> u32 {
        (HEADER_BYTES / self.unit_bytes()) as u32
    }

    /// Units in a file, header included.
    pub fn units_per_file(self) -> u32 {
        (GENERATION_BYTES as usize / self.unit_bytes()) as u32
    }

    /// Payload bytes of a generation. With shadows the last unit is kept for the shadow.
    pub fn capacity_bytes(self) -> u32 {
        let reserved = u32::from(self.has_shadow());
        (self.units_per_file() - self.first_unit() - reserved) * self.payload_bytes() as u32
    }

    /// The unit that holds payload offset `offset`.
    pub fn unit_of(self, offset: u32) -> u32 {
        self.first_unit() + offset / self.payload_bytes() as u32
    }

    /// The payload offset at which a unit starts.
    pub fn payload_start(self, unit: u32) -> u32 {
        (unit - self.first_unit()) * self.payload_bytes() as u32
    }

    /// The place as the format writes it: sector, byte, generation.
    pub fn position(self, lsn: Lsn) -> LogPosition {
        let unit = self.unit_of(lsn.offset);
        let byte = lsn.offset - self.payload_start(unit) + self.overhead_bytes() as u32;
        LogPosition { generation: lsn.generation, sector: unit as u16, byte: byte as u16 }
    }

    /// Fills `unit` (exactly one unit long) with framed payload. `index` is the unit the payload
    /// belongs to.
    pub fn encode(
        self,
        unit: &mut [u8],
        generation: u32,
        index: u32,
        flush: u32,
        payload: &[u8],
        time: LogTime,
    ) {
        assert!(unit.len() == self.unit_bytes() && payload.len() <= self.payload_bytes());
        let (head, body) = unit.split_at_mut(self.overhead_bytes());
        body[..payload.len()].copy_from_slice(payload);
        body[payload.len()..].fill(0);
        let used = (payload.len() as u16).to_le_bytes();
        match self {
            Framing::Sectors512 => {
                head[4..8].copy_from_slice(&flush.to_le_bytes());
                head[8..10].copy_from_slice(&used);
                head[10..12].copy_from_slice(&(generation as u16).to_le_bytes());
                let crc = sector_crc(unit, generation, index);
                unit[..4].copy_from_slice(&crc.to_le_bytes());
            }
            Framing::Segments4096 => {
                head.fill(0);
                let position = LogPosition { generation, sector: index as u16, byte: 0 };
                head[8..16].copy_from_slice(&position.to_bytes());
                head[16..24].copy_from_slice(&time.0);
                head[24..28].copy_from_slice(&flush.to_le_bytes());
                head[28..30].copy_from_slice(&used);
                head[36..40].copy_from_slice(&SEGMENT_FLAGS.to_le_bytes());
                let crc = segment_crc(unit);
                unit[32..36].copy_from_slice(&crc.to_le_bytes());
                let checksum = block_checksum(unit, index, true);
                unit[..8].copy_from_slice(&checksum.to_le_bytes());
            }
        }
    }

    /// Judges the unit found at `index`.
    pub fn decode(self, unit: &[u8], generation: u32, index: u32) -> UnitState {
        assert_eq!(unit.len(), self.unit_bytes());
        if is_zero(unit) {
            return UnitState::Blank;
        }
        let (flush, used_bytes, stands_for, good) = match self {
            Framing::Sectors512 => {
                let good = u32_at(unit, 0) == sector_crc(unit, generation, index)
                    && u16::from_le_bytes([unit[10], unit[11]]) == generation as u16;
                (u32_at(unit, 4), u16::from_le_bytes([unit[8], unit[9]]), index, good)
            }
            Framing::Segments4096 => {
                let position =
                    LogPosition::from_bytes(unit[8..16].try_into().expect("eight bytes"));
                let stands_for = u32::from(position.sector);
                let mut stored = [0; 8];
                stored.copy_from_slice(&unit[..8]);
                let good = u64::from_le_bytes(stored) == block_checksum(unit, stands_for, true)
                    && u32_at(unit, 32) == segment_crc(unit)
                    && position.generation == generation
                    && (stands_for == index || stands_for + 1 == index);
                (u32_at(unit, 24), u16::from_le_bytes([unit[28], unit[29]]), stands_for, good)
            }
        };
        let used_bytes = usize::from(used_bytes);
        if good && used_bytes <= self.payload_bytes() {
            UnitState::Good { flush, used_bytes, stands_for }
        } else {
            UnitState::Bad
        }
    }

    /// The payload part of a unit.
    pub fn payload(self, unit: &[u8]) -> &[u8] {
        &unit[self.overhead_bytes()..]
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Of everything but the two sums.
fn segment_crc(unit: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&unit[8..32]);
    digest.update(&unit[36..]);
    digest.finalize() as u32
}

fn sector_crc(unit: &[u8], generation: u32, index: u32) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&generation.to_le_bytes());
    digest.update(&index.to_le_bytes());
    digest.update(&unit[4..]);
    digest.finalize() as u32
}
