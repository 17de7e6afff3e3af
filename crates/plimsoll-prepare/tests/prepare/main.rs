//! Prepared databases: their pages, how they are written, how a page is kept in few bytes, and the
//! engine at work on them.

#[path = "../../../plimsoll-engine/tests/support/mod.rs"]
mod support;

mod delta;
mod engine;
mod pages;
mod vouches;
mod writer;
