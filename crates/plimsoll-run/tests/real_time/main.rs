//! Runs in real time, which mostly wait. They are apart from runs in virtual time, which would take
//! the processor from them.

#[path = "../load/support.rs"]
#[expect(dead_code, reason = "each program uses its part of the support")]
mod support;

mod clock_gap;
mod hung_io;
mod shards;
mod time_split;
