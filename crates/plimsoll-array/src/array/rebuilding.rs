//! Filling a spare while hosts go on.

use super::Array;
use crate::agenda::Event;
use crate::drive::{Cause, Owner};
use crate::raid::{Extent, MemberState, Rebuild, plan_read};

impl Array {
    /// Begins to fill the first lost slot of a set if there is a spare.
    pub(super) fn begin_rebuild(&mut self, number: u32) {
        let set = &mut self.sets[number as usize];
        let lost =
            (0..set.layout.drive_count).find(|slot| set.slots.state(*slot) == MemberState::Lost);
        let Some(slot) = lost else { return };
        let is_busy = set.rebuild.is_some();
        let spare_count = &mut self.spare_counts[set.group as usize];
        if is_busy || set.is_lost || *spare_count == 0 || set.rebuild_bytes_per_second <= 0.0 {
            return;
        }
        *spare_count -= 1;
        set.slots.change(slot, MemberState::Filling { next_row: 0 });
        set.rebuild_attempts += 1;
        let rate = set.rebuild_bytes_per_second;
        set.rebuild = Some(Rebuild::new(slot, set.rows_end, set.element_bytes, rate, self.now));
        let attempt = set.rebuild_attempts;
        self.agenda.at(self.now, Event::Rebuild(number, attempt));
    }

    /// Reads the survivors of the next stretch.
    pub(super) fn rebuild_stretch(&mut self, number: u32, attempt: u32) {
        let set = &mut self.sets[number as usize];
        let Some(rebuild) = &mut set.rebuild else {
            return;
        };
        if attempt != set.rebuild_attempts {
            return;
        }
        rebuild.stretch_started = self.now;
        let (row, slot) = (rebuild.next_row, rebuild.slot);
        let offset = row * set.element_bytes;
        let bytes = (rebuild.stretch_rows() * set.element_bytes) as u32;
        let mut parts = Vec::new();
        if set.layout.is_mirrored() {
            parts.push(slot ^ 1);
        } else {
            // As if a data element of the row were on the lost drive: the other drives it takes to
            // compute it.
            let column = (0..set.layout.column_count())
                .find(|column| set.layout.data_drive(row, *column) == slot);
            let extent = Extent { column: column.unwrap_or(0), start: 0, bytes: 1 };
            if column.is_some() {
                plan_read(&set.layout, &set.slots, row, extent, false, |other, _, _| {
                    parts.push(other)
                });
            } else {
                parts.extend(
                    (0..set.layout.column_count()).map(|column| set.layout.data_drive(row, column)),
                );
                parts.retain(|other| set.slots.holds(*other, row));
            }
        }
        rebuild.left = parts.len() as u32;
        rebuild.writing = false;
        let first = set.drive_first;
        let owner = Owner::Rebuild { set: number, attempt };
        for other in parts {
            self.operate(first + other, offset, bytes, Cause::RebuildRead, owner);
        }
    }

    pub(super) fn rebuild_part_done(&mut self, number: u32, attempt: u32) {
        let set = &mut self.sets[number as usize];
        let Some(rebuild) = &mut set.rebuild else {
            return;
        };
        if attempt != set.rebuild_attempts {
            return;
        }
        rebuild.left -= 1;
        if rebuild.left > 0 {
            return;
        }
        if !rebuild.writing {
            rebuild.writing = true;
            rebuild.left = 1;
            let offset = rebuild.next_row * set.element_bytes;
            let bytes = (rebuild.stretch_rows() * set.element_bytes) as u32;
            let drive = set.drive_first + rebuild.slot;
            let owner = Owner::Rebuild { set: number, attempt };
            self.operate(drive, offset, bytes, Cause::RebuildWrite, owner);
            return;
        }
        rebuild.next_row += rebuild.stretch_rows();
        rebuild.progress.row_count = rebuild.next_row;
        let slot = rebuild.slot;
        if rebuild.next_row < rebuild.rows_end {
            let next_row = rebuild.next_row;
            let due = (rebuild.stretch_started + rebuild.stretch_ns).max(self.now);
            set.slots.change(slot, MemberState::Filling { next_row });
            self.agenda.at(due, Event::Rebuild(number, attempt));
            return;
        }
        let mut progress = rebuild.progress;
        progress.finished = Some(self.now);
        set.slots.change(slot, MemberState::Whole);
        set.rebuild = None;
        self.rebuilds.push(progress);
        self.begin_rebuild(number);
    }
}
