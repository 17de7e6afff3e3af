//! Workload families as runs in virtual time: files, stores, mail and one from outside, and what a
//! run spec may say of each.

#![recursion_limit = "256"]

#[path = "../load/support.rs"]
#[expect(dead_code, reason = "each program uses its part of the support")]
mod support;

mod files;
mod homes;
mod mail;
mod mail_store;
mod mail_store_node;
mod raw_files;
mod schema;
mod store;
mod toy_family;
