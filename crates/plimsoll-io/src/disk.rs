//! The disk seam: named files, every operation asynchronous, every operation labelled with its
//! purpose.
//!
//! A [`Disk`] accepts an [`Operation`] and later calls its [`Completion`] exactly once, from
//! [`Disk::reap`] and never from inside [`Disk::submit`]. Decorators wrap a disk and its
//! completions; the engine sees only the trait.
//!
//! Contract of every implementation (one conformance suite checks it):
//! - reads and writes transfer everything or fail; a short transfer is an error, nothing is
//!   retried;
//! - a write is durable when it was submitted as [`Durability::Durable`] and completed, or when a
//!   [`Action::SyncFile`] submitted after its completion has completed;
//! - create, rename and delete are durable when a [`Action::SyncDirectory`] of the parent,
//!   submitted later, has completed; nothing is promised of directories that are made and removed;
//! - the length set by [`Action::Extend`] is durable after the next completed [`Action::SyncFile`];
//!   new bytes read as zero;
//! - completions are stamped when reaped, and the executor reaps before every task poll.

use std::path::PathBuf;
use std::rc::Rc;
use std::task::Waker;

use crate::{Buffer, DiskError, Nanos};

/// A file opened on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Which engine instance an operation belongs to (one log stream, one cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u16);

/// Why an operation is done. Every figure is kept per purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A transaction needs a database page.
    DatabaseRead,
    /// The cache writes database pages back.
    DatabaseWrite,
    /// Background database maintenance reads ahead of faults.
    Maintenance,
    /// A log flush: part of commit latency.
    LogWrite,
    /// Pre-writing a log generation before it is used.
    LogFormat,
    /// Recovery or verification reads the log.
    LogRead,
    /// A replica's copy of the log is read back.
    LogReplication,
    /// Recovery reads or writes a database page.
    Redo,
    /// A streaming backup reads.
    Backup,
    /// A checksum pass reads.
    Checksum,
    /// A database is being prepared.
    Prepare,
    /// Headers, checkpoint and flush map.
    #[default]
    Header,
    /// Opening, creating, renaming, deleting, listing.
    Metadata,
}

impl Purpose {
    /// Every purpose, in the order of the sample columns.
    pub const ALL: [Purpose; 13] = [
        Purpose::DatabaseRead,
        Purpose::DatabaseWrite,
        Purpose::Maintenance,
        Purpose::LogWrite,
        Purpose::LogFormat,
        Purpose::LogRead,
        Purpose::LogReplication,
        Purpose::Redo,
        Purpose::Backup,
        Purpose::Checksum,
        Purpose::Prepare,
        Purpose::Header,
        Purpose::Metadata,
    ];

    /// The name used in samples and reports.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::DatabaseRead => "database_read",
            Purpose::DatabaseWrite => "database_write",
            Purpose::Maintenance => "maintenance",
            Purpose::LogWrite => "log_write",
            Purpose::LogFormat => "log_format",
            Purpose::LogRead => "log_read",
            Purpose::LogReplication => "log_replication",
            Purpose::Redo => "redo",
            Purpose::Backup => "backup",
            Purpose::Checksum => "checksum",
            Purpose::Prepare => "prepare",
            Purpose::Header => "header",
            Purpose::Metadata => "metadata",
        }
    }
}

/// The label of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Why.
    pub purpose: Purpose,
    /// On whose behalf.
    pub instance: InstanceId,
    /// Which database of the instance, counted from 1; 0 for the log and everything else.
    pub database: u8,
    /// When the operation should have started, for response times; `None` means when it is
    /// submitted.
    pub intended: Option<Nanos>,
}

impl Context {
    /// A label with only a purpose.
    pub fn of(purpose: Purpose) -> Self {
        Self { purpose, ..Self::default() }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, reading only, no lock taken.
    Read,
    /// Existing file, reading and writing; refused while anybody else has it open for writing.
    Write,
    /// New file, reading and writing; refused if the path exists.
    Create,
}

/// Whether a write must have reached stable storage when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// May be lost until the next sync.
    Volatile,
    /// As with RWF_DSYNC: on stable storage when complete.
    Durable,
}

/// What is asked of the disk.
#[derive(Debug)]
pub enum Action {
    /// Opens a file; answered by [`Answer::Opened`].
    Open { path: PathBuf, mode: OpenMode },
    /// Makes the file at least this long; new bytes read as zero. Fails with `Full` before the file
    /// is changed where the file system can tell.
    Extend { file: FileId, length_bytes: u64 },
    /// Reads exactly the buffer's length; answered by [`Answer::Buffer`].
    Read { file: FileId, offset: u64, buffer: Buffer },
    /// Writes the whole buffer; answered by [`Answer::Buffer`].
    Write { file: FileId, offset: u64, buffer: Buffer, durability: Durability },
    /// Makes data and length of a file durable.
    SyncFile { file: FileId },
    /// Closes a file. Operations still in flight on it complete first.
    Close { file: FileId },
    /// Renames, replacing an existing target.
    Rename { from: PathBuf, to: PathBuf },
    /// Deletes a file.
    Delete { path: PathBuf },
    /// Makes the names in a directory durable.
    SyncDirectory { path: PathBuf },
    /// Lists a directory; answered by [`Answer::Entries`], sorted by name.
    List { path: PathBuf },
    /// Asks what a name stands for; answered by [`Answer::Entry`].
    Stat { path: PathBuf },
    /// Makes a directory; refused if the path exists.
    MakeDirectory { path: PathBuf },
    /// Removes a directory; refused while anything is in it.
    RemoveDirectory { path: PathBuf },
}

