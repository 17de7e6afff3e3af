//! The ESE-format transactional store: real pages, real logs, real recovery, on whatever [`plimsoll_io::Disk`] it is given.
//!
//! The engine takes its disk, clock and randomness as arguments and touches nothing else. On-disk facts come from the public
//! ESE source and the public format description; where our files differ (log record bodies), `docs/file-format.md` says so.

mod geometry;
pub mod page;

pub use geometry::{PageNumber, PageSize};
