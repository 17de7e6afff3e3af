//! Operations on records, the first workload family: sessions or arrivals that insert, delete,
//! replace and read.

pub(crate) mod choice;
pub(crate) mod demand;
pub(crate) mod mix;
pub(crate) mod operation;
pub(crate) mod population;
pub(crate) mod session;
pub(crate) mod step;

pub use choice::{Habits, Locality};
pub use demand::{RecordDemand, RecordPlace, RecordTask};
pub use mix::{Mix, MixError};
pub use operation::{Commit, Kind, Operation, Placement};
pub use population::{Population, Rule};
pub use session::Session;
pub use step::{Previous, Step};
