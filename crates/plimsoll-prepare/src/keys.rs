//! Keys of record numbers, and how much room they leave in a page.

use super::plan::RECORD_NUMBER_MAX;
use plimsoll_engine::PageSize;

/// Bytes of a tag, which says where a node lies.
pub(super) const TAG_BYTES: usize = 4;
/// Leading bytes shared by all keys of a record number: the segment mark and the top three bytes.
pub(super) const KEY_PREFIX_BYTES: usize = 4;
/// Bytes of a normalised record number.
pub(super) const NUMBER_KEY_BYTES: usize = 9;

/// The normalised key of a record number (or of a scatter value): segment mark, then big-endian
/// with the sign bit turned.
pub(super) fn number_key(number: u64) -> [u8; NUMBER_KEY_BYTES] {
    let mut key = [0x7F; NUMBER_KEY_BYTES];
    key[1..].copy_from_slice(&(number ^ 1 << 63).to_be_bytes());
    key
}

/// The number of which this is the key.
pub(super) fn number_of_key(key: &[u8]) -> Option<u64> {
    let (mark, number) = key.split_first_chunk::<1>()?;
    let number = u64::from_be_bytes(number.try_into().ok()?) ^ 1 << 63;
    (*mark == [0x7F] && number < RECORD_NUMBER_MAX).then_some(number)
}

/// Bytes for nodes and their tags on a page with this external header.
pub(super) fn node_space_bytes(size: PageSize, external_bytes: usize) -> usize {
    size.bytes() - size.header_bytes() - TAG_BYTES - external_bytes
}
