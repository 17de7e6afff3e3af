//! Which drive holds what. Pure arithmetic on one set of drives.
//!
//! A set is cut into rows of one element per drive. RAID 5 and 6 rotate parity left-symmetrically:
//! parity moves one drive to the left with each row and data begins right behind it, so that a long
//! read touches every drive in turn. RAID 10 mirrors neighbours.

use crate::spec::RaidLevel;

/// Where an address lies in a pool's slice of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Row of the set.
    pub row: u64,
    /// Data column of the row.
    pub column: u32,
    /// Offset within the element.
    pub within: u64,
}

/// The layout of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Redundancy of the set; RAID 50 is several RAID 5 sets.
    pub level: RaidLevel,
    /// Drives of the set.
    pub drive_count: u32,
}

/// Drives' worth of data a set of `drive_count` holds; `None` where the level cannot be built from
/// that many.
pub fn usable_drives(level: RaidLevel, drive_count: u32) -> Option<u32> {
    match level {
        RaidLevel::Raid0 => (drive_count >= 1).then_some(drive_count),
        RaidLevel::Raid1 => (drive_count == 2).then_some(1),
        RaidLevel::Raid5 | RaidLevel::Raid50 => (drive_count >= 3).then(|| drive_count - 1),
        RaidLevel::Raid6 => (drive_count >= 4).then(|| drive_count - 2),
        RaidLevel::Raid10 => {
            (drive_count >= 4 && drive_count.is_multiple_of(2)).then_some(drive_count / 2)
        }
    }
}

impl Layout {
    /// Parity elements in each row.
    pub fn parity_count(&self) -> u32 {
        match self.level {
            RaidLevel::Raid5 | RaidLevel::Raid50 => 1,
            RaidLevel::Raid6 => 2,
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid10 => 0,
        }
    }

    /// Whether every element has a twin.
    pub fn is_mirrored(&self) -> bool {
        matches!(self.level, RaidLevel::Raid1 | RaidLevel::Raid10)
    }

    /// Data elements in each row.
    pub fn column_count(&self) -> u32 {
        usable_drives(self.level, self.drive_count).expect("the description was checked")
    }

    /// The drive of a data column; for mirrors the first of the pair.
    #[inline]
    pub fn data_drive(&self, row: u64, column: u32) -> u32 {
        if self.is_mirrored() {
            return 2 * column;
        }
        match self.parity_count() {
            0 => column,
            parities => (self.parity_drive(row, 0) + parities + column) % self.drive_count,
        }
    }

    /// The drive of a row's parity, counted from 0.
    #[inline]
    pub fn parity_drive(&self, row: u64, parity: u32) -> u32 {
        let first = self.drive_count - 1 - (row % u64::from(self.drive_count)) as u32;
        (first + parity) % self.drive_count
    }
}
