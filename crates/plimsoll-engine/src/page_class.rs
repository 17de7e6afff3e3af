//! What the checksum says about a page read from disk: sound, never written, repairable, damaged,
//! or somebody else's.
//!
//! The logical page number is part of every block's checksum, so a page that landed in the wrong
//! place looks damaged. It can still be told from garbage: the whole damage is then one constant in
//! the XOR half of every block. A small page has only one block and no page number in its header.
//! There a difference of a single bit may as well be a flip in the stored checksum and is reported
//! as damage, with [`BlockDamage::page_if_misplaced`] for callers who can look at the neighbours;
//! and about one torn page in 65,000 looks misplaced, so callers compare the number found with the
//! length of the file.

use std::fmt;

use plimsoll_io::is_zero;

use crate::checksum::{SLOTS, header_checksum, page_checksums, stored_checksums};
use crate::page::{PageFault, PageView, page_flags};
use crate::{PageNumber, PageSize};

/// Bit number in block 0 of the flag that tells the correcting checksum from the old one. It
/// decides which checksum applies, so it is never "corrected".
const FLAG_BIT_NUMBER: u32 = 36 * 8 + page_flags::NEW_CHECKSUM.trailing_zeros();

/// Flipped bits of a repairable page, at most one per block. Bit n of a page is bit `n % 8` of byte
/// `n / 8`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlippedBits {
    bits: [u32; 4],
    count: u8,
}

impl FlippedBits {
    /// Their numbers, ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.bits[..usize::from(self.count)]
    }

    fn push(&mut self, bit: u32) {
        self.bits[usize::from(self.count)] = bit;
        self.count += 1;
    }
}

/// The first block of a page whose checksum does not fit and cannot be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDamage {
    /// Which block, 0 to 3.
    pub block: u8,
    /// The checksum in the page.
    pub stored: u64,
    /// The checksum its content has.
    pub computed: u64,
}

impl BlockDamage {
    /// Whose page this is if nothing but its place is wrong with this block, when found in the
    /// place of `page_number`.
    pub fn page_if_misplaced(&self, page_number: PageNumber) -> Option<PageNumber> {
        let found = page_number ^ u32::try_from(self.stored ^ self.computed).ok()?;
        (found != page_number && found != 0).then_some(found)
    }
}

/// The class of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageClass {
    /// Sound and in its place.
    Ok,
    /// All bytes are zero: the page was never written.
    Uninitialized,
    /// Single flipped bits that [`correct`] can flip back.
    Correctable { bits: FlippedBits, damage: BlockDamage },
    /// Damaged.
    Bad { damage: BlockDamage },
    /// Sound, but it is page `found` and does not belong here.
    WrongPageNumber { found: PageNumber, damage: BlockDamage },
}

impl fmt::Display for PageClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageClass::Ok => formatter.write_str("it is sound"),
            PageClass::Uninitialized => formatter.write_str("it was never written"),
            PageClass::Correctable { .. } => formatter.write_str("a flipped bit can be put right"),
            PageClass::Bad { damage } => {
                write!(formatter, "the checksum of its block {} does not fit", damage.block)
            }
            PageClass::WrongPageNumber { found, .. } => write!(formatter, "it is page {found}"),
        }
    }
}

/// Classifies the page read from the place of page `page_number`.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn classify(page: &[u8], page_number: PageNumber) -> PageClass {
    if has_old_checksum(page) {
        return classify_old(page, page_number);
    }
    let stored = stored_checksums(page);
    let computed = page_checksums(page, page_number);
    if stored == computed {
        return classify_sound(page, page_number, stored[0]);
    }
    if let Some(found) = misplaced(page, page_number, stored, computed) {
        let damage = first_damage(stored, computed);
        return PageClass::WrongPageNumber { found, damage };
    }
    match flipped_bits(page, stored, computed) {
        Ok(bits) => PageClass::Correctable { bits, damage: first_damage(stored, computed) },
        Err(damage) => PageClass::Bad { damage },
    }
}

/// Flips the damaged bits of a repairable page back; returns them. Any other page stays as it is.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn correct(page: &mut [u8], page_number: PageNumber) -> Option<FlippedBits> {
    let PageClass::Correctable { bits, .. } = classify(page, page_number) else {
        return None;
    };
    flip(page, bits);
    Some(bits)
}

/// Corrects a database page, but only if the result makes sense as one: its tags, nodes and keys
/// fit together. Any other page stays as it is.
///
/// Several flips of odd number can look like one. Then the "corrected" page has a fitting checksum
/// and wrong content; on an 4 KiB page that happens to torn sectors often enough to matter, because
/// tags repeat their upper halves in the same columns.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn mend(page: &mut [u8], page_number: PageNumber) -> Option<FlippedBits> {
    let size = u32::try_from(page.len()).ok().and_then(PageSize::from_bytes)?;
    let bits = correct(page, page_number)?;
    let makes_sense = match PageView::new(page, size).check_structure() {
        // Trees with repeated keys exist in files that are not ours.
        Ok(()) | Err(PageFault::KeyOrder { .. }) => true,
        Err(_) => false,
    };
    if !makes_sense {
        flip(page, bits);
    }
    makes_sense.then_some(bits)
}

