//! The network seam: one suite over every network, what each has beside it, and threads that wake
//! tasks.

mod companions;
mod conforming;
mod real;
mod simulated;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "tls")]
mod tls;
