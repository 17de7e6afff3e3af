//! Rows, the transactions that change them, and the trees and the cache that hold them: what is
//! seen and kept under use that is not polite.

#[path = "../support/mod.rs"]
mod support;

mod at_once;
mod cache_habits;
mod commit_meaning;
mod conflicts;
mod contention;
mod cursors;
mod held_frames;
mod histories;
mod hot_rows;
mod isolation;
mod long_keys;
mod long_value_pieces;
mod mail_schema;
mod model;
mod numbers;
mod people;
mod prefixes;
mod purge;
mod schema_changes;
mod selected;
mod shared;
mod short_keys;
mod short_polls;
mod small_trees;
mod swarm;
mod table_steps;
mod truncated;
mod values;
mod wide_keys;
