//! Work beside the transactions: background maintenance checks every page in turn, a backup reads all pages and the log they need, replication reads the log
//! back once per extra copy, and the pages touched since a time are listed. All of them only read.

pub mod backup;
pub mod maintenance;
pub mod replication;
mod scan;
pub mod touched;
