//! What kind of disk a memory disk plays.

use super::latency::{Latency, LatencyPlan};

/// The traits of a memory disk.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Offsets and lengths of transfers must be multiples of this.
    pub alignment_bytes: u32,
    /// The unit written without tearing: every aligned unit of a write survives a power cut wholly
    /// or not at all.
    pub atomic_write_bytes: u32,
    /// The device's physical sector. A write at risk that covers only part of one makes the device
    /// read, change and write it back; a power cut in between may leave the whole sector
    /// unreadable, with the neighbours it held.
    pub physical_sector_bytes: u32,
    /// How finely files are kept; a transfer of whole chunks is cheapest.
    pub chunk_bytes: usize,
    /// The sum of all file lengths the disk can hold; `None` is unlimited.
    pub capacity_bytes: Option<u64>,
    /// How long operations take.
    pub latency: LatencyPlan,
    /// Which changes a power cut may undo.
    pub tracking: Tracking,
    /// How many recent operations are remembered for debugging.
    pub trace_operations: usize,
    /// Who codes what is written over generated content.
    pub coding: Coding,
}

/// Who codes what is written over generated content. The result is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The thread that writes.
    AtOnce,
    /// A second thread for each file, if there is a processor for it: worth it where most of a run
    /// is such writes.
    Ahead,
}

/// Which changes a power cut may undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// Power cuts are not modelled; fastest, and nothing but the present is kept.
    Nothing,
    /// The disk has no volatile cache: completed writes are stable, lengths and names still need
    /// their syncs.
    WriteThrough,
    /// Everything not synced is at risk.
    VolatileCache,
}

impl Default for MemoryOptions {
    /// A strict disk for tests: 512-byte sectors that tear, everything unsynced at risk, 100 µs for
    /// everything.
    fn default() -> Self {
        Self {
            alignment_bytes: 512,
            atomic_write_bytes: 512,
            physical_sector_bytes: 512,
            chunk_bytes: 4096,
            capacity_bytes: None,
            latency: LatencyPlan::of(Latency::Constant(100_000)),
            tracking: Tracking::VolatileCache,
            trace_operations: 0,
            coding: Coding::AtOnce,
        }
    }
}

impl MemoryOptions {
    /// A RAM disk for measuring everything above it: immediate completion, no power cuts.
    pub fn ram() -> Self {
        Self {
            chunk_bytes: 32 * 1024,
            latency: LatencyPlan::of(Latency::Constant(0)),
            tracking: Tracking::Nothing,
            ..Self::default()
        }
    }
}
