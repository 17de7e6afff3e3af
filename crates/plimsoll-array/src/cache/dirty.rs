//! Dirty data of one set, kept by row so that neighbours leave together, and how eagerly it leaves.
//!
//! Rows are destaged in one direction over the set and then from the start again, so the arms
//! sweep. How many rows are on their way at once grows linearly with the dirty share of the cache,
//! from nothing at a low mark (linear-threshold scheduling: Varma and Jacobson, "Destage algorithms
//! for disk arrays with nonvolatile caches", IEEE Transactions on Computers 1998). A row is never
//! on its way twice at once: its parity would be computed from data in flight.

use std::collections::BTreeMap;

use plimsoll_io::Nanos;

use crate::raid::Extent;
use crate::spec::CacheSpec;

/// What is dirty of a row.
pub(crate) struct DirtyRow {
    pub(crate) extents: Vec<Extent>,
    /// For each of its bytes, when it became dirty: the sum.
    pub(crate) since_ns: u128,
    /// Whether another host made it dirty. Volumes begin at whole MiB, so that hardly any row
    /// belongs to two.
    pub(crate) is_neighbours: bool,
}

/// Rows of one set that differ from what is on the drives.
#[derive(Default)]
pub(crate) struct DirtyRows {
    rows: BTreeMap<u64, DirtyRow>,
    /// Emptied lists to use again.
    spare_lists: Vec<Vec<Extent>>,
    /// Where the sweep goes on.
    sweep: u64,
    in_flight: Vec<u64>,
}

impl DirtyRows {
    /// Adds an extent; gives the bytes that were not dirty before.
    pub(crate) fn add(&mut self, now: Nanos, row: u64, extent: Extent, is_neighbours: bool) -> u64 {
        let spare_lists = &mut self.spare_lists;
        let dirty = self.rows.entry(row).or_insert_with(|| DirtyRow {
            extents: spare_lists.pop().unwrap_or_default(),
            since_ns: 0,
            is_neighbours,
        });
        let list = &mut dirty.extents;
        let mut merged = extent;
        let mut freed = 0;
        list.retain(|other| {
            let touches = other.column == merged.column
                && other.start <= merged.start + merged.bytes
                && merged.start <= other.start + other.bytes;
            if touches {
                let end = (other.start + other.bytes).max(merged.start + merged.bytes);
                merged.start = merged.start.min(other.start);
                merged.bytes = end - merged.start;
                freed += u64::from(other.bytes);
            }
            !touches
        });
        list.push(merged);
        let added = u64::from(merged.bytes) - freed;
        dirty.since_ns += u128::from(added) * u128::from(now);
        added
    }

    /// Whether a range is wholly dirty, so that it is read from the cache.
    pub(crate) fn holds(&self, row: u64, extent: Extent) -> bool {
        let Some(dirty) = self.rows.get(&row) else {
            return false;
        };
        dirty.extents.iter().any(|other| {
            other.column == extent.column
                && other.start <= extent.start
                && other.start + other.bytes >= extent.start + extent.bytes
        })
    }

    /// Takes the next row of the sweep that is not on its way already: its number and what is
    /// dirty.
    pub(crate) fn take_next(&mut self) -> Option<(u64, DirtyRow)> {
        let in_flight = &self.in_flight;
        let free = |row: &&u64| !in_flight.contains(row);
        let ahead = self.rows.range(self.sweep..).map(|(row, _)| row).find(free);
        let row =
            *ahead.or_else(|| self.rows.range(..self.sweep).map(|(row, _)| row).find(free))?;
        self.sweep = row + 1;
        let dirty = self.rows.remove(&row).expect("it was just found");
        self.in_flight.push(row);
        Some((row, dirty))
    }

    /// A row has reached the drives.
    pub(crate) fn landed(&mut self, row: u64) {
        let position = self.in_flight.iter().position(|other| *other == row);
        self.in_flight.swap_remove(position.expect("the row was on its way"));
    }

    /// Forgets what is dirty and not on its way; gives its bytes and the sum of the moments when
    /// they became dirty.
    pub(crate) fn drop_all(&mut self) -> (u64, u128) {
        let rows = std::mem::take(&mut self.rows);
        let bytes = rows.values().flat_map(|row| &row.extents);
        let bytes = bytes.map(|extent| u64::from(extent.bytes)).sum();
        (bytes, rows.values().map(|row| row.since_ns).sum())
    }

    /// Gives a list back for use again.
    pub(crate) fn recycle(&mut self, mut list: Vec<Extent>) {
        list.clear();
        if self.spare_lists.len() < 64 {
            self.spare_lists.push(list);
        }
    }

    /// Rows on their way.
    pub(crate) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether there is nothing to destage.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Rows of a set that may be on their way at once when `dirty_bytes` are dirty in the whole cache.
pub(crate) fn destage_limit(cache: &CacheSpec, dirty_bytes: u64, drive_count: u32) -> usize {
    let share = dirty_bytes as f64 / cache.dirty_bytes_max as f64;
    let urgency = (share - cache.destage_start_share)
        / (cache.destage_full_share - cache.destage_start_share);
    if urgency <= 0.0 {
        return 0;
    }
    (urgency.min(1.0) * cache.destage_rows_per_drive * f64::from(drive_count)).ceil() as usize
}
