//! Filler: words that are a pure function of a 64-bit key and a counter, fast enough to write at
//! the speed of a disk.
//!
//! One word is the folded 128-bit product of a counter sequence with itself under a mask (the
//! mixing step of the wyhash family; constants chosen here). It need not resist an attacker, only a
//! storage array's compression and deduplication. The same arithmetic is repeated in the Python
//! reader tests, so it can never change under existing databases.

use plimsoll_engine::whole_pages::with_best_kernel;

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const MASK: u64 = 0xD6E8_FEB8_6659_FD93;

/// Mixes a number into a key.
pub(super) fn derive(key: u64, number: u64) -> u64 {
    word(word(key, number), 1)
}

/// Word `index` of the sequence named by `key`.
#[inline(always)]
pub(super) fn word(key: u64, index: u64) -> u64 {
    let counter = key.wrapping_add(index.wrapping_mul(STEP));
    let product = u128::from(counter ^ MASK) * u128::from(counter.rotate_left(32) ^ STEP);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Fills `bytes`: the first `random_bytes` (rounded down to words) with the key's sequence, the
/// rest with one repeated printable word. Returns the wrapping sum of all 64-bit little-endian
/// words, the last one padded with zeros.
pub(super) fn fill(bytes: &mut [u8], key: u64, random_bytes: usize) -> u64 {
    with_best_kernel(
        #[inline(always)]
        || fill_words(bytes, key, random_bytes),
    )
}

#[inline(always)]
fn fill_words(bytes: &mut [u8], key: u64, random_bytes: usize) -> u64 {
    let (random, plain) = bytes.split_at_mut(random_bytes.min(bytes.len()) / 8 * 8);
    let mut sum = 0u64;
    let (words, _) = random.as_chunks_mut::<8>();
    for (index, place) in words.iter_mut().enumerate() {
        let value = word(key, index as u64);
        *place = value.to_le_bytes();
        sum = sum.wrapping_add(value);
    }
    let repeated = printable(word(key, u64::MAX));
    let (words, rest) = plain.as_chunks_mut::<8>();
    words.fill(repeated);
    sum = sum.wrapping_add(u64::from_le_bytes(repeated).wrapping_mul(words.len() as u64));
    let mut padded = [0; 8];
    padded[..rest.len()].copy_from_slice(&repeated[..rest.len()]);
    rest.copy_from_slice(&padded[..rest.len()]);
    sum.wrapping_add(u64::from_le_bytes(padded))
}

/// Eight lower-case letters (and a few signs) from a word.
fn printable(word: u64) -> [u8; 8] {
    word.to_le_bytes().map(|byte| 0x60 | (byte & 0x1F))
}
