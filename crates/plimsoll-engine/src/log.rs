//! The log: a stream of records in numbered 1 MiB generations.
//!
//! [`writer::Log`] appends and makes durable (group commit, pre-written generations);
//! [`reader::LogReader`] reads the files back with no database attached. Replication, verification,
//! recovery and shipping are all made of the reader.

pub mod attached;
pub mod follower;
pub mod framing;
mod generation;
mod generation_file;
pub mod header;
pub mod history;
pub mod holds;
mod kept;
pub mod names;
pub mod reader;
pub mod record;
mod run;
mod subscribers;
pub mod tail;
pub mod tap;
pub mod touched;
mod units;
pub mod wire;
pub mod writer;

use std::fmt;

/// A place in the record stream: generation, and byte offset in that generation's payload. Ordered
/// like time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn {
    /// Generation, counted from 1; 0 is before everything.
    pub generation: u32,
    /// Offset in the generation's payload, framing not counted.
    pub offset: u32,
}

impl Lsn {
    /// Before everything.
    pub const ZERO: Lsn = Lsn { generation: 0, offset: 0 };

    /// A place.
    pub fn new(generation: u32, offset: u32) -> Self {
        Self { generation, offset }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08X}:{:05X}", self.generation, self.offset)
    }
}

/// Bytes of one generation file.
pub const GENERATION_BYTES: u64 = 1 << 20;
/// Bytes of a generation's header.
pub const HEADER_BYTES: usize = 4096;
