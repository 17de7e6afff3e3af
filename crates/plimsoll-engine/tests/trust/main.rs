//! Promises of the engine, each broken on purpose around it: torn pages, operations abandoned
//! half-way, a killed process, and the faults that were found once and must not come back.

#[path = "../support/mod.rs"]
mod support;

mod abandoned;
mod killed;
mod once_found;
mod same_bytes;
mod torn_pages;
mod undo;
mod waypoint;
