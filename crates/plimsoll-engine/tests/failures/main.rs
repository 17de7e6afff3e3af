//! Promises of the engine, each broken on purpose around it: I/O that fails, syncs that are
//! forgotten, torn pages, operations abandoned half-way, a killed process, hard times, and the
//! faults that were found once and must not come back.

#[path = "../support/forgetful.rs"]
mod forgetful;
#[path = "../support/mod.rs"]
mod support;

mod abandoned;
mod every_io_fails;
mod every_sync_matters;
mod hard_times;
mod killed;
mod once_found;
mod other_io_fails;
mod same_bytes;
mod torn_pages;
mod undo;
mod waypoint;
mod write_order;
