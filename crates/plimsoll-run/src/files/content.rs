//! What files hold: every sector follows from seed, place, version and data pattern, so that what
//! is read can be compared.
//!
//! A stamped sector says who it is. That costs a pattern of repeated bytes a little of its
//! sameness, so only files that are verified are stamped.
//!
//! ```text
//! sector: | seed 8 | sector number 8 | version 7, pattern 1 | body 488 |   little-endian
//! ```

use plimsoll_io::{Content, Random};

/// Content is made in units of this length.
pub const SECTOR_BYTES: usize = 512;
const STAMP_BYTES: usize = 24;
const PATTERN_SHIFT: u32 = 56;
/// The version of a sector that was prepared and never written since.
pub const PREPARED: u64 = 0;

/// What the sectors of a file look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One byte, repeated.
    Repeating,
    /// Random, and the same at every write of a place.
    PseudoRandom,
    /// Random, and new at every write.
    FullRandom,
}

impl Pattern {
    /// By the number that it has in an ICF file.
    ///
    /// # Errors
    /// When there is no such number.
    pub fn of_number(number: u8) -> Result<Pattern, String> {
        match number {
            0 => Ok(Pattern::Repeating),
            1 => Ok(Pattern::PseudoRandom),
            2 => Ok(Pattern::FullRandom),
            other => Err(format!("data_pattern is {other}; write 0, 1 or 2")),
        }
    }
}

/// What is known of a file's content.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Decides the content.
    pub seed: u64,
    /// How it looks.
    pub pattern: Pattern,
    /// Whether sectors say who they are.
    pub is_stamped: bool,
}

impl Recipe {
    /// Fills whole sectors that begin at `offset`. What is prepared does not depend on how much of
    /// it is asked for at once.
    pub fn fill(&self, offset: u64, version: u64, bytes: &mut [u8]) {
        let first = offset / SECTOR_BYTES as u64;
        if !self.is_stamped && self.pattern == Pattern::FullRandom && version > PREPARED {
            // Nobody compares: one generator for the whole transfer is quicker.
            return self.body_random(first, version).fill(bytes);
        }
        for (index, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
            self.fill_sector(first + index as u64, version, sector);
        }
    }

    fn fill_sector(&self, number: u64, version: u64, sector: &mut [u8]) {
        let body = if self.is_stamped {
            let word = version | (self.pattern as u64) << PATTERN_SHIFT;
            sector[..8].copy_from_slice(&self.seed.to_le_bytes());
            sector[8..16].copy_from_slice(&number.to_le_bytes());
            sector[16..24].copy_from_slice(&word.to_le_bytes());
            &mut sector[STAMP_BYTES..]
        } else {
            sector
        };
        match self.pattern {
            Pattern::Repeating => body.fill((self.seed ^ version.wrapping_mul(0x9E37)) as u8),
            Pattern::PseudoRandom => self.body_random(number, 0).fill(body),
            Pattern::FullRandom => self.body_random(number, version).fill(body),
        }
    }

    fn body_random(&self, number: u64, version: u64) -> Random {
        Random::from_seed(self.seed ^ number.rotate_left(24) ^ version.rotate_left(52))
    }

    /// The version of a stamped sector that is whole and at its place; what is wrong with it
    /// otherwise.
    ///
    /// # Errors
    /// What a reader of the report should know.
    pub fn version_of(&self, offset: u64, sector: &[u8]) -> Result<u64, String> {
        let word =
            |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
        let number = offset / SECTOR_BYTES as u64;
        if word(0) != self.seed {
            return Err("it holds nothing that was written to this file".into());
        }
        if word(8) != number {
            return Err(format!("it holds what was written to sector {}", word(8)));
        }
        let version = word(16) & ((1 << PATTERN_SHIFT) - 1);
        let pattern = Pattern::of_number((word(16) >> PATTERN_SHIFT) as u8).unwrap_or(self.pattern);
        let mut expected = [0; SECTOR_BYTES];
        Recipe { pattern, ..*self }.fill_sector(number, version, &mut expected);
        match expected == *sector {
            true => Ok(version),
            false => Err(format!("its content is not that of version {version}")),
        }
    }
}

/// A file as it is when just prepared.
impl Content for Recipe {
    fn unit_bytes(&self) -> usize {
        // Transfers are whole sectors: those that are read are not made unless somebody looks, and
        // those that are written meet no neighbour.
        SECTOR_BYTES
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) {
        Recipe::fill(self, offset, PREPARED, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written again as it was prepared takes no memory of a modelled storage: a transfer
    /// that came out otherwise than its sectors one by one would be kept, and compared, in full.
    #[test]
    fn what_was_prepared_is_the_same_however_much_of_it_is_written_at_once() {
        for pattern in [Pattern::Repeating, Pattern::PseudoRandom, Pattern::FullRandom] {
            for is_stamped in [false, true] {
                let recipe = Recipe { seed: 7, pattern, is_stamped };
                let (mut whole, mut sectors) = ([0; 9 * SECTOR_BYTES], [0; 9 * SECTOR_BYTES]);
                recipe.fill(3 * SECTOR_BYTES as u64, PREPARED, &mut whole);
                for (index, sector) in sectors.chunks_mut(recipe.unit_bytes()).enumerate() {
                    let offset = ((3 + index) * SECTOR_BYTES) as u64;
                    Content::fill(&recipe, offset, sector);
                }
                assert_eq!(whole, sectors, "{recipe:?}");
            }
        }
    }
}
