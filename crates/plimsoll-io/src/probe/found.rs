//! What is found out about a path.

use std::path::PathBuf;

use serde::Serialize;

use super::directio::ProbedDirectIo;

/// Everything [`probe`](super::probe) finds.
#[derive(Clone, Debug, Serialize)]
pub struct Probe {
    /// The path asked for.
    pub path: PathBuf,
    /// The nearest existing place on the way to it, without symbolic links: what was looked at.
    pub looked_at: PathBuf,
    /// Whether the path itself exists.
    pub exists: bool,
    /// Whether this process may write at `looked_at`.
    pub writable: bool,
    /// The file system, unless the path is a block device.
    pub file_system: Option<ProbedFileSystem>,
    /// The block device below, where there is a single one.
    pub device: Option<ProbedDevice>,
    /// Whether direct I/O works.
    pub direct_io: ProbedDirectIo,
    /// The ways of doing I/O, best first.
    pub methods: Vec<ProbedMethod>,
    /// RLIMIT_MEMLOCK; none when unlimited.
    pub lockable_memory_bytes: Option<u64>,
    /// What a user should know before trusting figures or data to this place, in sentences.
    pub warnings: Vec<String>,
}

/// A mounted file system.
#[derive(Clone, Debug, Serialize)]
pub struct ProbedFileSystem {
    /// "ext4", "xfs", "nfs4", ...
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// What is mounted there.
    pub source: PathBuf,
    /// Mount options.
    pub options: Vec<String>,
    /// Its size.
    pub size_bytes: u64,
    /// What an ordinary user may still fill.
    pub free_bytes: u64,
    /// Whether it lies on another machine.
    pub is_network: bool,
    /// Whether it writes every block to a new place.
    pub is_copy_on_write: bool,
    /// Whether it is only memory.
    pub is_memory: bool,
}

/// A block device.
#[derive(Clone, Debug, Serialize)]
pub struct ProbedDevice {
    /// The kernel's name.
    pub kernel_name: String,
    /// The name that survives a restart.
    pub by_id: Option<PathBuf>,
    /// What must be typed to let it be overwritten.
    pub consent_token: String,
    /// The disk's serial.
    pub serial: Option<String>,
    /// The disk's model.
    pub model: Option<String>,
    /// The device's own size (a partition's, if it is one).
    pub size_bytes: Option<u64>,
    /// Whether it has turning platters, as far as it says.
    pub is_rotational: Option<bool>,
    /// "write back" or "write through".
    pub write_cache: Option<String>,
    /// The unit it is addressed in.
    pub logical_block_bytes: Option<u64>,
    /// The unit it writes.
    pub physical_block_bytes: Option<u64>,
    /// The disks that hold the data in the end.
    pub bottom_disks: Vec<String>,
    /// Whether the operating system's root is on one of the same disks, where that can be known.
    pub shares_system_disk: Option<bool>,
    /// Why it could not be used as a whole block device; asked only when the path is one.
    pub obstacles: Vec<String>,
}

/// A way of doing I/O.
#[derive(Clone, Debug, Serialize)]
pub struct ProbedMethod {
    /// "io_uring", "libaio" or "threads".
    pub name: &'static str,
    /// Why it cannot be had; none when it can.
    pub refusal: Option<String>,
    /// What is less than the best.
    pub remarks: Vec<String>,
}
