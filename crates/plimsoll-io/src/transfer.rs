//! How reads, writes and file syncs reach the kernel: the one thing in which the methods of a real
//! disk differ.
//!
//! Everything else (files, names, error texts, short transfers, the order of close) is written
//! once, in `real`.

use std::os::fd::RawFd;

use crate::Nanos;
use crate::net::{Order, Seen};

/// What to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferKind {
    Read,
    /// A write that may stay in the device's cache.
    Write,
    /// A write with RWF_DSYNC.
    WriteDurable,
    /// fdatasync.
    SyncContent,
    /// fsync.
    SyncEverything,
}

/// One transfer on its way to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// Comes back with the result.
    pub tag: u32,
    pub kind: TransferKind,
    pub fd: RawFd,
    pub offset: u64,
    pub memory: Memory,
}

/// The memory of a transfer; the disk keeps its owner alive until the transfer has come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub start: *mut u8,
    pub length_bytes: u32,
    /// Where the kernel knows this memory already.
    pub registered_index: Option<u16>,
}

impl Memory {
    /// No memory, for syncs.
    pub(crate) const NONE: Memory =
        Memory { start: std::ptr::null_mut(), length_bytes: 0, registered_index: None };
}

/// A transfer that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transferred {
    pub tag: u32,
    /// Bytes transferred, or a negative error number.
    pub result: i32,
}

/// Why a method cannot be had.
pub(crate) struct Refusal {
    pub reason: String,
    pub errno: Option<i32>,
}

impl Refusal {
    /// A refusal by a system call.
    pub(crate) fn by_kernel(call: &str, errno: i32) -> Self {
        let meaning = match errno {
            libc::EPERM | libc::EACCES => "forbidden, as in many container profiles",
            libc::ENOSYS => "unknown to this kernel",
            libc::ENOMEM => "not enough lockable memory",
            libc::EAGAIN => "the system's limit is used up",
            _ => "refused",
        };
        Self { reason: format!("{call}: {meaning} (errno {errno})"), errno: Some(errno) }
    }
}

/// A method of doing transfers.
pub(crate) trait TransferQueue {
    /// How many transfers may be queued and under way together.
    fn capacity(&self) -> usize;

    /// Queues a transfer.
    ///
    /// # Safety
    /// Memory and descriptor of the transfer stay valid until its tag has been collected, and at
    /// most `capacity` transfers are pushed and not collected.
    unsafe fn push(&mut self, transfer: Transfer);

    /// Hands what was queued to the kernel.
    fn flush(&mut self);

    /// Whether `collect` would find anything: a load from memory.
    fn ready(&mut self) -> bool;

    /// Moves finished transfers to `done`.
    fn collect(&mut self, done: &mut Vec<Transferred>);

    /// Flushes, then sleeps until something is ready, the disk's wake-up rings, or the time is over
    /// (`None`: no limit). May return early.
    fn wait(&mut self, timeout_ns: Option<Nanos>);

    /// Makes memory known to the kernel under an index; the error is an error number.
    ///
    /// # Safety
    /// The memory stays allocated as long as this queue lives.
    unsafe fn register(
        &mut self,
        _index: u16,
        _start: *mut u8,
        _length_bytes: usize,
    ) -> Result<(), i32> {
        Err(libc::EOPNOTSUPP)
    }

    /// Whether this method watches sockets too.
    fn watches(&self) -> bool {
        false
    }

    /// Watches a socket, or watches it no more; what is seen is collected with the transfers.
    fn order(&mut self, _order: Order) {
        unreachable!("only a method that watches is asked to");
    }

    /// What was seen of sockets since the last call.
    fn seen(&mut self) -> Vec<Seen> {
        Vec::new()
    }

    /// Waits at most `patience_ns` for transfers under way after the last were handed over; answers
    /// whether none is left.
    fn finish(&mut self, patience_ns: Nanos) -> bool;
}
