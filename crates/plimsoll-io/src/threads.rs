//! Transfers by a pool of threads, one blocking system call each: the method that works everywhere,
//! also where containers forbid io_uring and libaio. It costs two thread switches per I/O.

use std::sync::Arc;
use std::time::Duration;

use crate::Nanos;
use crate::posix::{Crew, Wakeup, last_errno, timespec_of};
use crate::transfer::{Transfer, TransferKind, TransferQueue, Transferred};

/// A transfer as it travels to a worker.
pub(crate) struct Errand(pub(crate) Transfer);

// SAFETY: the pointer inside is only used by the one worker that runs the errand; who pushed it
// leaves the memory alone until the errand has come back (the contract of `TransferQueue::push`).
unsafe impl Send for Errand {}

/// See the module text.
pub(crate) struct ThreadQueue {
    crew: Crew<Errand, Transferred>,
    wakeup: Arc<Wakeup>,
}

impl ThreadQueue {
    /// A pool of at most `threads_max` threads, started as they are needed.
    pub(crate) fn new(threads_max: usize, wakeup: Arc<Wakeup>) -> Self {
        Self { crew: Crew::new("plimsoll-io", threads_max, wakeup.clone(), run_errand), wakeup }
    }
}

impl TransferQueue for ThreadQueue {
    fn capacity(&self) -> usize {
        usize::MAX
    }

    unsafe fn push(&mut self, transfer: Transfer) {
        self.crew.push(Errand(transfer));
    }

    fn flush(&mut self) {}

    fn ready(&mut self) -> bool {
        self.crew.ready()
    }

    fn collect(&mut self, done: &mut Vec<Transferred>) {
        self.crew.take(done);
    }

    fn wait(&mut self, timeout_ns: Option<Nanos>) {
        wait_readable(&self.wakeup, timeout_ns);
    }

    fn finish(&mut self, patience_ns: Nanos) -> bool {
        self.crew.finish(Duration::from_nanos(patience_ns))
    }
}

/// Sleeps until the wake-up rings or the time is over; a signal also ends the sleep.
fn wait_readable(wakeup: &Wakeup, timeout_ns: Option<Nanos>) {
    let mut interest = libc::pollfd { fd: wakeup.fd(), events: libc::POLLIN, revents: 0 };
    let timeout = timeout_ns.map(timespec_of);
    let timeout_pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: one pollfd is passed and the timeout, if any, lives through the call.
    let ready = unsafe { libc::ppoll(&mut interest, 1, timeout_pointer, std::ptr::null()) };
    if ready > 0 {
        wakeup.drain();
    }
}

pub(crate) fn run_errand(Errand(transfer): Errand) -> Transferred {
    let Transfer { fd, offset, memory, .. } = transfer;
    let (start, length_bytes, offset) =
        (memory.start.cast(), memory.length_bytes as usize, offset as i64);
    let vector = libc::iovec { iov_base: start, iov_len: length_bytes };
    // SAFETY: whoever pushed the transfer keeps memory and descriptor valid until it has come back.
    let result = unsafe {
        match transfer.kind {
            TransferKind::Read => libc::pread64(fd, start, length_bytes, offset),
            TransferKind::Write => libc::pwrite64(fd, start, length_bytes, offset),
            TransferKind::WriteDurable => libc::pwritev2(fd, &vector, 1, offset, libc::RWF_DSYNC),
            TransferKind::SyncContent => libc::fdatasync(fd) as isize,
            TransferKind::SyncEverything => libc::fsync(fd) as isize,
        }
    };
    Transferred {
        tag: transfer.tag,
        // A transfer is at most `u32` long and the kernel ends it below 2 GiB.
        result: if result < 0 { -last_errno() } else { result as i32 },
    }
}
