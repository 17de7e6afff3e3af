//! The log by itself, and what stands on it beside the instance that writes it: subscribers, holds,
//! readers of histories that were given up, lists of the pages that were touched.

#[path = "../lives/life.rs"]
mod life;
#[path = "../support/mod.rs"]
mod support;

mod given_up;
mod holds;
mod log_stream;
mod subscription;
mod touched;
