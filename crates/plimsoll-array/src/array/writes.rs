//! Writes: into the cache when there is room, through to the drives when the cache is not to be
//! trusted.

use super::{Array, NO_REQUEST, Piece, RowWrite};
use crate::cache::DirtyRow;
use crate::drive::{Cause, Owner};
use crate::raid::{Extent, Strategy, plan_write};
use crate::spec::Tenant;

impl Array {
    pub(super) fn take_write(&mut self, slot: u32) {
        let pending = self.requests[slot as usize];
        let bytes = u64::from(pending.request.bytes);
        let member = &mut self.members[pending.member as usize];
        if member.is_writing_through {
            self.write_through(slot);
        } else if !member.waiting.is_empty() || !member.has_room(bytes) {
            member.counters.write_stall_count += 1;
            member.waiting.push_back(slot);
        } else {
            self.absorb(slot);
        }
    }

    /// Takes a write into the cache and answers it.
    fn absorb(&mut self, slot: u32) {
        let pending = self.requests[slot as usize];
        let (offset, bytes) = (pending.request.offset, u64::from(pending.request.bytes));
        let member = pending.member as usize;
        let volume = &mut self.volumes[pending.request.volume as usize];
        volume.recent.wrote(offset, bytes, self.members[member].cache.recent_bytes);
        let pool = volume.pool;
        let is_neighbours = volume.tenant != Tenant::Host;
        self.cut(pool, pending.slice, pending.address, bytes);
        if self.touches_lost() {
            self.requests[slot as usize].is_lost = true;
        } else {
            for piece in &self.pieces {
                let dirty = &mut self.sets[piece.set as usize].dirty;
                let added = dirty.add(self.now, piece.row, piece.extent, is_neighbours);
                self.members[member].dirty_bytes += added;
                self.members[member].dirty.enter(self.now, added);
            }
        }
        self.answer(slot);
        self.destage(pending.member);
    }

    fn write_through(&mut self, slot: u32) {
        let pending = self.requests[slot as usize];
        let bytes = u64::from(pending.request.bytes);
        let pool = self.volumes[pending.request.volume as usize].pool;
        self.cut(pool, pending.slice, pending.address, bytes);
        let mut rows: Vec<(u32, u64, Vec<Extent>)> = Vec::new();
        for Piece { set, row, extent } in &self.pieces {
            match rows.iter_mut().find(|other| (other.0, other.1) == (*set, *row)) {
                Some(other) => other.2.push(*extent),
                None => rows.push((*set, *row, vec![*extent])),
            }
        }
        if rows.iter().any(|(set, _, _)| self.sets[*set as usize].is_lost) {
            self.requests[slot as usize].is_lost = true;
            self.answer(slot);
            return;
        }
        self.requests[slot as usize].parts_left = rows.len() as u32;
        let is_neighbours = self.is_neighbours(pending.request.volume);
        for (set, row, extents) in rows {
            let through = DirtyRow { extents, since_ns: 0, is_neighbours };
            self.write_row(set, row, through, slot);
        }
    }

    /// Lets writes in that waited for room.
    pub(super) fn admit_waiting(&mut self, number: u32) {
        loop {
            let member = &mut self.members[number as usize];
            let Some(slot) = member.waiting.front().copied() else {
                return;
            };
            let bytes = u64::from(self.requests[slot as usize].request.bytes);
            if !member.is_writing_through && !member.has_room(bytes) {
                return;
            }
            member.waiting.pop_front();
            if self.members[number as usize].is_writing_through {
                self.write_through(slot);
            } else {
                self.absorb(slot);
            }
        }
    }

