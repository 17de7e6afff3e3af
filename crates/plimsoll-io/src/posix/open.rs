//! Opening files: directly, not following symbolic links when writing, locked against a second
//! writer, and measured.
//!
//! The lock is flock(2) on the open file: it excludes other processes and other opens within this
//! process, and it ends with the last descriptor, also when the process is killed. The kernel may
//! drop that last one a little after the process has ended: a ring of io_uring is taken down in the
//! background with the files of its transfers. Hence opening asks for the lock for a while before
//! it says that this process or another holds it, and remarks on how long it took.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Geometry, last_errno, uninterrupted};
use crate::blockdevice::{self, Identity};
use crate::{DiskError, DiskErrorKind, OpenMode};

/// Owner reads and writes, others read; the user's umask takes from it.
const NEW_FILE_PERMISSIONS: libc::c_uint = 0o644;

/// How long a lock is asked for. Opening is done by a worker: nobody but who opens waits.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_ASKED_EVERY: Duration = Duration::from_millis(5);

/// Whether the page cache may stand between us and the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caching {
    /// Direct I/O or an error.
    #[default]
    DirectOnly,
    /// Direct I/O where the file system has it, else buffered I/O with a remark: the figures then
    /// measure memory.
    AllowBuffered,
}

/// What opening may do.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenRules {
    pub caching: Caching,
    /// Serials of block devices that may be overwritten.
    pub destroy_serials: Vec<String>,
}

/// An open file and what is known of it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub fd: OwnedFd,
    pub path: PathBuf,
    pub mode: OpenMode,
    pub is_device: bool,
    pub opened_length_bytes: u64,
    pub alignment_bytes: u32,
    pub atomic_write_bytes: u32,
    /// The device below, for files that are read and written directly.
    pub device: Option<u64>,
    /// What a reader of the results must know of this file.
    pub remarks: Vec<Remark>,
}

/// What a reader of the results must know of a file.
#[derive(Debug)]
pub(crate) struct Remark {
    pub text: String,
    /// The device below, of what holds for every file there: of these a reader needs one.
    pub of_device: Option<(u64, DeviceRemark)>,
}

/// What holds for every file on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceRemark {
    RefusesDirect,
    DirectThroughPageCache,
    EmulatesBlocks,
}

impl OpenFile {
    /// The length now; the capacity of a block device.
    pub(crate) fn length_bytes(&self) -> Result<u64, i32> {
        // SAFETY: no pointers are passed. For block devices seeking to the end gives the capacity.
        let end = unsafe { libc::lseek64(self.fd.as_raw_fd(), 0, libc::SEEK_END) };
        u64::try_from(end).map_err(|_| last_errno())
    }

    /// Gives the lock up at once. Closing alone would leave it to the last reference, which the
    /// kernel may drop later (libaio) or a child process that was just forked may hold until it
    /// executes its program.
    pub(crate) fn unlock(&self) {
        if self.mode != OpenMode::Read {
            // SAFETY: no pointers are passed and the descriptor is open. A device has no such lock;
            // then nothing happens.
            unsafe { libc::flock(self.fd.as_raw_fd(), libc::LOCK_UN) };
        }
    }

    /// Opens a file or a block device.
    pub(crate) fn open(path: &Path, mode: OpenMode, rules: &OpenRules) -> Result<Self, DiskError> {
        if blockdevice::is_block_device(path) {
            return Self::open_device(path, mode, rules);
        }
        let doing = verb(mode);
        if mode != OpenMode::Create && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
        {
            return Err(DiskError::new(DiskErrorKind::Unsupported, doing, path)
                .because("it is neither a file nor a block device"));
        }
        let (fd, direct) = open_descriptor(path, mode, rules)?;
        is_a_file(&fd, path, doing)?;
        let mut waited = Duration::ZERO;
        if mode != OpenMode::Read {
            waited =
                lock_patiently(&fd).map_err(|errno| DiskError::from_errno(errno, doing, path))?;
        }
        let mut file = Self::measure(fd, path, mode, direct)?;
        if !waited.is_zero() {
            let text = format!(
                "{} was locked for {} ms more when it was opened, as by a process that was just \
                 killed",
                path.display(),
                waited.as_millis()
            );
            file.remarks.push(Remark { text, of_device: None });
        }
        Ok(file)
    }

