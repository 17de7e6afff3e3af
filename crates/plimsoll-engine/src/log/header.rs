//! The 4 KiB header of a log generation: the layout of a real v8 log file as far as
//! `docs/file-format.md` lists it, with our own major version, so that a genuine ESE answers "bad
//! log version" instead of misreading our records.
//!
//! Offsets we add lie in the engine-parameter block, which belongs to the engine that wrote the
//! log: the framing, where the previous generation ended (so that a lost tail of a closed
//! generation is seen), and the flush number at creation.

use super::attached::Attached;
use super::framing::Framing;
use super::{GENERATION_BYTES, HEADER_BYTES, Lsn};
use crate::PageSize;
use crate::checksum::header_checksum;
use crate::logtime::{LogTime, Signature};

/// Our log version. Real ESE logs have major version 7 or 8.
pub const LOG_VERSION_MAJOR: u32 = 0x504C;
const REAL_VERSIONS: std::ops::RangeInclusive<u32> = 5..=9;
/// The version that is written: 4 has edit 10, which makes a page of nodes without their prefix, 3
/// has edits 8 and 9 of schema changes, 2 gave units a CRC. Every opening begins a generation, so
/// that no generation holds records of two versions.
const LOG_VERSION_MINOR: u32 = 4;
/// The oldest version that is read. Every later one has its records among others.
const LOG_VERSION_MINOR_OLDEST: u32 = 2;
const FILE_TYPE_LOG: u32 = 3;

/// What a generation says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationHeader {
    /// Generation number.
    pub generation: u32,
    /// When it was created.
    pub created: LogTime,
    /// When the generation before was created: chains the stream.
    pub previous_created: LogTime,
    /// Where the generation before ended; zero for the first.
    pub previous_end: Lsn,
    /// The stream's signature.
    pub signature: Signature,
    /// Framing.
    pub framing: Framing,
    /// Page size of the databases.
    pub page_size: PageSize,
    /// The highest flush number used before this generation.
    pub flush: u32,
    /// Whether old generations are deleted as the checkpoint moves on.
    pub circular: bool,
    /// What was attached when it began.
    pub attached: Attached,
}

mod at {
    pub const GENERATION: usize = 4;
    pub const SECTOR_BYTES: usize = 8;
    pub const HEADER_SECTORS: usize = 10;
    pub const FILE_SECTORS: usize = 12;
    pub const PAGE_BYTES: usize = 14;
    pub const CREATED: usize = 16;
    pub const PREVIOUS_CREATED: usize = 24;
    pub const MAJOR: usize = 32;
    pub const MINOR: usize = 36;
    pub const SIGNATURE: usize = 44;
    pub const PREVIOUS_END_GENERATION: usize = 600;
    pub const PREVIOUS_END_OFFSET: usize = 604;
    pub const FLUSH: usize = 608;
    pub const FLAGS: usize = 639;
    pub const FILE_TYPE: usize = 667;
    pub const ATTACHED: usize = 671;
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

impl GenerationHeader {
    /// The header block.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let unit_bytes = self.framing.unit_bytes();
        put(&mut bytes, at::GENERATION, &self.generation.to_le_bytes());
        put(&mut bytes, at::SECTOR_BYTES, &(unit_bytes as u16).to_le_bytes());
        put(&mut bytes, at::HEADER_SECTORS, &((HEADER_BYTES / unit_bytes) as u16).to_le_bytes());
        put(
            &mut bytes,
            at::FILE_SECTORS,
            &((GENERATION_BYTES as usize / unit_bytes) as u16).to_le_bytes(),
        );
        put(&mut bytes, at::PAGE_BYTES, &(self.page_size.bytes() as u16).to_le_bytes());
        put(&mut bytes, at::CREATED, &self.created.0);
        put(&mut bytes, at::PREVIOUS_CREATED, &self.previous_created.0);
        put(&mut bytes, at::MAJOR, &LOG_VERSION_MAJOR.to_le_bytes());
        put(&mut bytes, at::MINOR, &LOG_VERSION_MINOR.to_le_bytes());
        put(&mut bytes, at::SIGNATURE, &self.signature.to_bytes());
        put(&mut bytes, at::PREVIOUS_END_GENERATION, &self.previous_end.generation.to_le_bytes());
        put(&mut bytes, at::PREVIOUS_END_OFFSET, &self.previous_end.offset.to_le_bytes());
        put(&mut bytes, at::FLUSH, &self.flush.to_le_bytes());
        bytes[at::FLAGS] = if self.circular { 2 } else { 0 };
        put(&mut bytes, at::FILE_TYPE, &FILE_TYPE_LOG.to_le_bytes());
        self.attached.encode(&mut bytes[at::ATTACHED..]);
        let checksum = header_checksum(&bytes);
        put(&mut bytes, 0, &checksum.to_le_bytes());
        bytes
    }

