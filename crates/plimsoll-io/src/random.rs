//! Seeded randomness. One seed decides a simulated run; children are derived by name, so adding a
//! consumer does not disturb the others.
//!
//! Generator: xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64. Written here
//! because a recorded seed must give the same run in every later version, which no library
//! promises.

/// A deterministic random source.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
    seed: u64,
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The generator a seed stands for.
    pub fn from_seed(seed: u64) -> Self {
        let mut mixer = seed;
        let state = std::array::from_fn(|_| splitmix64(&mut mixer));
        Self { state, seed }
    }

    /// An independent generator named `name`; the same name gives the same child however much this
    /// one was used.
    pub fn child(&self, name: &str) -> Self {
        let mut mixed = self.seed ^ 0xA076_1D64_78BD_642F;
        for byte in name.bytes() {
            mixed = splitmix64(&mut mixed) ^ u64::from(byte);
        }
        Self::from_seed(splitmix64(&mut mixed))
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (t2, t3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ t3, s1 ^ t2, t2 ^ (s1 << 17), t3.rotate_left(45)];
        result
    }

    /// A uniform number in `0..bound` (Lemire's multiply-shift; the bias is below 2^-64 times
    /// `bound`).
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number in 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An exponentially distributed number with mean 1, from arithmetic that IEEE 754 fixes to the
    /// last bit: no library logarithm, so a seed gives the same numbers on every machine.
    pub fn exponential(&mut self) -> f64 {
        negative_logarithm(1.0 - self.unit())
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// `-ln(unit)` for `0 < unit <= 1` from the exponent and the series of atanh, in plain arithmetic.
fn negative_logarithm(unit: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = unit.to_bits();
    let exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    // ratio <= 1/3, so twelve terms leave an error below 1e-12.
    let series = (0..12).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    -(exponent as f64 * LN_2 + 2.0 * ratio * series)
}