    fn open_device(path: &Path, mode: OpenMode, rules: &OpenRules) -> Result<Self, DiskError> {
        let identity = Identity::at(path).ok_or_else(|| {
            DiskError::new(DiskErrorKind::Unsupported, verb(mode), path)
                .because("sysfs does not know this device")
        })?;
        Self::open_checked_device(path, &identity, mode, rules)
    }

    /// Opens the device that `identity` was taken of. The path may lead elsewhere by now, as a link
    /// below /dev/disk/by-id can: what was opened decides, and nothing has been written to it yet.
    pub(super) fn open_checked_device(
        path: &Path,
        identity: &Identity,
        mode: OpenMode,
        rules: &OpenRules,
    ) -> Result<Self, DiskError> {
        let doing = verb(mode);
        let stable_path = identity.best_path();
        let failed = |errno| DiskError::from_errno(errno, doing, &stable_path);
        if mode == OpenMode::Read {
            let fd = system_open(path, libc::O_RDONLY | libc::O_DIRECT).map_err(failed)?;
            is_the_one_checked(&fd, path, identity, doing)?;
            let mut file = Self::measure(fd, &stable_path, mode, Direct::Yes)?;
            file.is_device = true;
            return Ok(file);
        }
        blockdevice::check_before_opening(identity, &rules.destroy_serials, doing)?;
        // O_EXCL without O_CREAT claims the device: refused while it is mounted, swapped to, or
        // claimed by anybody else.
        let fd = system_open(path, libc::O_RDWR | libc::O_EXCL | libc::O_DIRECT).map_err(failed)?;
        is_the_one_checked(&fd, path, identity, doing)?;
        let mut file = Self::measure(fd, &stable_path, mode, Direct::Yes)?;
        file.is_device = true;
        blockdevice::check_content(&file.fd, file.opened_length_bytes, mode, identity, doing)?;
        Ok(file)
    }

    fn measure(
        fd: OwnedFd,
        path: &Path,
        mode: OpenMode,
        direct: Direct,
    ) -> Result<Self, DiskError> {
        let geometry = Geometry::of(fd.as_fd())
            .map_err(|errno| DiskError::from_errno(errno, verb(mode), path))?;
        let mut remarks = Vec::new();
        let mut remark = |what, text| {
            remarks.push(Remark { text, of_device: Some((geometry.device, what)) });
        };
        if direct == Direct::No {
            remark(
                DeviceRemark::RefusesDirect,
                format!(
                    "buffered I/O on {}: its file system refuses direct I/O, figures include the \
                     page cache",
                    folder_of(path).display()
                ),
            );
        }
        // ext4 with data=journal takes O_DIRECT and answers from memory; statx says that it does.
        let direct = match direct {
            Direct::Yes if geometry.direct_alignment_bytes == Some(0) => {
                remark(
                    DeviceRemark::DirectThroughPageCache,
                    format!(
                        "buffered I/O on {}: its file system takes direct I/O and carries it out \
                     through the page cache, \
                     as ext4 does with data=journal; figures include the page cache",
                        folder_of(path).display()
                    ),
                );
                Direct::No
            }
            asked => asked,
        };
        if geometry.emulates_smaller_blocks() && mode != OpenMode::Read {
            remark(
                DeviceRemark::EmulatesBlocks,
                format!(
                    "the device below {} writes {} byte blocks but is addressed in {} bytes \
                     (512e): a torn block can lose an acknowledged commit",
                    folder_of(path).display(),
                    geometry.atomic_write_bytes(),
                    geometry.logical_block_bytes.unwrap_or_default(),
                ),
            );
        }
        let mut file = Self {
            fd,
            path: path.to_owned(),
            mode,
            is_device: false,
            opened_length_bytes: 0,
            alignment_bytes: geometry.alignment_bytes(),
            atomic_write_bytes: geometry.atomic_write_bytes(),
            device: (direct == Direct::Yes).then_some(geometry.device),
            remarks,
        };
        file.opened_length_bytes =
            file.length_bytes().map_err(|errno| DiskError::from_errno(errno, verb(mode), path))?;
        Ok(file)
    }
}

