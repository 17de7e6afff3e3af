//! Files that are never stored: their content is a pure function of the offset, and only what was
//! written is kept.
//!
//! A [`Content`] generates what nobody has written. A [`Delta`] keeps what was written as the
//! difference against the generated content, so that a database of a terabyte under load fits into
//! memory. Both work in units, usually pages. The coding must be lossless: a benchmark that
//! returned approximate pages would measure its own mistakes.

use std::sync::Arc;

use crate::Vouch;

/// What a file holds where nobody has written. It may be asked by several threads.
pub trait Content: Send + Sync {
    /// Content is generated and kept in blocks of this many bytes, usually the page size.
    fn unit_bytes(&self) -> usize;

    /// Writes the content at `offset` into `bytes`: always exactly one unit at a multiple of the
    /// unit. The same offset gives the same bytes for ever.
    fn fill(&self, offset: u64, bytes: &mut [u8]);

    /// What is known of the unit at `offset` without making it.
    fn vouch(&self, _offset: u64) -> Option<Vouch> {
        None
    }
}

/// A lossless coding of a written unit against the generated one. Several threads may use it.
pub trait Delta: Send + Sync {
    /// The written unit, coded. An empty result means "exactly as generated".
    fn encode(&self, generated: &[u8], written: &[u8]) -> Vec<u8>;

    /// Turns the generated unit in `unit` into the written one.
    ///
    /// # Panics
    /// When `coded` did not come from [`Delta::encode`] with the same generated unit.
    fn decode(&self, coded: &[u8], unit: &mut [u8]);

    /// What is known of a written unit from its code alone.
    fn vouch(&self, _coded: &[u8]) -> Option<Vouch> {
        None
    }
}

/// Generated content with the coding for what is written over it.
#[derive(Clone)]
pub struct Sparse {
    /// Where unwritten bytes come from.
    pub content: Arc<dyn Content>,
    /// How written units are kept.
    pub delta: Arc<dyn Delta>,
}

impl Sparse {
    /// Content with the default coding, [`Runs`].
    pub fn new(content: Arc<dyn Content>) -> Self {
        Self { content, delta: Arc::new(Runs) }
    }
}

/// The default coding: the runs of bytes that differ, or the whole unit where that is shorter.
///
/// ```text
/// first byte 0 (whole):  0, then every byte of the unit
/// first byte 1 (runs):   1, then per run: equal bytes to skip (LEB128), differing bytes (LEB128), those bytes
/// ```
///
/// Equal stretches shorter than a run's own header are carried inside the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs;

const WHOLE: u8 = 0;
const RUNS: u8 = 1;
/// An equal stretch up to this long is cheaper inside a run than as a gap between two.
const GAP_BYTES_MIN: usize = 4;

impl Delta for Runs {
    fn encode(&self, generated: &[u8], written: &[u8]) -> Vec<u8> {
        assert_eq!(
            generated.len(),
            written.len(),
            "a unit is coded against a unit of the same length"
        );
        let mut coded = vec![RUNS];
        let mut position = 0;
        while let Some((start, end)) = next_run(generated, written, position) {
            push_number(&mut coded, start - position);
            push_number(&mut coded, end - start);
            coded.extend_from_slice(&written[start..end]);
            position = end;
            if coded.len() > written.len() {
                coded.clear();
                coded.push(WHOLE);
                coded.extend_from_slice(written);
                return coded;
            }
        }
        if coded.len() == 1 { Vec::new() } else { coded }
    }

    fn decode(&self, coded: &[u8], unit: &mut [u8]) {
        match coded.split_first() {
            None => {}
            Some((&WHOLE, whole)) => unit.copy_from_slice(whole),
            Some((_, mut runs)) => {
                let mut position = 0;
                while !runs.is_empty() {
                    position += take_number(&mut runs);
                    let length = take_number(&mut runs);
                    let (run, rest) = runs.split_at(length);
                    unit[position..position + length].copy_from_slice(run);
                    position += length;
                    runs = rest;
                }
            }
        }
    }
}

/// The next differing run at or after `from`, bridging short equal stretches.
fn next_run(generated: &[u8], written: &[u8], from: usize) -> Option<(usize, usize)> {
    let start = from + first_difference(&generated[from..], &written[from..])?;
    let mut end = start + 1;
    while let Some(gap) = first_difference(&generated[end..], &written[end..]) {
        if gap >= GAP_BYTES_MIN {
            break;
        }
        end += gap + 1;
    }
    Some((start, end))
}

/// Where two stretches of one length first differ. Most of a page is equal, so whole words are
/// compared first.
pub fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    const WORD: usize = 32;
    let (lefts, rights) = (left.as_chunks::<WORD>().0, right.as_chunks::<WORD>().0);
    let words = lefts.iter().zip(rights);
    let position = WORD * words.take_while(|(left, right)| left == right).count();
    (position..left.len()).find(|&index| left[index] != right[index])
}

fn push_number(coded: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        coded.push(number as u8 | 0x80);
        number >>= 7;
    }
    coded.push(number as u8);
}

fn take_number(coded: &mut &[u8]) -> usize {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = coded[0];
        *coded = &coded[1..];
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}
