//! What the family counts: scenarios, and the single operations that they are made of.

use plimsoll_measure::{Metric, MetricKind};
use plimsoll_workload::homes::{KINDS, Kind, Operation};

/// The operation of the family.
pub const SCENARIO: &str = "home_scenario";
/// What a scenario waited for an earlier one of its user.
pub const USER_WAIT: &str = "home_user_wait";

const fn timing(name: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Timing, unit: "ns", meaning }
}

const fn kind(position: usize, meaning: &'static str) -> Metric {
    timing(Kind::name(KINDS[position]), meaning)
}

const fn operation(position: usize, meaning: &'static str) -> Metric {
    timing(Operation::name(Operation::ALL[position]), meaning)
}

/// What the family adds to the dictionary.
pub const METRICS: [Metric; 17] = [
    timing(
        SCENARIO,
        "scenarios of users of home folders, from the intended start to the end of the last step",
    ),
    kind(0, "files that were copied into a folder, from the actual start; this and the next seven"),
    kind(1, "files that were copied out, read to their end"),
    kind(2, "files that were read, written anew beside themselves, and replaced"),
    kind(3, "folders that were looked at"),
    kind(4, "homes that were searched for a name"),
    kind(5, "files that were deleted"),
    kind(6, "folders that were made"),
    kind(7, "empty folders that were removed"),
    operation(0, "opens and creates of files in homes, also in vain"),
    operation(1, "closes of files in homes"),
    operation(2, "reads of files in homes"),
    operation(3, "writes of files in homes"),
    operation(4, "questions what a name in a home stands for"),
    operation(5, "listings of folders in homes"),
    operation(6, "flushes, renames, deletes, and folders made and removed in homes"),
    timing(USER_WAIT, "what scenarios waited because their user was not done with an earlier one"),
];
