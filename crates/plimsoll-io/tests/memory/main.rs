//! The memory disk: its operations, its time, its power cuts, its faults, and the decorators that
//! any disk can have. And what needs no disk: what an error advises, and what a condition keeps of
//! those who wait for it.

mod basics;
mod conformance;
mod crash;
mod decorators;
mod determinism;
mod errors;
mod faults;
mod latency;
mod model;
mod rig;
mod sparse;
mod sparse_ahead;
mod waiting;
