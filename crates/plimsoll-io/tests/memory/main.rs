//! The memory disk: its operations, its time, its power cuts, its faults.

mod basics;
mod crash;
mod latency;
mod rig;