impl Action {
    /// The verb used in error messages.
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Open { mode: OpenMode::Create, .. } => "create",
            Action::Open { .. } => "open",
            Action::Extend { .. } => "extend",
            Action::Read { .. } => "read",
            Action::Write { .. } => "write",
            Action::SyncFile { .. } => "sync",
            Action::Close { .. } => "close",
            Action::Rename { .. } => "rename",
            Action::Delete { .. } => "delete",
            Action::SyncDirectory { .. } => "sync directory",
            Action::List { .. } => "list",
            Action::Stat { .. } => "stat",
            Action::MakeDirectory { .. } => "make directory",
            Action::RemoveDirectory { .. } => "remove directory",
        }
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// File name without directory; bytes that are no UTF-8 are replaced (no file of ours is called
    /// so).
    pub name: String,
    /// Length; zero for directories.
    pub length_bytes: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What opening a file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The file.
    pub file: FileId,
    /// Its length (a block device's capacity).
    pub length_bytes: u64,
    /// Offsets and lengths of reads and writes must be multiples of this.
    pub alignment_bytes: u32,
    /// The unit the device writes without tearing, as far as it says.
    pub atomic_write_bytes: u32,
    /// Whether this is a whole block device: its length says nothing about what is on it.
    pub is_device: bool,
}

/// The result of a successful operation.
#[derive(Debug)]
pub enum Answer {
    /// Nothing more to say.
    Done,
    /// A file was opened.
    Opened(Opened),
    /// A read or write is complete and the memory comes back.
    Buffer(Buffer),
    /// A directory's content.
    Entries(Vec<Entry>),
    /// What a name stands for.
    Entry(Entry),
}

/// A completed operation with its times.
#[derive(Debug)]
pub struct Outcome {
    /// Result.
    pub result: Result<Answer, DiskError>,
    /// When it was handed to the device.
    pub submitted: Nanos,
    /// When its completion was reaped.
    pub completed: Nanos,
}

/// Called exactly once with the outcome.
pub type Completion = Box<dyn FnOnce(Outcome)>;

/// One operation on its way to a disk.
pub struct Operation {
    /// What to do.
    pub action: Action,
    /// Why, for whom, since when.
    pub context: Context,
    /// Whom to tell.
    pub completion: Completion,
}

/// What is known of a disk, for the environment record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskFacts {
    /// "io_uring", "libaio", "threads", "memory", ...
    pub method: String,
    /// Things a reader of the results must know: fallbacks taken and why.
    pub remarks: Vec<String>,
    /// What was chosen because it was measured to be better; nothing in it speaks against a result.
    pub choices: Vec<String>,
}

/// Storage, as the engine sees it. See the module text for the contract.
pub trait Disk {
    /// Starts an operation. Never blocks on the device and never calls the completion itself.
    fn submit(&self, operation: Operation);

    /// Delivers every completion that is ready; returns how many.
    fn reap(&self) -> usize;

    /// Sleeps until a completion is ready or the deadline has passed. Only called in real time.
    fn wait(&self, deadline: Option<Nanos>);

    /// Ends [`Disk::wait`] from another thread, also one that has yet to begin. Where nothing ever
    /// waits, in virtual time, it does nothing.
    fn waker(&self) -> Waker;

    /// In virtual time, when the next completion is due. Real disks answer `None`.
    fn next_event(&self) -> Option<Nanos>;

    /// How many operations have been submitted and not delivered.
    fn in_flight(&self) -> usize;

    /// What this disk is.
    fn facts(&self) -> DiskFacts;

    /// How long the thread has been inside the kernel to hand operations over, since the disk was
    /// opened. It can be held there: by a full queue, a file system that has to read first, a
    /// server in user space.
    fn inside_kernel_ns(&self) -> Nanos {
        0
    }

    /// Memory for I/O, registered with the kernel where that helps. Its content is unspecified.
    fn allocate(&self, length_bytes: usize) -> Buffer {
        Buffer::zeroed(length_bytes)
    }
}

impl<D: Disk + ?Sized> Disk for Rc<D> {
    fn submit(&self, operation: Operation) {
        (**self).submit(operation);
    }
    fn reap(&self) -> usize {
        (**self).reap()
    }
    fn wait(&self, deadline: Option<Nanos>) {
        (**self).wait(deadline);
    }
    fn waker(&self) -> Waker {
        (**self).waker()
    }
    fn next_event(&self) -> Option<Nanos> {
        (**self).next_event()
    }
    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }
    fn facts(&self) -> DiskFacts {
        (**self).facts()
    }
    fn inside_kernel_ns(&self) -> Nanos {
        (**self).inside_kernel_ns()
    }
    fn allocate(&self, length_bytes: usize) -> Buffer {
        (**self).allocate(length_bytes)
    }
}
