//! The memory disk: its operations, its time, its power cuts, its faults.

mod basics;
mod conformance;
mod crash;
mod determinism;
mod faults;
mod latency;
mod model;
mod rig;
mod sparse;
mod sparse_ahead;
