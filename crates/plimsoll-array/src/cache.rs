//! The controller's memory: what is written back later, what was read ahead, what was written a
//! moment ago.

mod dirty;
mod prefetch;

pub(crate) use dirty::{DirtyRow, DirtyRows, destage_limit};
pub(crate) use prefetch::{Prefetcher, Recent};
