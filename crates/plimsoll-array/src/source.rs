//! A light workload: streams of requests with the habits of a database under load, without a
//! database.
//!
//! For sweeps and for the published tests. A stream of sessions follows the thread law that
//! Jetstress' published figures obey (see `sessions`); closed and open streams make maintenance,
//! checksum, backup, recovery and background noise. A simulation is a pure function of array,
//! streams and seed.

mod flow;
mod sessions;
mod simulation;
mod tally;

pub use flow::{ClosedSpec, OpenSpec, Pattern};
pub use sessions::{FlushSpec, SessionsSpec};
pub use simulation::{Outcome, SimulationSpec, StreamSpec, simulate};
pub use tally::{ClassReport, Tally};