    /// Sends a row to the drives: what has to be read first, then what is written.
    pub(super) fn write_row(&mut self, set_number: u32, row: u64, dirty: DirtyRow, request: u32) {
        let DirtyRow { extents, since_ns, is_neighbours } = dirty;
        let set = &self.sets[set_number as usize];
        let share = self.members[set.member as usize].cache.old_data_share;
        let old_data_known = share > 0.0 && fraction_of(row) < share;
        let element_bytes = set.element_bytes as u32;
        let plan =
            plan_write(&set.layout, &set.slots, row, element_bytes, &extents, old_data_known);
        let counters = &mut self.members[set.member as usize].counters;
        counters.destaged_row_count += 1;
        counters.full_stripe_count += u64::from(plan.strategy == Strategy::FullStripe);
        let row_write = RowWrite {
            set: set_number,
            row,
            reads_left: plan.reads.len() as u32,
            writes_left: plan.writes.len() as u32,
            writes: plan.writes,
            bytes: extents.iter().map(|extent| u64::from(extent.bytes)).sum(),
            extents,
            since_ns,
            request,
            is_neighbours,
        };
        let base = row * set.element_bytes;
        let drive_first = set.drive_first;
        let slot = match self.row_writes_free.pop() {
            Some(slot) => {
                self.row_writes[slot as usize] = Some(row_write);
                slot
            }
            None => {
                self.row_writes.push(Some(row_write));
                (self.row_writes.len() - 1) as u32
            }
        };
        for read in &plan.reads {
            let cause = if read.is_parity { Cause::OldParity } else { Cause::OldData };
            let offset = base + u64::from(read.start);
            self.operate(drive_first + read.slot, offset, read.bytes, cause, Owner::RowWrite(slot));
        }
        if plan.reads.is_empty() {
            self.issue_row_writes(slot);
        }
    }

    fn issue_row_writes(&mut self, slot: u32) {
        let row_write = self.row_writes[slot as usize].as_mut().expect("its reads have just ended");
        let writes = std::mem::take(&mut row_write.writes);
        let set = &self.sets[row_write.set as usize];
        let (base, drive_first) = (row_write.row * set.element_bytes, set.drive_first);
        if writes.is_empty() {
            self.row_landed(slot);
            return;
        }
        for write in writes {
            let cause = if write.is_parity { Cause::NewParity } else { Cause::NewData };
            let offset = base + u64::from(write.start);
            self.operate(
                drive_first + write.slot,
                offset,
                write.bytes,
                cause,
                Owner::RowWrite(slot),
            );
        }
    }

    pub(super) fn row_part_done(&mut self, slot: u32, cause: Cause) {
        let row_write =
            self.row_writes[slot as usize].as_mut().expect("a part of it was on its way");
        if cause.is_write() {
            row_write.writes_left -= 1;
            if row_write.writes_left == 0 {
                self.row_landed(slot);
            }
        } else {
            row_write.reads_left -= 1;
            if row_write.reads_left == 0 {
                self.issue_row_writes(slot);
            }
        }
    }

    fn row_landed(&mut self, slot: u32) {
        let row_write =
            self.row_writes[slot as usize].take().expect("its last part has just ended");
        self.row_writes_free.push(slot);
        if row_write.request != NO_REQUEST {
            self.part_done(row_write.request);
            return;
        }
        let set = &mut self.sets[row_write.set as usize];
        set.dirty.landed(row_write.row);
        set.dirty.recycle(row_write.extents);
        let member = set.member;
        let bytes = row_write.bytes;
        let stay_ns = u128::from(bytes) * u128::from(self.now) - row_write.since_ns;
        self.members[member as usize].dirty_bytes -= bytes;
        self.members[member as usize].dirty.leave(self.now, bytes, stay_ns);
        self.admit_waiting(member);
        self.destage(member);
    }
}

impl super::Member {
    fn has_room(&self, bytes: u64) -> bool {
        self.dirty_bytes == 0 || self.dirty_bytes + bytes <= self.cache.dirty_bytes_max
    }
}

/// A number from 0 to 1 that belongs to a row for ever.
fn fraction_of(row: u64) -> f64 {
    (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64
}
