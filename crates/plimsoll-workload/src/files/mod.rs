//! Reads and writes of files or block devices by access specifications, as Iometer defines them.

mod access;
mod demand;

pub use access::{Access, AccessError, AccessLine};
pub use demand::{Direction, FileDemand, FilePlace, FileTask, FileWorker, Transfer};
