//! Databases that outlive the processes that use them: killed, restarted, cut off from power,
//! closed while others work, copied, forked, recovered in steps, backed up, held for a long time.
//! No fault lies in the disk here; all of them lie in the order of the lives.

#[path = "../support/mod.rs"]
mod support;

mod life;

mod adversary;
mod chains;
mod closing;
mod dropped;
mod following;
mod forked;
mod jobs;
mod killed;
mod log_versions;
mod long_operation;
mod lost_log;
mod mixed_files;
mod recovery_steps;
mod savepoints;
mod short;
mod wrong_names;
