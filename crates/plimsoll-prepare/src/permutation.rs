//! A seeded permutation of `0..count` that can be inverted, so that an index in scattered order
//! still has closed-form leaves.
//!
//! The numbers are laid out as a table of `rows` times `columns`, both about the square root of the
//! count; each Feistel round rotates one coordinate by a hash of the other. A result beyond the
//! count (the table is a little larger) is permuted again until it is inside, which keeps the whole
//! a permutation and happens rarely.

use super::filler::word;

/// Enough that neighbours land far apart; further rounds would only slow index pages down.
const ROUNDS: u64 = 3;

/// See the module text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    rows: u64,
    columns: u64,
    key: u64,
}

impl Permutation {
    pub(super) fn new(count: u64, key: u64) -> Self {
        let rows = count.isqrt().max(1);
        let columns = count.div_ceil(rows).max(1);
        Self { count, rows, columns, key }
    }

    /// Where `number` goes. Numbers past the count stay where they are.
    pub(super) fn forward(&self, number: u64) -> u64 {
        self.walk(number, Self::forward_once)
    }

    /// What goes to `place`.
    pub(super) fn inverse(&self, place: u64) -> u64 {
        self.walk(place, Self::inverse_once)
    }

    fn walk(&self, start: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        if start >= self.count {
            return start;
        }
        let mut at = step(self, start);
        while at >= self.count {
            at = step(self, at);
        }
        at
    }

    fn forward_once(&self, number: u64) -> u64 {
        let (mut row, mut column) = (number / self.columns, number % self.columns);
        for round in 0..ROUNDS {
            row = rotate(row, self.turn(2 * round, column, self.rows), self.rows);
            column = rotate(column, self.turn(2 * round + 1, row, self.columns), self.columns);
        }
        row * self.columns + column
    }

    fn inverse_once(&self, place: u64) -> u64 {
        let (mut row, mut column) = (place / self.columns, place % self.columns);
        for round in (0..ROUNDS).rev() {
            let back = self.columns - self.turn(2 * round + 1, row, self.columns);
            column = rotate(column, back, self.columns);
            row = rotate(row, self.rows - self.turn(2 * round, column, self.rows), self.rows);
        }
        row * self.columns + column
    }

    /// How far to rotate, below `bound`.
    fn turn(&self, round: u64, coordinate: u64, bound: u64) -> u64 {
        let hash = word(self.key.wrapping_add(round), coordinate);
        ((u128::from(hash) * u128::from(bound)) >> 64) as u64
    }
}

/// `at + by` modulo `bound`; `by` is at most `bound`.
fn rotate(at: u64, by: u64, bound: u64) -> u64 {
    let sum = at + by;
    if sum >= bound { sum - bound } else { sum }
}
