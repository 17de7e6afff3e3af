//! Stores in databases that are not ours: one suite for all, then what can become of a server. What
//! is not installed is skipped aloud.
#![cfg(all(feature = "sqlite", feature = "postgresql", feature = "mysql"))]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "databases open their files themselves, and real servers are processes"
)]

mod claims;
mod endpoints;
mod engine;
mod existing;
mod lives;
mod same;
mod servers;
mod world;
