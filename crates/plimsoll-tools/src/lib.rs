//! Single jobs on the storage of this machine, without a run around them: verify, list, print and
//! repair databases of any origin, blank a block device, measure one point of a sweep.
//!
//! Each job blocks the calling thread until it is over, and each that takes long looks at a stop
//! signal meanwhile.

mod edb;
mod erase;
mod error;
mod job;
mod sweep;
mod verify;

pub use edb::{
    EdbFile, EdbTable, TextCounts, TextFormat, WhenDirty, edb_repair_live, edb_tables_live,
    edb_text_live,
};
pub use erase::erase_device_live;
pub use error::ToolError;
pub use sweep::{SweepAction, SweepFigures, SweepPoint, sweep_live, sweep_on};
pub use verify::{Depth, VerifyRequest, verify_live};
