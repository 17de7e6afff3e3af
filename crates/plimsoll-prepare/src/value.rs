//! Long values in closed form: which leaf holds which chunks, and the bytes of a chunk.
//!
//! A long value is a head node (key: id; data: reference count, length) followed by its chunks
//! (key: id and byte offset). Small values share a leaf; larger ones take a whole number of leaves,
//! as many chunks in each as fit.
//!
//! ```text
//! chunk = "PV" | u16 chunk | u32 version | u64 record number | words of the chunk's own sequence
//! ```
//!
//! The first byte keeps readers from taking a chunk for a compressed one.

use super::filler::{derive, fill};
use super::keys::node_space_bytes;
use super::plan::LongValues;
use plimsoll_engine::PageSize;

const TAG_BYTES: usize = 4;
/// Tag, suffix length, 4-byte key, 8 bytes of data.
const HEAD_COST_BYTES: usize = TAG_BYTES + 2 + 4 + 8;
/// Tag, suffix length, 8-byte key; the chunk comes on top.
const CHUNK_OVERHEAD_BYTES: usize = TAG_BYTES + 2 + 8;
const MARK: [u8; 2] = *b"PV";
/// Bytes of mark, chunk, version and number.
pub(super) const CHUNK_HEADER_BYTES: usize = 16;

/// Bytes of a full chunk. (Public ESE source: what the engine chooses at each page size.)
pub(super) fn chunk_bytes(size: PageSize) -> usize {
    match size {
        PageSize::KIB_4 => 4014,
        PageSize::KIB_8 => 8110,
        PageSize::KIB_16 => 4050,
        _ => 8150,
    }
}

/// The longest long value: chunks are numbered in 16 bits.
pub(super) fn bytes_max(size: PageSize) -> u32 {
    chunk_bytes(size) as u32 * u32::from(u16::MAX)
}

/// How long values of one length lie on leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueForm {
    pub bytes: usize,
    pub chunk_bytes: usize,
    chunks: u64,
    /// Whole values on a leaf, at least 1 when a value fits.
    per_leaf: u64,
    /// Leaves of a value that fits no leaf.
    leaves_per_value: u64,
    /// Chunks on the first of these leaves, and on the others.
    first_chunks: u64,
    other_chunks: u64,
}

/// A stretch of one value on a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub value: u64,
    pub has_head: bool,
    pub first_chunk: u64,
    pub chunks: u64,
}

impl ValueForm {
    pub(super) fn new(size: PageSize, long_values: LongValues) -> Self {
        let (bytes, chunk_bytes) = (long_values.bytes as usize, chunk_bytes(size));
        let chunks = bytes.div_ceil(chunk_bytes);
        let space_bytes = node_space_bytes(size, 0);
        let value_cost_bytes = HEAD_COST_BYTES + chunks * CHUNK_OVERHEAD_BYTES + bytes;
        let chunk_cost_bytes = CHUNK_OVERHEAD_BYTES + chunk_bytes;
        let first_chunks = ((space_bytes - HEAD_COST_BYTES) / chunk_cost_bytes) as u64;
        let other_chunks = (space_bytes / chunk_cost_bytes) as u64;
        let chunks = chunks as u64;
        Self {
            bytes,
            chunk_bytes,
            chunks,
            per_leaf: (space_bytes / value_cost_bytes) as u64,
            leaves_per_value: 1 + chunks.saturating_sub(first_chunks).div_ceil(other_chunks),
            first_chunks,
            other_chunks,
        }
    }

    pub(super) fn leaf_count(&self, values: u64) -> u64 {
        if self.per_leaf > 0 {
            values.div_ceil(self.per_leaf)
        } else {
            values * self.leaves_per_value
        }
    }

    /// What lies on leaf `leaf` of a tree with `values` long values.
    pub(super) fn parts(&self, leaf: u64, values: u64) -> Vec<Part> {
        if self.per_leaf > 0 {
            let first = leaf * self.per_leaf;
            return (first..values.min(first + self.per_leaf))
                .map(|value| Part { value, has_head: true, first_chunk: 0, chunks: self.chunks })
                .collect();
        }
        let (value, place) = (leaf / self.leaves_per_value, leaf % self.leaves_per_value);
        let first_chunk = self.first_chunk(place);
        vec![Part {
            value,
            has_head: place == 0,
            first_chunk,
            chunks: self.first_chunk(place + 1).min(self.chunks) - first_chunk,
        }]
    }

    /// The first chunk on the `place`-th leaf of a value.
    fn first_chunk(&self, place: u64) -> u64 {
        match place {
            0 => 0,
            _ => self.first_chunks + (place - 1) * self.other_chunks,
        }
    }

    pub(super) fn first_key(&self, leaf: u64) -> Vec<u8> {
        if self.per_leaf > 0 {
            return id_of(leaf * self.per_leaf).to_be_bytes().to_vec();
        }
        let (value, place) = (leaf / self.leaves_per_value, leaf % self.leaves_per_value);
        let mut key = id_of(value).to_be_bytes().to_vec();
        if place > 0 {
            key.extend(self.offset_of(self.first_chunk(place)).to_be_bytes());
        }
        key
    }

    /// Byte offset of a chunk in its value.
    pub(super) fn offset_of(&self, chunk: u64) -> u32 {
        chunk as u32 * self.chunk_bytes as u32
    }

    /// Length of a chunk.
    pub(super) fn length_of(&self, chunk: u64) -> usize {
        (self.bytes - self.offset_of(chunk) as usize).min(self.chunk_bytes)
    }
}

/// The identifier of the `value`-th long value; identifiers start at 1.
pub(super) fn id_of(value: u64) -> u32 {
    (value + 1) as u32
}

/// Writes the content of one chunk.
pub(super) fn write_chunk(
    key: u64,
    number: u64,
    version: u32,
    chunk: u64,
    random_percent: usize,
    bytes: &mut [u8],
) {
    let mut header = [0; CHUNK_HEADER_BYTES];
    header[..2].copy_from_slice(&MARK);
    header[2..4].copy_from_slice(&(chunk as u16).to_le_bytes());
    header[4..8].copy_from_slice(&version.to_le_bytes());
    header[8..].copy_from_slice(&number.to_le_bytes());
    let header_bytes = bytes.len().min(CHUNK_HEADER_BYTES);
    let (start, words) = bytes.split_at_mut(header_bytes);
    start.copy_from_slice(&header[..header_bytes]);
    let key = derive(derive(derive(key, number), version.into()), chunk);
    fill(words, key, words.len() * random_percent / 100);
}

/// The record number, version and chunk a chunk claims, if it has the form of ours.
pub(super) fn identify_chunk(bytes: &[u8]) -> Option<(u64, u32, u64)> {
    let header = bytes.first_chunk::<CHUNK_HEADER_BYTES>()?;
    let chunk = u16::from_le_bytes([header[2], header[3]]);
    let version = u32::from_le_bytes(header[4..8].try_into().ok()?);
    let number = u64::from_le_bytes(header[8..].try_into().ok()?);
    (header[..2] == MARK).then_some((number, version, chunk.into()))
}
