//! A storage array in virtual time: what-if answers, and a [`Disk`](plimsoll_io::Disk) for the
//! engine.
//!
//! An [`Array`] is described by an [`ArraySpec`] and takes requests; it never reads a clock and is
//! a pure function of its description, its seed and what is submitted. The rooms: `drive` (hard
//! drives, flash), `raid` (layout, small writes, rebuild), `cache` (write-back and destaging,
//! reading ahead), `path` (links, controllers), `array` (everything together), `source` (a light
//! workload for sweeps).

mod agenda;
mod array;
mod cache;
mod check;
mod disk;
mod drive;
mod path;
pub mod raid;
pub mod source;
pub mod spec;
mod station;

pub use array::{
    Array, ArrayReport, CapReport, Completed, DriveReport, Happening, IoCounters, LinkReport,
    LostSetReport, MemberCounters, MemberReport, NeighbourReport, RebuildReport, Request, StageUse,
    VolumeReport,
};
pub use check::{SpecError, SpecErrors, check, usable_bytes};
pub use disk::ModelledDisk;
pub use drive::{Cause, DriveCounters, Mechanics, SeekCurve};
pub use spec::ArraySpec;
pub use station::StationUse;
