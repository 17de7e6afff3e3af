//! The ESE checksum of a block: 32 bits of XOR and 32 bits that locate a flipped bit.
//!
//! Number the bits of a block from 0 and XOR together the numbers of all bits that are set: call it
//! L. XOR the complements of the same numbers: call it H. One flipped bit changes L by its number
//! and H by the complement of its number, so the damage names the bit. The third part, X, is the
//! XOR of all 32-bit words. A block's checksum is `H:L:X`, with the logical page number XORed into
//! X. (Algorithm: public ESE source; the formulation and this way of computing it are our own.)
//!
//! Computing L bit by bit is slow. Bit k of L above the word is the parity of everything whose
//! address has bit k set, so we lay the block out as eight rows, take three address bits from XORs
//! of rows, fold the rows into one and repeat. That is about two XORs per word in loops that
//! compilers turn into vector code; no intrinsics. On x86-64 the same code is compiled a second
//! time for AVX2 and chosen at run time (`docs/decisions/checksum-dispatch.md`).

use crate::{PageNumber, PageSize};

/// Value every header checksum starts from.
const HEADER_SEED: u32 = 0x89AB_CDEF;

/// Page offsets of the checksums of blocks 0 to 3.
pub const SLOTS: [usize; 4] = [0, 40, 48, 56];

/// The checksum of a header (database, log, checkpoint, flush map): a seeded XOR of everything
/// after the checksum itself. Pages older than format 0x620,0x0B carry the same sum.
pub fn header_checksum(block: &[u8]) -> u32 {
    let (words, _) = block.get(4..).unwrap_or_default().as_chunks::<4>();
    words.iter().fold(HEADER_SEED, |sum, word| sum ^ u32::from_le_bytes(*word))
}

/// The checksum of one block of 1, 2, 4 or 8 KiB belonging to page `page_number`. In a header block
/// the first eight bytes, where the checksum itself lies, count as zero.
///
/// # Panics
/// On any other length.
pub fn block_checksum(block: &[u8], page_number: PageNumber, is_header_block: bool) -> u64 {
    with_best_kernel(
        #[inline(always)]
        || sum_block(block, page_number, is_header_block),
    )
}

/// The checksums of a page as computed from its content: one for a small page, four for a large
/// one, the rest zero. Block 0 covers the stored checksums of the other three.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn page_checksums(page: &[u8], page_number: PageNumber) -> [u64; 4] {
    let block_bytes = page_size(page).block_bytes();
    with_best_kernel(
        #[inline(always)]
        || {
            let mut sums = [0; 4];
            for (index, block) in page.chunks_exact(block_bytes).enumerate() {
                sums[index] = sum_block(block, page_number, index == 0);
            }
            sums
        },
    )
}

/// The checksums stored in a page.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn stored_checksums(page: &[u8]) -> [u64; 4] {
    let blocks = page.len() / page_size(page).block_bytes();
    let mut sums = [0; 4];
    for (sum, slot) in sums.iter_mut().zip(SLOTS).take(blocks) {
        *sum = word_at(page, slot);
    }
    sums
}

/// Computes and stores the checksums of a page that is about to be written as page `page_number`.
///
/// # Panics
/// When `page` is not as long as a page.
pub fn set_checksum(page: &mut [u8], page_number: PageNumber) {
    let block_bytes = page_size(page).block_bytes();
    with_best_kernel(
        #[inline(always)]
        || {
            // Block 0 holds the other checksums and is therefore summed last.
            for index in (0..page.len() / block_bytes).rev() {
                let block = &page[index * block_bytes..(index + 1) * block_bytes];
                let sum = sum_block(block, page_number, index == 0);
                store(page, index, sum);
            }
        },
    );
}

/// Copies a page and stores its checksums in the copy, reading the source only once.
///
/// # Panics
/// When `source` is not as long as a page or `target` has another length.
pub fn copy_and_checksum(source: &[u8], target: &mut [u8], page_number: PageNumber) {
    let block_bytes = page_size(source).block_bytes();
    assert_eq!(source.len(), target.len(), "a page is copied to a page");
    with_best_kernel(
        #[inline(always)]
        || {
            // Each block is summed from the copy while it is still in the nearest cache; block 0
            // last, see `set_checksum`.
            target[..block_bytes].copy_from_slice(&source[..block_bytes]);
            for index in (0..source.len() / block_bytes).rev() {
                let range = index * block_bytes..(index + 1) * block_bytes;
                if index > 0 {
                    target[range.clone()].copy_from_slice(&source[range.clone()]);
                }
                let sum = sum_block(&target[range], page_number, index == 0);
                store(target, index, sum);
            }
        },
    );
}

