//! Order-independent sums, to compare sets too large to hold.
//!
//! Each element is hashed to 64 bits and the hashes are added up. Equal sets have equal sums; sets
//! that differ have, for all that chance can do, different ones. This is a check against faults,
//! not against an adversary.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const MASK: u64 = 0xA076_1D64_78BD_642F;

/// The sum over a set and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    count: u64,
    total: u64,
}

impl Sum {
    /// Adds an element made of two parts.
    pub(super) fn add(&mut self, key: &[u8], data: &[u8]) {
        self.count += 1;
        self.total = self.total.wrapping_add(hash(hash(STEP, key), data));
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// A 64-bit hash of a number.
pub(super) fn hash_number(number: u64) -> u64 {
    mix(number ^ STEP)
}

/// A 64-bit hash of bytes and of what came before them.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = mix(before ^ bytes.len() as u64);
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word));
    }
    let mut padded = [0; 8];
    padded[..rest.len()].copy_from_slice(rest);
    mix(state ^ u64::from_le_bytes(padded))
}

fn mix(number: u64) -> u64 {
    let product =
        u128::from(number.wrapping_add(STEP) ^ MASK) * u128::from(number.rotate_left(32) ^ STEP);
    let folded = product as u64 ^ (product >> 64) as u64;
    folded ^ number.wrapping_mul(STEP) ^ folded >> 29
}
