//! What is asked of the storage: a seed and the endings of earlier tasks in, timed tasks out.
//!
//! Nothing here does I/O or knows an engine. A workload family is a pair: a [`Demand`] here, and a
//! service that carries its tasks out elsewhere. Sessions go on when their previous task is
//! complete, arrivals come by a [`Schedule`] of their own. Both are driven by feedback, so the same
//! seed and the same endings give the same tasks.

mod demand;
mod driver;
pub mod files;
pub mod homes;
pub mod mail;
pub mod records;
pub mod store;

pub use demand::{Demand, Done, RefusalCode, Seen, Timed};
pub use driver::bisection::Bisection;
pub use driver::places::draw_place;
pub use driver::schedule::{Schedule, Spacing};
