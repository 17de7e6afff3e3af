//! What can be known of a path before anything is written there: file system, device, direct I/O,
//! methods, limits, and what of it a user should be warned about.
//!
//! Never writes: no file is made, and files are read without touching their access time.

mod directio;
mod found;
mod warnings;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use directio::ProbedDirectIo;
pub use found::{Probe, ProbedDevice, ProbedFileSystem, ProbedMethod};

use crate::blockdevice::{self, Identity};
use crate::posix::{Mount, OpenFile, OpenRules, errno_of, lockable_bytes};
use crate::real::{Method, probe_method};
use crate::{DiskError, OpenMode};

thread_local! {
    /// The methods that worked when they were tried. The kernel takes some 20 ms to end one, and
    /// what it forbids it forbids to single threads.
    static WORKED: RefCell<BTreeMap<&'static str, ProbedMethod>> =
        const { RefCell::new(BTreeMap::new()) };
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

/// Tries a method, unless it worked in this thread before.
fn describe_method(method: Method) -> ProbedMethod {
    let known = WORKED.with_borrow(|worked| worked.get(method.name()).cloned());
    known.unwrap_or_else(|| {
        let mut remarks = Vec::new();
        let refusal = probe_method(method, &mut remarks).err();
        let found = ProbedMethod { name: method.name(), refusal, remarks };
        if found.refusal.is_none() {
            WORKED.with_borrow_mut(|worked| worked.insert(found.name, found.clone()));
        }
        found
    })
}
