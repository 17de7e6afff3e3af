//! What is asked of the storage: a seed and the outcomes of earlier operations in, timed operations out.
//!
//! Nothing here does I/O or knows an engine. A [`Session`] is driven by feedback, so the same seed and the same outcomes
//! give the same operations; how an operation is carried out is the business of a backend.

mod mix;
mod population;
mod session;

pub use mix::{Mix, MixError};
pub use population::Population;
pub use session::{Commit, Kind, Operation, Previous, Result, Session, Step};
