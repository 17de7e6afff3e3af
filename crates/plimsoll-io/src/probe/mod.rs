//! What can be known of a path before anything is written there: file system, device, direct I/O,
//! methods, limits, and what of it a user should be warned about.
//!
//! Never writes: no file is made, and files are read without touching their access time.

mod directio;
mod warnings;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use directio::ProbedDirectIo;

use crate::blockdevice::{self, Identity};
use crate::posix::{Mount, OpenFile, OpenRules, errno_of, lockable_bytes};
use crate::real::{Method, probe_method};
use crate::{DiskError, OpenMode};

/// Everything [`probe`] finds.
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

/// Looks at a path. See the module text.
///
/// # Errors
/// When not even a parent of the path can be looked at.
pub fn probe(path: &Path) -> Result<Probe, DiskError> {
    let looked_at = nearest_existing(path)?;
    let failed =
        |error: std::io::Error| DiskError::from_errno(errno_of(&error), "probe", &looked_at);
    let metadata = fs::metadata(&looked_at).map_err(failed)?;
    let is_device = blockdevice::is_block_device(&looked_at);
    let identity = if is_device {
        Identity::at(&looked_at)
    } else {
        Identity::below_file_system(libc::major(metadata.dev()), libc::minor(metadata.dev()))
    };
    let mut found = Probe {
        path: path.to_owned(),
        exists: path.exists(),
        writable: may_write(&looked_at),
        file_system: (!is_device).then(|| probe_file_system(&looked_at)).flatten(),
        device: identity.map(|identity| probe_device(&identity, is_device)),
        direct_io: directio::probe(&looked_at),
        methods: Method::ALL.map(describe_method).into(),
        lockable_memory_bytes: lockable_bytes(),
        warnings: Vec::new(),
        looked_at,
    };
    found.warnings = warnings::of(&found);
    Ok(found)
}

fn nearest_existing(path: &Path) -> Result<PathBuf, DiskError> {
    let failed = |error: std::io::Error| DiskError::from_errno(errno_of(&error), "probe", path);
    let absolute = std::path::absolute(path).map_err(failed)?;
    let mut last_error = None;
    for place in absolute.ancestors() {
        match fs::canonicalize(place) {
            Ok(place) => return Ok(place),
            Err(error) => last_error = last_error.or(Some(error)),
        }
    }
    Err(failed(last_error.expect("every path has an ancestor")))
}

fn may_write(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: the path is a C string that lives through the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

fn probe_file_system(path: &Path) -> Option<ProbedFileSystem> {
    let mount = Mount::of_path(path)?;
    let c_path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statvfs is a valid value of that plain C structure.
    let mut facts: libc::statvfs64 = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string, the structure is writable. A failure leaves zeros: no size
    // known.
    unsafe { libc::statvfs64(c_path.as_ptr(), &mut facts) };
    let kind = mount.kind.as_str();
    Some(ProbedFileSystem {
        is_network: is_network(kind),
        is_copy_on_write: matches!(kind, "btrfs" | "zfs" | "bcachefs" | "nilfs2"),
        is_memory: matches!(kind, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs"),
        size_bytes: facts.f_blocks.saturating_mul(facts.f_frsize),
        free_bytes: facts.f_bavail.saturating_mul(facts.f_frsize),
        mount_point: mount.point,
        source: mount.source,
        options: mount.options,
        kind: mount.kind,
    })
}

/// File systems whose server is another machine, or the host of a virtual one.
fn is_network(kind: &str) -> bool {
    matches!(
        kind,
        "nfs"
            | "nfs4"
            | "cifs"
            | "smb3"
            | "smbfs"
            | "ceph"
            | "glusterfs"
            | "fuse.glusterfs"
            | "lustre"
            | "gpfs"
            | "beegfs"
            | "afs"
            | "9p"
            | "virtiofs"
            | "fuse.sshfs"
    )
}

fn probe_device(identity: &Identity, is_whole_path: bool) -> ProbedDevice {
    let bottom_disks = identity.bottom_disks();
    let shares_system_disk =
        system_disks().map(|system| system.iter().any(|disk| bottom_disks.contains(disk)));
    ProbedDevice {
        kernel_name: identity.kernel_name.clone(),
        by_id: identity.by_id(),
        consent_token: identity.consent_token(),
        serial: identity.serial(),
        model: identity.attribute("device/model"),
        size_bytes: identity.size_bytes(),
        is_rotational: identity.number("queue/rotational").map(|rotational| rotational != 0),
        write_cache: identity.attribute("queue/write_cache"),
        logical_block_bytes: identity.number("queue/logical_block_size"),
        physical_block_bytes: identity.number("queue/physical_block_size"),
        bottom_disks,
        shares_system_disk,
        obstacles: if is_whole_path { obstacles(identity) } else { Vec::new() },
    }
}

/// Everything but missing consent that keeps a device from being written, found without writing.
fn obstacles(identity: &Identity) -> Vec<String> {
    let mut obstacles: Vec<String> = blockdevice::use_by_others(identity).into_iter().collect();
    let content = OpenFile::open(&identity.best_path(), OpenMode::Read, &OpenRules::default())
        .and_then(|file| {
            blockdevice::check_content(
                &file.fd,
                file.opened_length_bytes,
                OpenMode::Write,
                identity,
                "probe",
            )
        });
    if let Err(error) = content {
        obstacles.push(error.detail.clone().unwrap_or_else(|| error.to_string()));
    }
    obstacles
}

/// The disks below "/"; none in a container, where that is not a device.
fn system_disks() -> Option<Vec<String>> {
    let number = fs::metadata("/").ok()?.dev();
    Some(Identity::below_file_system(libc::major(number), libc::minor(number))?.bottom_disks())
}

fn describe_method(method: Method) -> ProbedMethod {
    let mut remarks = Vec::new();
    let refusal = probe_method(method, &mut remarks).err();
    ProbedMethod { name: method.name(), refusal, remarks }
}
