//! What drives can be bound together at all: the one place that knows it, for the check of a
//! description and for those who plan arrays.

use super::layout::usable_drives;
use crate::spec::RaidLevel;

/// Every level with the name that people write, from the least redundant on.
pub const LEVELS: [(&str, RaidLevel); 6] = [
    ("RAID 0", RaidLevel::Raid0),
    ("RAID 1", RaidLevel::Raid1),
    ("RAID 5", RaidLevel::Raid5),
    ("RAID 6", RaidLevel::Raid6),
    ("RAID 10", RaidLevel::Raid10),
    ("RAID 50", RaidLevel::Raid50),
];

const SETS_HINT: &str = "RAID 50 has at least two sets, every other level exactly one";
const DRIVES_HINT: &str = "RAID 0 needs 1 drive, RAID 1 exactly 2, RAID 5 at least 3, RAID 6 at \
 least 4, \
     RAID 10 an even number from 4, each set of RAID 50 at least 3";

/// Why sets of drives cannot be bound as asked, and what would be possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// What is wrong, to stand behind the name of the sets.
    pub message: String,
    /// What can be done instead.
    pub hint: &'static str,
}

/// The name of a level.
pub fn level_name(level: RaidLevel) -> &'static str {
    LEVELS.iter().find(|(_, known)| *known == level).map_or("RAID", |(name, _)| name)
}

/// Everything that keeps `sets`, the drives of each set, from being a group of this level; empty
/// where it can be built.
pub fn impossibilities(level: RaidLevel, sets: &[u32]) -> Vec<Impossible> {
    let name = level_name(level);
    let mut found = Vec::new();
    let is_counted_right =
        if level == RaidLevel::Raid50 { sets.len() > 1 } else { sets.len() == 1 };
    if !is_counted_right {
        found.push(Impossible {
            message: format!("has {} sets, which {name} cannot have", sets.len()),
            hint: SETS_HINT,
        });
    }
    for drive_count in sets {
        if usable_drives(level, *drive_count).is_none() {
            found.push(Impossible {
                message: format!("has {drive_count} drives, of which no {name} can be made"),
                hint: DRIVES_HINT,
            });
        }
    }
    found
}

/// Drives' worth of data in a group; `None` where it cannot be built.
pub fn usable_in_group(level: RaidLevel, sets: &[u32]) -> Option<u32> {
    if !impossibilities(level, sets).is_empty() {
        return None;
    }
    sets.iter().map(|drive_count| usable_drives(level, *drive_count)).sum()
}
