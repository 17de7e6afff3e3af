//! What reading and writing part of a row costs, drive by drive. Pure functions.
//!
//! A write that covers a row needs no reading. A smaller one must bring parity up to date, either
//! by read-modify-write (old data and old parity are read) or by reconstruct-write (the rest of the
//! row is read); whichever reads from fewer drives is taken, read-modify-write when they are equal.
//! Where a drive is lost the way that can be gone is gone: a lost data element is written by
//! reconstructing parity around it, lost parity is left out, and where neither way is open the
//! whole row is read with as many parities as it takes to compute what is lost.
//!
//! Limit: parity is read and written over the hull of the changed ranges of a row, which is more
//! than is needed when two changes lie far apart within their elements.

use super::layout::Layout;
use super::set::Slots;

/// Changed bytes of one element of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Data column.
    pub column: u32,
    /// Offset within the element.
    pub start: u32,
    /// Length.
    pub bytes: u32,
}

impl Extent {
    fn end(&self) -> u32 {
        self.start + self.bytes
    }
}

/// How parity is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// No parity to update.
    Plain,
    /// Everything of the row is new.
    FullStripe,
    /// Old data and old parity are read.
    ReadModifyWrite,
    /// The rest of the row is read.
    ReconstructWrite,
    /// What is left of the row is read, and what is lost of it computed.
    WholeRow,
}

/// A read of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRead {
    /// The slot.
    pub slot: u32,
    /// Offset within the element.
    pub start: u32,
    /// Length.
    pub bytes: u32,
    /// Whether the element holds parity in this row.
    pub is_parity: bool,
}

/// A write of one slot.
pub type SlotWrite = SlotRead;

/// What has to be done for a row: first every read, then every write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlan {
    /// How.
    pub strategy: Strategy,
    /// Reads, before any write.
    pub reads: Vec<SlotRead>,
    /// Writes.
    pub writes: Vec<SlotWrite>,
}

/// Plans a write of `extents` of a row, which must not overlap. `old_data_known`: the old data need
/// not be read.
pub fn plan_write(
    layout: &Layout,
    slots: &Slots,
    row: u64,
    element_bytes: u32,
    extents: &[Extent],
    old_data_known: bool,
) -> RowPlan {
    let mut plan = RowPlan {
        strategy: Strategy::Plain,
        reads: Vec::new(),
        writes: Vec::with_capacity(extents.len() + 2),
    };
    for extent in extents {
        let slot = layout.data_drive(row, extent.column);
        plan.push_write(slots, row, slot, extent.start, extent.bytes, false);
        if layout.is_mirrored() {
            plan.push_write(slots, row, slot + 1, extent.start, extent.bytes, false);
        }
    }
    if layout.parity_count() == 0 {
        return plan;
    }
    let row_plan = ParityWrite::new(layout, slots, row, element_bytes, extents);
    plan.strategy = row_plan.strategy();
    plan.reads = row_plan.reads(plan.strategy, old_data_known);
    let (start, end) = row_plan.hull;
    for slot in row_plan.parities() {
        plan.push_write(slots, row, slot, start, end - start, true);
    }
    plan
}

impl RowPlan {
    fn push_write(
        &mut self,
        slots: &Slots,
        row: u64,
        slot: u32,
        start: u32,
        bytes: u32,
        is_parity: bool,
    ) {
        if slots.holds(slot, row) {
            self.writes.push(SlotRead { slot, start, bytes, is_parity });
        }
    }
}

/// A write to a row with parity, while it is being planned.
struct ParityWrite<'a> {
    layout: &'a Layout,
    slots: &'a Slots,
    row: u64,
    extents: &'a [Extent],
    hull: (u32, u32),
    is_full: bool,
}

impl<'a> ParityWrite<'a> {
    fn new(
        layout: &'a Layout,
        slots: &'a Slots,
        row: u64,
        element_bytes: u32,
        extents: &'a [Extent],
    ) -> Self {
        let start = extents.iter().map(|extent| extent.start).min().unwrap_or(0);
        let end = extents.iter().map(Extent::end).max().unwrap_or(0);
        let written: u64 = extents.iter().map(|extent| u64::from(extent.bytes)).sum();
        Self {
            layout,
            slots,
            row,
            extents,
            hull: (start, end),
            is_full: written == u64::from(layout.column_count()) * u64::from(element_bytes),
        }
    }

