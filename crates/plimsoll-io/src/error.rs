//! What can go wrong at the disk seam, with a hint for each kind. Errors are values: recorded once,
//! returned once, and never retried in silence.

use std::path::{Path, PathBuf};

/// The kind of a disk error; tests and callers match on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// The path names nothing.
    NotFound,
    /// The path exists and must not.
    AlreadyExists,
    /// No space left on the device.
    Full,
    /// The device disappeared.
    Gone,
    /// The caller may not do this.
    PermissionDenied,
    /// The file system is read-only.
    ReadOnly,
    /// Offset, length or memory is not a multiple of the device's alignment.
    Misaligned,
    /// The file system or the kernel refuses this way of doing I/O.
    Unsupported,
    /// Another process (or another run in this one) holds the file.
    Locked,
    /// Fewer bytes were transferred than asked for.
    Short,
    /// The medium reported an error.
    Medium,
    /// The device carries data of somebody else, or consent to overwrite it is missing.
    Occupied,
    /// The simulated power was cut; nothing completes after this.
    PowerLost,
    /// Anything else the operating system reports.
    Other,
}

/// A failed disk operation.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{doing} {path}{at} failed: {kind_text}{detail}{errno_text}; {hint}",
    path = path.display(), at = self.at_text(),
        kind_text = self.kind_text(), detail = self.detail_text(), errno_text = self.errno_text(),
            hint = self.hint())]
pub struct DiskError {
    /// What went wrong.
    pub kind: DiskErrorKind,
    /// What was being done: "read", "write", "sync", "open", ...
    pub doing: &'static str,
    /// The file concerned.
    pub path: PathBuf,
    /// Byte offset and length for reads and writes.
    pub range: Option<(u64, u64)>,
    /// The operating system's error number, if it gave one.
    pub errno: Option<i32>,
    /// What this very case was, where the kind does not say it all.
    pub detail: Option<String>,
}

impl DiskErrorKind {
    /// Whether it speaks against the storage. That somebody else uses a file or that there is no
    /// room is nothing the storage did wrong; whoever called can change it.
    pub fn accuses_storage(self) -> bool {
        !matches!(self, DiskErrorKind::Locked | DiskErrorKind::Full)
    }

    /// The family of errors it belongs to: "disk" where it is the storage's fault, "config" where
    /// something else was asked for.
    pub fn family(self) -> &'static str {
        match self.accuses_storage() {
            true => "disk",
            false => "config",
        }
    }
}

impl DiskError {
    /// An error without operating-system number.
    pub fn new(kind: DiskErrorKind, doing: &'static str, path: impl AsRef<Path>) -> Self {
        Self { kind, doing, path: path.as_ref().to_owned(), range: None, errno: None, detail: None }
    }

    /// An error from an operating-system error number.
    pub fn from_errno(errno: i32, doing: &'static str, path: impl AsRef<Path>) -> Self {
        let kind = match errno {
            libc::ENOENT | libc::ENOTDIR => DiskErrorKind::NotFound,
            libc::EEXIST => DiskErrorKind::AlreadyExists,
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => DiskErrorKind::Full,
            libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOTCONN | libc::ESTALE => {
                DiskErrorKind::Gone
            }
            libc::EACCES | libc::EPERM => DiskErrorKind::PermissionDenied,
            libc::EROFS => DiskErrorKind::ReadOnly,
            libc::EINVAL => DiskErrorKind::Misaligned,
            libc::EOPNOTSUPP | libc::ENOSYS | libc::ELOOP => DiskErrorKind::Unsupported,
            libc::EBUSY | libc::ETXTBSY => DiskErrorKind::Locked,
            // A lock that is taken; for a transfer the same number (EAGAIN) means that the kernel
            // lacks resources.
            libc::EWOULDBLOCK if matches!(doing, "open" | "create") => DiskErrorKind::Locked,
            libc::EIO
            | libc::EBADMSG
            | libc::EUCLEAN
            | libc::ENODATA
            | libc::EREMOTEIO
            | libc::EILSEQ => DiskErrorKind::Medium,
            _ => DiskErrorKind::Other,
        };
        Self { errno: Some(errno), ..Self::new(kind, doing, path) }
    }

    fn is_directory(&self) -> bool {
        self.errno == Some(libc::EISDIR)
    }

    /// The same error with the byte range it concerns.
    pub fn at(mut self, offset: u64, length_bytes: u64) -> Self {
        self.range = Some((offset, length_bytes));
        self
    }

    /// The same error with the particulars of this case.
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    fn detail_text(&self) -> String {
        self.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"))
    }

    fn at_text(&self) -> String {
        self.range
            .map_or(String::new(), |(offset, bytes)| format!(" ({bytes} bytes at offset {offset})"))
    }

    fn errno_text(&self) -> String {
        self.errno.map_or(String::new(), |errno| format!(" (errno {errno})"))
    }

    fn kind_text(&self) -> &'static str {
        match self.kind {
            DiskErrorKind::NotFound => "no such file or directory",
            DiskErrorKind::AlreadyExists => "it exists already",
            DiskErrorKind::Full => "no space left",
            DiskErrorKind::Gone => "the device is gone",
            DiskErrorKind::PermissionDenied => "permission denied",
            DiskErrorKind::ReadOnly => "the file system is read-only",
            DiskErrorKind::Misaligned => "the request does not fit the device's alignment",
            DiskErrorKind::Unsupported => "not supported here",
            DiskErrorKind::Locked => "this process or another holds it",
            DiskErrorKind::Short => "fewer bytes than asked for were transferred",
            DiskErrorKind::Medium => "the medium reported an error",
            DiskErrorKind::Occupied => "it may hold another user's data",
            DiskErrorKind::PowerLost => "the power was cut",
            DiskErrorKind::Other if self.is_directory() => "it is a directory and no file",
            DiskErrorKind::Other => "the operating system refused",
        }
    }

    fn hint(&self) -> &'static str {
        match self.kind {
            DiskErrorKind::NotFound => "check the path",
            DiskErrorKind::AlreadyExists => {
                "choose another path or remove it yourself; nothing is overwritten"
            }
            // Files are allocated before they are written.
            DiskErrorKind::Full if self.doing == "write" => {
                "the file has its space already, so what lies below its file system is full: \
                 extend the thin pool, or \
                 free space where the file system copies on write"
            }
            DiskErrorKind::Full => "free space or choose a smaller database",
            DiskErrorKind::Gone => "check cabling, paths and the kernel log; the run is over",
            DiskErrorKind::PermissionDenied => "check owner and mode of the path",
            DiskErrorKind::ReadOnly => "remount it writable or choose another path",
            DiskErrorKind::Misaligned => {
                "the file system may refuse direct I/O; run `plimsoll probe` on the path"
            }
            DiskErrorKind::Unsupported => "run `plimsoll probe` on the path to see what works",
            DiskErrorKind::Locked => "close it there, stop the other run, or choose another path",
            DiskErrorKind::Short => {
                "the file is shorter than its header says; run `plimsoll verify` on it"
            }
            DiskErrorKind::Medium => {
                "the storage cannot read or write this place; see the kernel log"
            }
            DiskErrorKind::Occupied => {
                "check that no one needs it, wipe it yourself (`wipefs`), and name its serial"
            }
            DiskErrorKind::PowerLost => "recover from the crash image",
            DiskErrorKind::Other if self.is_directory() => {
                "move the directory away, or choose another path"
            }
            DiskErrorKind::Other => "see errno",
        }
    }
}
