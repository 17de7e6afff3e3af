//! Moving dirty rows to the drives.

use super::{Array, NO_REQUEST};
use crate::cache::destage_limit;

impl Array {
    /// Starts as many rows of a box as its dirty share allows.
    pub(super) fn destage(&mut self, number: u32) {
        self.update_patience(number);
        for position in 0..self.members[number as usize].sets.len() {
            let set_number = self.members[number as usize].sets[position];
            loop {
                let member = &self.members[number as usize];
                let set = &mut self.sets[set_number as usize];
                let limit = if member.is_writing_through {
                    // What is left of better times has to leave.
                    set.layout.drive_count as usize
                } else {
                    destage_limit(&member.cache, member.dirty_bytes, set.layout.drive_count)
                };
                if set.dirty.is_empty() || set.dirty.in_flight_count() >= limit || set.is_lost {
                    break;
                }
                let Some((row, dirty)) = set.dirty.take_next() else {
                    break;
                };
                self.write_row(set_number, row, dirty, NO_REQUEST);
            }
        }
    }

    fn update_patience(&mut self, number: u32) {
        let member = &mut self.members[number as usize];
        let share = member.dirty_bytes as f64 / member.cache.dirty_bytes_max as f64;
        let left = (1.0 - share / member.cache.destage_full_share).max(0.0);
        member.patience_ns = (member.cache.read_preference_ns as f64 * left) as i64;
    }
}