    fn parities(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.parity_count()).map(|parity| self.layout.parity_drive(self.row, parity))
    }

    fn holds(&self, slot: u32) -> bool {
        self.slots.holds(slot, self.row)
    }

    fn data_slot(&self, column: u32) -> u32 {
        self.layout.data_drive(self.row, column)
    }

    /// Whether the hull of a column is written anew.
    fn covers(&self, column: u32) -> bool {
        let mine = self.extents.iter().filter(|extent| extent.column == column);
        mine.map(|extent| extent.bytes).sum::<u32>() == self.hull.1 - self.hull.0
    }

    fn uncovered(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.column_count()).filter(|column| !self.covers(*column))
    }

    /// Whether a data column can be read.
    fn is_readable(&self, column: u32) -> bool {
        self.holds(self.data_slot(column))
    }

    /// Read-modify-write needs the old data of every changed column, reconstruct-write that of
    /// every column which is not covered; where both are open the one that reads from fewer drives
    /// is taken, and where neither is, the whole row is read.
    fn strategy(&self) -> Strategy {
        if self.is_full {
            return Strategy::FullStripe;
        }
        let parity_alive = self.parities().filter(|slot| self.holds(*slot)).count();
        if parity_alive == 0 {
            return Strategy::Plain;
        }
        // Changes come in the order they were made, so those of one column need not stand together.
        let mut touched: Vec<u32> = self.extents.iter().map(|extent| extent.column).collect();
        touched.sort_unstable();
        touched.dedup();
        let can_modify = touched.iter().all(|column| self.is_readable(*column));
        let can_reconstruct = self.uncovered().all(|column| self.is_readable(column));
        match (can_modify, can_reconstruct) {
            (true, true) if self.uncovered().count() < touched.len() + parity_alive => {
                Strategy::ReconstructWrite
            }
            (true, _) => Strategy::ReadModifyWrite,
            (false, true) => Strategy::ReconstructWrite,
            (false, false) => Strategy::WholeRow,
        }
    }

    fn reads(&self, strategy: Strategy, old_data_known: bool) -> Vec<SlotRead> {
        let hull_of = |slot, is_parity| SlotRead {
            slot,
            start: self.hull.0,
            bytes: self.hull.1 - self.hull.0,
            is_parity,
        };
        let parities =
            || self.parities().filter(|slot| self.holds(*slot)).map(|slot| hull_of(slot, true));
        match strategy {
            Strategy::Plain | Strategy::FullStripe => Vec::new(),
            Strategy::ReconstructWrite => {
                let rest = self.uncovered().map(|column| self.data_slot(column));
                rest.map(|slot| hull_of(slot, false)).collect()
            }
            Strategy::WholeRow => {
                let columns = || 0..self.layout.column_count();
                let data = columns().filter(|column| self.is_readable(*column));
                let data = data.map(|column| hull_of(self.data_slot(column), false));
                // Each lost element is computed with the help of one parity.
                let lost_count = columns().filter(|column| !self.is_readable(*column)).count();
                data.chain(parities().take(lost_count)).collect()
            }
            Strategy::ReadModifyWrite => {
                let old = self.extents.iter().filter(|_| !old_data_known).map(|extent| SlotRead {
                    slot: self.data_slot(extent.column),
                    start: extent.start,
                    bytes: extent.bytes,
                    is_parity: false,
                });
                old.chain(parities()).collect()
            }
        }
    }
}

/// Plans a read of part of an element: one drive, or what is left of the row where that drive is
/// lost.
///
/// `twin` chooses the second drive of a mirrored pair. Sets that have lost more than they can bear
/// are not asked.
pub fn plan_read(
    layout: &Layout,
    slots: &Slots,
    row: u64,
    extent: Extent,
    twin: bool,
    mut push: impl FnMut(u32, u32, u32),
) {
    let slot = layout.data_drive(row, extent.column);
    if layout.is_mirrored() {
        let (chosen, other) = if twin { (slot + 1, slot) } else { (slot, slot + 1) };
        if slots.holds(chosen, row) {
            push(chosen, extent.start, extent.bytes);
        } else if slots.holds(other, row) {
            push(other, extent.start, extent.bytes);
        }
    } else if slots.holds(slot, row) {
        push(slot, extent.start, extent.bytes);
    } else if layout.parity_count() > 0 {
        // The second parity is needed only where a second element is lost.
        let mut needed = layout.column_count();
        for offset in 1..layout.drive_count {
            let other = (slot + offset) % layout.drive_count;
            if needed > 0 && slots.holds(other, row) {
                push(other, extent.start, extent.bytes);
                needed -= 1;
            }
        }
    }
}
