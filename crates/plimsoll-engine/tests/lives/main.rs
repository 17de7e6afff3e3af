//! Databases that outlive the processes that use them: killed, restarted, cut off from power,
//! closed while others work, copied, forked. No fault lies in the disk here; all of them lie in the
//! order of the lives.

#[path = "../support/mod.rs"]
mod support;

mod life;

mod closing;
mod dropped;
mod following;
mod forked;
mod killed;
mod log_versions;
mod lost_log;
mod savepoints;
