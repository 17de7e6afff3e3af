//! Reads: from what was just written, from what was read ahead, or from the drives.

use super::{Array, Fetch};
use crate::drive::{Cause, Owner};
use crate::raid::plan_read;

/// Rows that stay on one side of a mirror while a chunk is read, so that each side is read in long
/// stretches.
const MIRROR_ROWS: u64 = 16;

impl Array {
    pub(super) fn take_read(&mut self, slot: u32) {
        let pending = self.requests[slot as usize];
        let (offset, bytes) = (pending.request.offset, u64::from(pending.request.bytes));
        let volume = &self.volumes[pending.request.volume as usize];
        let (pool, is_recent) = (volume.pool, volume.recent.holds(offset, bytes));
        // No cache answers for a set that is gone: the box takes its volumes away.
        if !self.lost_sets.is_empty() {
            self.cut(pool, pending.slice, pending.address, bytes);
            if self.touches_lost() {
                self.requests[slot as usize].is_lost = true;
                self.answer(slot);
                return;
            }
        }
        if is_recent {
            self.members[pending.member as usize].counters.read_hit_count += 1;
            self.answer(slot);
            return;
        }
        if self.read_by_chunks(slot) {
            return;
        }
        self.cut(pool, pending.slice, pending.address, bytes);
        let part_count = self.read_pieces(Cause::HostRead, Owner::Request(slot));
        self.requests[slot as usize].parts_left = part_count;
        if part_count == 0 {
            self.members[pending.member as usize].counters.read_hit_count += 1;
            self.answer(slot);
        }
    }

    /// Whether any of `self.pieces` lies on a set that is gone.
    pub(super) fn touches_lost(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| self.sets[piece.set as usize].is_lost)
    }

    /// Reads `self.pieces` from the drives; gives the number of operations.
    fn read_pieces(&mut self, cause: Cause, owner: Owner) -> u32 {
        let is_long = cause == Cause::ReadAhead;
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        for piece in &self.pieces {
            let set = &self.sets[piece.set as usize];
            if !set.dirty.is_empty() && set.dirty.holds(piece.row, piece.extent) {
                continue;
            }
            let twin = if is_long {
                (piece.row / MIRROR_ROWS) % 2 == 1
            } else {
                (piece.row ^ (piece.row >> 7)) & 1 == 1
            };
            plan_read(
                &set.layout,
                &set.slots,
                piece.row,
                piece.extent,
                twin,
                |slot, start, bytes| {
                    let offset = piece.row * set.element_bytes + u64::from(start);
                    add_part(&mut parts, set.drive_first + slot, offset, bytes);
                },
            );
        }
        for (drive, offset, bytes) in &parts {
            self.operate(*drive, *offset, *bytes, cause, owner);
        }
        let part_count = parts.len() as u32;
        self.parts = parts;
        part_count
    }

    /// Serves a sequential reader; false when the request is none of a run.
    fn read_by_chunks(&mut self, slot: u32) -> bool {
        let pending = self.requests[slot as usize];
        let Some(spec) = self.members[pending.member as usize].cache.prefetch else {
            return false;
        };
        let number = pending.request.volume;
        let volume = &mut self.volumes[number as usize];
        let (fetches, free) = (&mut self.fetches, &mut self.fetches_free);
        let new_slot = || {
            let fresh = Fetch { volume: number, parts_left: 0, waiters: Vec::new() };
            match free.pop() {
                Some(slot) => {
                    fetches[slot as usize] = fresh;
                    slot
                }
                None => {
                    fetches.push(fresh);
                    (fetches.len() - 1) as u32
                }
            }
        };
        let (offset, bytes) = (pending.request.offset, u64::from(pending.request.bytes));
        let Some(ahead) = volume.prefetcher.read(self.now, offset, bytes, &spec, new_slot) else {
            return false;
        };
        for chunk in &ahead.wait {
            self.fetches[*chunk as usize].waiters.push(slot);
        }
        self.requests[slot as usize].parts_left = ahead.wait.len() as u32;
        for (chunk, offset) in ahead.fetch {
            self.fetch(chunk, number, offset, spec.chunk_bytes);
        }
        if ahead.wait.is_empty() {
            self.members[pending.member as usize].counters.read_hit_count += 1;
            self.answer(slot);
        }
        true
    }

    fn fetch(&mut self, chunk: u32, number: u32, offset: u64, chunk_bytes: u64) {
        let volume = &self.volumes[number as usize];
        let bytes = chunk_bytes.min(volume.capacity_bytes.saturating_sub(offset));
        let mut part_count = 0;
        if bytes > 0 {
            let pool = volume.pool;
            let (slice, _, address) = self.resolve(number, offset);
            self.cut(pool, slice, address, bytes);
            if self.touches_lost() {
                for waiter in &self.fetches[chunk as usize].waiters {
                    self.requests[*waiter as usize].is_lost = true;
                }
            } else {
                part_count = self.read_pieces(Cause::ReadAhead, Owner::Chunk(chunk));
            }
        }
        self.fetches[chunk as usize].parts_left = part_count;
        if part_count == 0 {
            self.chunk_ready(chunk);
        }
    }

    pub(super) fn chunk_part_done(&mut self, chunk: u32) {
        let fetch = &mut self.fetches[chunk as usize];
        fetch.parts_left -= 1;
        if fetch.parts_left == 0 {
            self.chunk_ready(chunk);
        }
    }

    fn chunk_ready(&mut self, chunk: u32) {
        let fetch = &mut self.fetches[chunk as usize];
        let waiters = std::mem::take(&mut fetch.waiters);
        let volume = fetch.volume;
        self.volumes[volume as usize].prefetcher.ready(chunk);
        self.fetches_free.push(chunk);
        for waiter in waiters {
            self.part_done(waiter);
        }
    }
}

/// Adds a part, joined to an earlier one of the same drive that it continues.
fn add_part(parts: &mut Vec<(u32, u64, u32)>, drive: u32, offset: u64, bytes: u32) {
    let earlier =
        parts.iter_mut().find(|part| part.0 == drive && part.1 + u64::from(part.2) == offset);
    match earlier {
        Some(part) => part.2 += bytes,
        None => parts.push((drive, offset, bytes)),
    }
}
