//! Rows of tables under use that is not polite: operations of one transaction at once, indexed
//! columns kept apart from their record, keys as long as the format allows, schemas that change
//! beside each other.

#[path = "../support/mod.rs"]
mod support;

mod at_once;
mod contention;
mod long_keys;
mod numbers;
mod people;
mod purge;
mod schema_changes;
mod selected;
mod shared;
mod swarm;
mod truncated;
mod values;
