//! Comparing two large sets without sorting or storing either: both sides add up a strong hash of each member.

/// A sum of hashes that does not depend on the order of what is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub count: u64,
    hash: u128,
}

fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// 128 bits of `left` and `right`; the lengths are part of it, so that bytes cannot move from one to the other.
fn hash(left: &[u8], right: &[u8]) -> u128 {
    let mut halves = [
        left.len() as u64 ^ 0x9E37_79B9_7F4A_7C15,
        right.len() as u64 ^ 0xC2B2_AE3D_27D4_EB4F,
    ];
    for part in [left, right] {
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = u64::from_le_bytes(word);
            halves[0] = mix(halves[0] ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
            halves[1] = mix(halves[1].rotate_left(29) ^ word).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        }
    }
    u128::from(halves[0]) << 64 | u128::from(halves[1])
}

impl Sum {
    pub fn add(&mut self, left: &[u8], right: &[u8]) {
        self.add_times(left, right, 1);
    }

    pub fn add_times(&mut self, left: &[u8], right: &[u8], times: u64) {
        self.count = self.count.wrapping_add(times);
        self.hash = self
            .hash
            .wrapping_add(hash(left, right).wrapping_mul(u128::from(times)));
    }
}
