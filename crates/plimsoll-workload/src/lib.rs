//! What is asked of the storage: a seed and the outcomes of earlier operations in, timed operations out.
//!
//! Nothing here does I/O or knows an engine. A [`Session`] goes on when its previous operation is complete, [`Arrivals`] come
//! by their own schedule. Both are driven by feedback, so the same seed and the same outcomes give the same
//! operations; how an operation is carried out is the business of a backend.

mod arrivals;
mod choice;
mod mix;
mod population;
mod search;
mod session;

pub use arrivals::{Arrivals, Spacing};
pub use choice::{Habits, Locality};
pub use mix::{Mix, MixError};
pub use population::{Population, Rule};
pub use search::Bisection;
pub use session::{Commit, Kind, Operation, Placement, Previous, Result, Session, Step};
