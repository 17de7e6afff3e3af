//! Work beside the transactions: background maintenance checks every page in turn, a backup reads
//! all pages and the log they need, the log is read back once per extra copy, and the pages touched
//! since a time are listed. All of them only read, but a backup that is kept writes its copy.

pub mod backup;
pub mod copy;
pub mod maintenance;
pub mod read_back;
mod scan;
pub mod touched;
