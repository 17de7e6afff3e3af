//! Redundancy: where data and parity lie, what a write costs, how a lost drive is worked around and
//! rebuilt.

mod layout;
mod possible;
mod rebuild;
mod set;
mod write;

pub use layout::{Layout, Spot, usable_drives};
pub use possible::{Impossible, LEVELS, impossibilities, usable_in_group};
pub(crate) use rebuild::Rebuild;
pub use rebuild::RebuildProgress;
pub use set::{MemberState, Slots};
pub use write::{Extent, RowPlan, SlotRead, SlotWrite, Strategy, plan_read, plan_write};
