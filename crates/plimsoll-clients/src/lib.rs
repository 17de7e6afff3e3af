//! Clients of databases that are not ours, for loads that compare them or test what lies below
//! them.
//!
//! A client speaks for the sessions of a load: each has a connection of its own. Those that block
//! live on companion threads and are asked once for each step of a task, never for each statement.
//! Nothing here knows plans, phases or measurements.

#[cfg(any(feature = "mysql", feature = "postgresql", feature = "sqlite"))]
mod attempts;
pub mod client;
pub mod dates;
pub mod endpoints;
#[cfg(feature = "mail")]
pub mod mail;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgresql")]
pub mod postgresql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "mysql", feature = "postgresql"))]
mod vocabulary;