fn page_size(page: &[u8]) -> PageSize {
    u32::try_from(page.len())
        .ok()
        .and_then(PageSize::from_bytes)
        .expect("checksums are taken of whole pages")
}

fn word_at(page: &[u8], offset: usize) -> u64 {
    let bytes = page[offset..offset + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

fn store(page: &mut [u8], index: usize, sum: u64) {
    page[SLOTS[index]..SLOTS[index] + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Runs `work` compiled for the best instruction set this processor has.
#[inline(always)]
pub fn with_best_kernel<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has just been asked for all three features; `with_avx2` needs
        // nothing else.
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,popcnt")]
fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

type Word = [u8; 8];

#[inline(always)]
fn sum_block(block: &[u8], page_number: PageNumber, is_header_block: bool) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    // The const arguments are an eighth and a sixty-fourth of the words.
    let folded = match block.len() {
        8192 => fold::<128, 16>(words),
        4096 => fold::<64, 8>(words),
        2048 => fold::<32, 4>(words),
        1024 => fold::<16, 2>(words),
        other => panic!("checksum blocks have 1, 2, 4 or 8 KiB, not {other} bytes"),
    };
    // The first word has address zero: it took part in nothing but the fold, so it can be taken out
    // at the end.
    let checksum_word = if is_header_block { u64::from_le_bytes(words[0]) } else { 0 };
    finish(folded, checksum_word, page_number, block.len())
}

/// What is left of a block: one word, and the bits of L for everything above a word.
struct Folded {
    word: u64,
    high_bits: u32,
}

#[inline(always)]
fn fold<const EIGHTH: usize, const SIXTY_FOURTH: usize>(words: &[Word]) -> Folded {
    let mut eighth = [[0; 8]; EIGHTH];
    let mut sixty_fourth = [[0; 8]; SIXTY_FOURTH];
    let top = fold_rows(words, &mut eighth);
    let middle = fold_rows(&eighth, &mut sixty_fourth);
    let (word, low) = fold_rest(&sixty_fourth);
    let low_bits = SIXTY_FOURTH.trailing_zeros();
    Folded { word, high_bits: top << (low_bits + 3) | middle << low_bits | low }
}

/// Folds eight rows of words into one row; returns the three bits of L that number the rows.
#[inline(always)]
fn fold_rows<const ROW: usize>(words: &[Word], folded: &mut [Word; ROW]) -> u32 {
    let (rows, _) = words.as_chunks::<ROW>();
    let rows: &[[Word; ROW]; 8] = rows.try_into().expect("callers pass eight rows");
    let mut bits = [0u64; 3];
    for column in 0..ROW {
        let [w0, w1, w2, w3, w4, w5, w6, w7] =
            std::array::from_fn(|row| u64::from_le_bytes(rows[row][column]));
        let (w23, w45, w67) = (w2 ^ w3, w4 ^ w5, w6 ^ w7);
        let w4567 = w45 ^ w67;
        bits[0] ^= w1 ^ w3 ^ w5 ^ w7;
        bits[1] ^= w23 ^ w67;
        bits[2] ^= w4567;
        folded[column] = (w0 ^ w1 ^ w23 ^ w4567).to_le_bytes();
    }
    parity(bits[2]) << 2 | parity(bits[1]) << 1 | parity(bits[0])
}

/// Folds the last few words into one; returns it and the bits of L that number the words.
#[inline(always)]
fn fold_rest(words: &[Word]) -> (u64, u32) {
    let mut word = 0;
    let mut numbers_of_odd_words = 0;
    for (number, bytes) in words.iter().enumerate() {
        let value = u64::from_le_bytes(*bytes);
        word ^= value;
        numbers_of_odd_words ^= number as u32 * parity(value);
    }
    (word, numbers_of_odd_words)
}

#[inline(always)]
fn finish(folded: Folded, checksum_word: u64, page_number: PageNumber, block_bytes: usize) -> u64 {
    let word = folded.word ^ checksum_word;
    let upper = (word >> 32) as u32;
    let xor = word as u32 ^ upper;
    let mut low = folded.high_bits << 6 | parity(u64::from(upper)) << 5;
    for (bit, mask) in
        [0xAAAA_AAAA, 0xCCCC_CCCC, 0xF0F0_F0F0, 0xFF00_FF00, 0xFFFF_0000].into_iter().enumerate()
    {
        low |= parity(u64::from(xor & mask)) << bit;
    }
    let all_bits = (block_bytes * 8 - 1) as u32;
    let high = low ^ (all_bits * parity(u64::from(xor)));
    u64::from(high << 16 | low) << 32 | u64::from(xor ^ page_number)
}

#[inline(always)]
fn parity(word: u64) -> u32 {
    word.count_ones() & 1
}
