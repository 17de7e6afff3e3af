//! Measures the checksum kernel against the obvious loop that counts the bits of every word.
//!
//! `cargo run --release -p plimsoll-engine --example checksum_rate` prints, for every page size,
//! the rate of both for pages in the processor's cache and the ratio. Run it as it is for baseline
//! x86-64 (the kernel then chooses its AVX2 form by itself), and with `RUSTFLAGS="-C
//! target-cpu=x86-64-v3"` to give the obvious loop the newer instructions too. Repeats are
//! interleaved and the median counts. A number as the only argument says how many repeats instead
//! of the usual ones.

#![expect(clippy::disallowed_methods, reason = "it measures on the real clock")]

use std::hint::black_box;
use std::time::Instant;

use plimsoll_engine::{copy_and_checksum, page_checksums};

const REPEATS_USUAL: usize = 21;
const BYTES_PER_REPEAT: usize = 256 << 20;
/// Together they stay inside a second-level cache.
const BYTES_IN_USE: usize = 256 << 10;

/// The loop the kernel is measured against: one population count per 32-bit word.
fn checksum_by_counting(block: &[u8], page_number: u32, is_header_block: bool) -> u64 {
    let (words, _) = block.as_chunks::<4>();
    let skipped = if is_header_block { 2 } else { 0 };
    let (mut xor, mut odd_words, mut set_bits) = (0u32, 0u32, 0u32);
    for (number, bytes) in words[skipped..].iter().enumerate() {
        let word = u32::from_le_bytes(*bytes);
        let count = word.count_ones();
        xor ^= word;
        odd_words ^= (number + skipped) as u32 * (count & 1);
        set_bits += count;
    }
    let mut low = odd_words << 5;
    for bit in 0..32 {
        low ^= bit & 0u32.wrapping_sub(xor >> bit & 1);
    }
    let high = if set_bits % 2 == 1 { low ^ (block.len() as u32 * 8 - 1) } else { low };
    u64::from(high << 16 | low) << 32 | u64::from(xor ^ page_number)
}

fn page_by_counting(page: &[u8], page_number: u32) -> [u64; 4] {
    let block_bytes = if page.len() > 8192 { page.len() / 4 } else { page.len() };
    let mut sums = [0; 4];
    for (index, block) in page.chunks_exact(block_bytes).enumerate() {
        sums[index] = checksum_by_counting(block, page_number, index == 0);
    }
    sums
}

/// Bytes per nanosecond, which is GB/s, of `work` over all pages.
fn rate(pages: &[u8], page_bytes: usize, mut work: impl FnMut(&[u8], u32)) -> f64 {
    let started = Instant::now();
    for _ in 0..BYTES_PER_REPEAT / pages.len() {
        for (number, page) in pages.chunks_exact(page_bytes).enumerate() {
            work(black_box(page), number as u32);
        }
    }
    BYTES_PER_REPEAT as f64 / started.elapsed().as_nanos() as f64
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures mean nothing");
    }
    let repeats = std::env::args()
        .nth(1)
        .map_or(REPEATS_USUAL, |text| text.parse().expect("the number of repeats"));
    let pages: Vec<u8> = (0..BYTES_IN_USE as u64)
        .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8)
        .collect();
    let target_cpu =
        if cfg!(target_feature = "avx2") { "built for AVX2" } else { "built for the baseline" };
    println!(
        "{target_cpu}; {} MiB per repeat, {repeats} interleaved repeats, medians in GB/s",
        BYTES_PER_REPEAT >> 20
    );
    println!("page bytes  counting  kernel  ratio  copy+sum");
    for page_bytes in [4096, 8192, 16384, 32768] {
        let mut target = vec![0; page_bytes];
        let [mut counting, mut kernel, mut copying] = [const { Vec::new() }; 3];
        for page in pages.chunks_exact(page_bytes) {
            assert_eq!(page_by_counting(page, 7), page_checksums(page, 7), "both compute the same");
        }
        for _ in 0..repeats {
            counting.push(rate(&pages, page_bytes, |page, number| {
                black_box(page_by_counting(page, number));
            }));
            kernel.push(rate(&pages, page_bytes, |page, number| {
                black_box(page_checksums(page, number));
            }));
            copying.push(rate(&pages, page_bytes, |page, number| {
                copy_and_checksum(page, black_box(&mut target), number);
            }));
        }
        let (counting, kernel, copying) = (median(counting), median(kernel), median(copying));
        let ratio = kernel / counting;
        println!("{page_bytes:>10}  {counting:>8.2}  {kernel:>6.2}  {ratio:>5.2}  {copying:>8.2}");
    }
}