    /// Reads a header block; the error says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() != HEADER_BYTES {
            return Err(format!("a log header has {HEADER_BYTES} bytes"));
        }
        let major = u32_at(bytes, at::MAJOR);
        let is_whole = u32_at(bytes, 0) == header_checksum(bytes);
        let is_log = u32_at(bytes, at::FILE_TYPE) == FILE_TYPE_LOG;
        // Which checksum a header must have, too, is for the version that wrote it to say.
        if is_log && (is_whole || REAL_VERSIONS.contains(&major)) && major != LOG_VERSION_MAJOR {
            return Err(format!(
                "log version {major:#x} is not ours ({LOG_VERSION_MAJOR:#x}) (-514)"
            ));
        }
        if !is_whole {
            return Err("the header checksum is wrong".into());
        }
        if !is_log {
            return Err("it is not a log file".into());
        }
        let minor = u32_at(bytes, at::MINOR);
        if minor < LOG_VERSION_MINOR_OLDEST {
            return Err(format!(
                "log version {major:#x}.{minor} was written by an older version of this program, \
                 and this one reads .{LOG_VERSION_MINOR_OLDEST} \
                 to .{LOG_VERSION_MINOR}; close the databases with the older one first (-514)"
            ));
        }
        if minor > LOG_VERSION_MINOR {
            return Err(format!(
                "log version {major:#x}.{minor} was written by a newer version of this program, \
                 and this one reads .{LOG_VERSION_MINOR_OLDEST} \
                 to .{LOG_VERSION_MINOR}; use the newer one (-514)"
            ));
        }
        let framing = match u16_at(bytes, at::SECTOR_BYTES) {
            512 => Framing::Sectors512,
            4096 => Framing::Segments4096,
            other => return Err(format!("unknown log sector size {other}")),
        };
        let page_bytes = u32::from(u16_at(bytes, at::PAGE_BYTES));
        let page_size =
            PageSize::from_bytes(page_bytes).ok_or(format!("unknown page size {page_bytes}"))?;
        let eight =
            |offset: usize| LogTime(bytes[offset..offset + 8].try_into().expect("eight bytes"));
        let signature = bytes[at::SIGNATURE..at::SIGNATURE + Signature::BYTES]
            .try_into()
            .expect("signature bytes");
        Ok(Self {
            generation: u32_at(bytes, at::GENERATION),
            created: eight(at::CREATED),
            previous_created: eight(at::PREVIOUS_CREATED),
            previous_end: Lsn::new(
                u32_at(bytes, at::PREVIOUS_END_GENERATION),
                u32_at(bytes, at::PREVIOUS_END_OFFSET),
            ),
            signature: Signature::from_bytes(signature),
            framing,
            page_size,
            flush: u32_at(bytes, at::FLUSH),
            circular: bytes[at::FLAGS] & 2 != 0,
            attached: Attached::decode(&bytes[at::ATTACHED..]),
        })
    }
}