/// Refuses what was opened when it is not the device that was checked.
fn is_the_one_checked(
    fd: &OwnedFd,
    path: &Path,
    identity: &Identity,
    doing: &'static str,
) -> Result<(), DiskError> {
    if identity.is_of(fd) {
        return Ok(());
    }
    Err(DiskError::new(DiskErrorKind::Occupied, doing, path).because(format!(
        "it leads to another device now than {}, which was checked",
        identity.best_path().display()
    )))
}

/// Refuses a device that has taken the place of a file: nobody has looked whose it is.
fn is_a_file(fd: &OwnedFd, path: &Path, doing: &'static str) -> Result<(), DiskError> {
    let metadata = fd.try_clone().and_then(|fd| fs::File::from(fd).metadata());
    if metadata.is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    Err(DiskError::new(DiskErrorKind::Unsupported, doing, path)
        .because("what was opened is no file, though it was one a moment before"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direct {
    Yes,
    No,
}

fn verb(mode: OpenMode) -> &'static str {
    match mode {
        OpenMode::Create => "create",
        OpenMode::Read | OpenMode::Write => "open",
    }
}

/// Remarks name the folder, so that a hundred logs in one place give one remark.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn open_descriptor(
    path: &Path,
    mode: OpenMode,
    rules: &OpenRules,
) -> Result<(OwnedFd, Direct), DiskError> {
    let doing = verb(mode);
    let mode_flags = match mode {
        OpenMode::Read => libc::O_RDONLY,
        OpenMode::Write => libc::O_RDWR | libc::O_NOFOLLOW,
        OpenMode::Create => libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CREAT | libc::O_EXCL,
    };
    match system_open(path, mode_flags | libc::O_DIRECT) {
        Ok(fd) => Ok((fd, Direct::Yes)),
        Err(libc::EINVAL) if rules.caching == Caching::AllowBuffered => {
            // The refusal comes after the file was made: it must not count as existing.
            system_open(path, mode_flags & !libc::O_EXCL)
                .map(|fd| (fd, Direct::No))
                .map_err(|errno| DiskError::from_errno(errno, doing, path))
        }
        Err(libc::EINVAL) => {
            if mode == OpenMode::Create {
                // A leftover empty file would make the next attempt fail for another reason.
                let _ = fs::remove_file(path);
            }
            Err(DiskError {
                kind: DiskErrorKind::Unsupported,
                ..DiskError::from_errno(libc::EINVAL, doing, path)
                    .because("the file system refuses direct I/O")
            })
        }
        Err(libc::ELOOP) => Err(DiskError::from_errno(libc::ELOOP, doing, path)
            .because("symbolic links are not followed when writing")),
        Err(errno) => Err(DiskError::from_errno(errno, doing, path)),
    }
}

fn system_open(path: &Path, flags: libc::c_int) -> Result<OwnedFd, i32> {
    let c_path = CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::ENOENT)?;
    // SAFETY: the path is a C string that lives through the call.
    let open =
        || unsafe { libc::open64(c_path.as_ptr(), flags | libc::O_CLOEXEC, NEW_FILE_PERMISSIONS) };
    let fd = uninterrupted(|| open().into())? as i32;
    // SAFETY: the descriptor was just opened and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes the lock; answers how long somebody else held it.
fn lock_patiently(fd: &OwnedFd) -> Result<Duration, i32> {
    let asked_first = Instant::now();
    let mut waited = Duration::ZERO;
    loop {
        match lock(fd) {
            Err(libc::EWOULDBLOCK) if waited < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_ASKED_EVERY)
            }
            Err(errno) => return Err(errno),
            Ok(()) => return Ok(waited),
        }
        waited = asked_first.elapsed();
    }
}

fn lock(fd: &OwnedFd) -> Result<(), i32> {
    // SAFETY: no pointers are passed and the descriptor is open.
    if unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}