fn flip(page: &mut [u8], bits: FlippedBits) {
    for bit in bits.as_slice() {
        page[*bit as usize / 8] ^= 1 << (bit % 8);
    }
}

fn has_old_checksum(page: &[u8]) -> bool {
    u32_at(page, 36) & page_flags::NEW_CHECKSUM == 0
}

fn u32_at(page: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(page[offset..offset + 4].try_into().expect("four bytes"))
}

/// Pages without the flag: empty ones, and those of old engines, with an XOR sum and the page
/// number beside it.
fn classify_old(page: &[u8], page_number: PageNumber) -> PageClass {
    if is_zero(page) {
        return PageClass::Uninitialized;
    }
    let (sum, found) = (u32_at(page, 0), u32_at(page, 4));
    let computed = header_checksum(page);
    let damage = BlockDamage {
        block: 0,
        stored: u64::from(found) << 32 | u64::from(sum),
        computed: u64::from(page_number) << 32 | u64::from(computed),
    };
    if sum != computed {
        PageClass::Bad { damage }
    } else if found != page_number {
        PageClass::WrongPageNumber { found, damage }
    } else {
        PageClass::Ok
    }
}

/// A large page also carries its number in the header, where a page written by mistake under
/// another number shows.
fn classify_sound(page: &[u8], page_number: PageNumber, checksum: u64) -> PageClass {
    let found = embedded_page_number(page);
    if found.is_none_or(|found| found == page_number) {
        return PageClass::Ok;
    }
    let damage = BlockDamage { block: 0, stored: checksum, computed: checksum };
    PageClass::WrongPageNumber { found: found.unwrap_or_default(), damage }
}

/// Whether a page whose correcting checksums are right under this number is classified as sound in
/// that place.
pub fn is_sound_under(page: &[u8], page_number: PageNumber) -> bool {
    !has_old_checksum(page) && embedded_page_number(page).is_none_or(|found| found == page_number)
}

fn embedded_page_number(page: &[u8]) -> Option<PageNumber> {
    let is_large = PageSize::from_bytes(page.len() as u32).is_some_and(PageSize::is_large);
    is_large.then(|| u32_at(page, 64))
}

/// Whose page this certainly is, if the only thing wrong with it is its place.
fn misplaced(
    page: &[u8],
    page_number: PageNumber,
    stored: [u64; 4],
    computed: [u64; 4],
) -> Option<PageNumber> {
    let damage = first_damage(stored, computed);
    let found = damage.page_if_misplaced(page_number)?;
    let is_certain = match embedded_page_number(page) {
        Some(embedded) => {
            let difference = stored[0] ^ computed[0];
            embedded == found && (0..4).all(|block| stored[block] ^ computed[block] == difference)
        }
        None => (found ^ page_number).count_ones() > 1,
    };
    is_certain.then_some(found)
}

fn first_damage(stored: [u64; 4], computed: [u64; 4]) -> BlockDamage {
    let block = (0..3).find(|block| stored[*block] != computed[*block]).unwrap_or(3);
    BlockDamage { block: block as u8, stored: stored[block], computed: computed[block] }
}

/// The flipped bit of every damaged block, or the first block that has more wrong with it.
fn flipped_bits(
    page: &[u8],
    mut stored: [u64; 4],
    computed: [u64; 4],
) -> Result<FlippedBits, BlockDamage> {
    let is_large = embedded_page_number(page).is_some();
    let block_bits = (page.len() / if is_large { 4 } else { 1 } * 8) as u32;
    let mut bits = FlippedBits::default();
    for block in 0..4 {
        if stored[block] == computed[block] {
            continue;
        }
        let damage =
            BlockDamage { block: block as u8, stored: stored[block], computed: computed[block] };
        let bit = flipped_bit(stored[block] ^ computed[block], block_bits).ok_or(damage)?;
        if block == 0 && bit == FLAG_BIT_NUMBER {
            return Err(damage);
        }
        bits.push(block as u32 * block_bits + bit);
        // A flip inside a stored checksum of another block is found through block 0 and put right
        // before that block is checked.
        if let (0, true, Some(in_slots)) = (block, is_large, bit.checked_sub(SLOTS[1] as u32 * 8))
            && in_slots < 3 * 64
        {
            stored[1 + in_slots as usize / 64] ^= 1 << (in_slots % 64);
        }
    }
    Ok(bits)
}

/// The one bit whose flip explains this difference between stored and computed checksum.
fn flipped_bit(difference: u64, block_bits: u32) -> Option<u32> {
    let (located, xor) = ((difference >> 32) as u32, difference as u32);
    let bit = located & 0xFFFF;
    let complement = (located >> 16) ^ bit;
    let is_single = bit < block_bits && complement == block_bits - 1 && xor == 1 << (bit % 32);
    is_single.then_some(bit)
}
