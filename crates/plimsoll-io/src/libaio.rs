//! Transfers by the kernel's older asynchronous I/O (io_submit), through raw system calls: the
//! method where io_uring is forbidden. File syncs go to threads of their own.
//!
//! Source: io_submit(2), io_getevents(2), and the completion ring the kernel maps at the context's
//! address (fs/aio.c, `struct aio_ring`), which is only looked at to know without a system call
//! whether anything has completed.
//!
//! Limit: io_submit may wait for the device, when its queue is full or the file system must read
//! metadata first.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Nanos;
use crate::posix::{Crew, Wakeup, last_errno, timespec_of};
use crate::threads::{Errand, run_errand};
use crate::transfer::{Refusal, Transfer, TransferKind, TransferQueue, Transferred};

/// Commands and flags of linux/aio_abi.h, which libc does not export.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_FLAG_RESFD: u32 = 1;
/// What a mapped completion ring starts with, after four words.
const RING_MAGIC: u32 = 0xA10A_10A1;
/// Threads for file syncs.
const SYNC_THREADS_MAX: usize = 8;
/// Completions taken with one system call.
const EVENTS_AT_ONCE: usize = 128;

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// The head of `struct aio_ring`.
#[repr(C)]
struct AioRing {
    id: u32,
    events: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
}

/// See the module text.
pub(crate) struct LibaioQueue {
    context: libc::c_ulong,
    ring_readable: bool,
    capacity: usize,
    under_way: usize,
    queued: Vec<libc::iocb>,
    /// Transfers the kernel refused to take.
    refused: Vec<Transferred>,
    completed: Wakeup,
    wakeup: Arc<Wakeup>,
    syncs: Crew<Errand, Transferred>,
}

impl LibaioQueue {
    /// Sets up a context for `depth` transfers.
    pub(crate) fn open(depth: u32, wakeup: Arc<Wakeup>) -> Result<Self, Refusal> {
        let completed = Wakeup::new().map_err(|errno| Refusal::by_kernel("eventfd", errno))?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the context is writable and zero, as io_setup wants it.
        if unsafe { libc::syscall(libc::SYS_io_setup, depth, &mut context) } != 0 {
            return Err(Refusal::by_kernel("io_setup", last_errno()));
        }
        let ring = context as *const AioRing;
        // SAFETY: io_setup maps the ring at the address it answers.
        let ring_readable = unsafe { (*ring).magic } == RING_MAGIC;
        Ok(Self {
            context,
            ring_readable,
            capacity: depth as usize,
            under_way: 0,
            queued: Vec::new(),
            refused: Vec::new(),
            completed,
            syncs: Crew::new("plimsoll-sync", SYNC_THREADS_MAX, wakeup.clone(), run_errand),
            wakeup,
        })
    }

    fn events_ready(&self) -> bool {
        if self.under_way == 0 {
            return false;
        }
        if !self.ring_readable {
            return self.completed.is_rung();
        }
        let ring = self.context as *const AioRing;
        // SAFETY: the ring stays mapped until io_destroy; both words are only read.
        unsafe { (*ring).head.load(Ordering::Relaxed) != (*ring).tail.load(Ordering::Acquire) }
    }

    fn take_events(&mut self, done: &mut Vec<Transferred>) {
        let mut events = [IoEvent::default(); EVENTS_AT_ONCE];
        if !self.events_ready() {
            return;
        }
        if !self.ring_readable {
            // Before the look, so that what completes after it leaves its mark.
            self.completed.drain();
        }
        loop {
            let mut no_time = timespec_of(0);
            // SAFETY: the array holds as many events as are asked for, the timeout lives through
            // the call.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    0,
                    events.len(),
                    events.as_mut_ptr(),
                    &mut no_time,
                )
            };
            let count = usize::try_from(count).unwrap_or(0);
            self.under_way -= count;
            done.extend(
                events[..count].iter().map(|event| Transferred {
                    tag: event.data as u32,
                    result: event.result as i32,
                }),
            );
            if count < events.len() {
                break;
            }
        }
    }
}

impl TransferQueue for LibaioQueue {
    fn capacity(&self) -> usize {
        self.capacity
    }

    unsafe fn push(&mut self, transfer: Transfer) {
        let command = match transfer.kind {
            TransferKind::Read => IOCB_CMD_PREAD,
            TransferKind::Write | TransferKind::WriteDurable => IOCB_CMD_PWRITE,
            TransferKind::SyncContent | TransferKind::SyncEverything => {
                self.syncs.push(Errand(transfer));
                return;
            }
        };
        // SAFETY: an all-zero iocb is a valid value of that plain C structure.
        let mut block: libc::iocb = unsafe { std::mem::zeroed() };
        block.aio_data = u64::from(transfer.tag);
        block.aio_lio_opcode = command;
        block.aio_fildes = transfer.fd as u32;
        block.aio_buf = transfer.memory.start as u64;
        block.aio_nbytes = u64::from(transfer.memory.length_bytes);
        block.aio_offset = transfer.offset as i64;
        block.aio_flags = IOCB_FLAG_RESFD;
        block.aio_resfd = self.completed.fd() as u32;
        if transfer.kind == TransferKind::WriteDurable {
            block.aio_rw_flags = libc::RWF_DSYNC;
        }
        self.queued.push(block);
    }

    fn flush(&mut self) {
        let mut blocks: Vec<*mut libc::iocb> =
            self.queued.iter_mut().map(std::ptr::from_mut).collect();
        let mut rest = &mut blocks[..];
        while !rest.is_empty() {
            // SAFETY: each pointer names a block of `queued`, which the kernel has copied when the
            // call returns; the memory in it is kept by whoever pushed it.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_mut_ptr())
            };
            match usize::try_from(taken) {
                Ok(taken) if taken > 0 => {
                    self.under_way += taken;
                    rest = &mut rest[taken..];
                }
                // The first block is the one refused; it is an error of its operation, also when it
                // is EAGAIN.
                _ => {
                    let errno = if taken < 0 { last_errno() } else { libc::EAGAIN };
                    // SAFETY: the pointer names a block of `queued`.
                    let tag = unsafe { (*rest[0]).aio_data } as u32;
                    self.refused.push(Transferred { tag, result: -errno });
                    rest = &mut rest[1..];
                }
            }
        }
        self.queued.clear();
    }

    fn ready(&mut self) -> bool {
        self.events_ready() || !self.refused.is_empty() || self.syncs.ready()
    }

    fn collect(&mut self, done: &mut Vec<Transferred>) {
        done.append(&mut self.refused);
        self.take_events(done);
        if self.syncs.ready() {
            self.syncs.take(done);
        }
    }

    fn wait(&mut self, timeout_ns: Option<Nanos>) {
        if self.ring_readable {
            // Completions reaped since the last sleep have left their mark; it must not end this
            // one.
            self.completed.drain();
        }
        if !self.ready() {
            wait_any(&[self.completed.fd(), self.wakeup.fd()], timeout_ns);
            self.wakeup.drain();
        }
    }

    fn finish(&mut self, patience_ns: Nanos) -> bool {
        let patience = Duration::from_nanos(patience_ns);
        let deadline = Instant::now() + patience;
        self.flush();
        let mut done = Vec::new();
        loop {
            if self.ring_readable {
                self.completed.drain();
            }
            self.take_events(&mut done);
            let left = deadline.saturating_duration_since(Instant::now());
            if self.under_way == 0 || left.is_zero() {
                return self.syncs.finish(left) && self.under_way == 0;
            }
            wait_any(&[self.completed.fd()], Some(left.as_nanos() as Nanos));
        }
    }
}

impl Drop for LibaioQueue {
    fn drop(&mut self) {
        // Destroying a context waits for its transfers. With one that hangs the context is left to
        // the end of the process.
        if self.under_way == 0 {
            // SAFETY: the context was made by io_setup and is destroyed once; the ring is not
            // looked at again.
            unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        }
    }
}

/// Sleeps until one of the descriptors is readable or the time is over; a signal also ends the
/// sleep.
fn wait_any(descriptors: &[RawFd], timeout_ns: Option<Nanos>) {
    let mut interest: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 })
        .collect();
    let timeout = timeout_ns.map(timespec_of);
    let timeout_pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array has the length passed, the timeout lives through the call.
    unsafe {
        libc::ppoll(
            interest.as_mut_ptr(),
            interest.len() as libc::nfds_t,
            timeout_pointer,
            std::ptr::null(),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why: on a kernel whose ring cannot be looked at, whatever was under way passed for ready, so
    /// that the thread never slept.
    #[test]
    fn nothing_is_ready_while_nothing_has_completed() {
        let wakeup = Arc::new(Wakeup::new().expect("descriptors are left"));
        let Ok(mut queue) = LibaioQueue::open(8, wakeup) else {
            println!("skipped: this kernel has no libaio, or forbids it");
            return;
        };
        queue.ring_readable = false;
        queue.under_way = 1;
        assert!(!queue.ready(), "the transfer has not completed");
        let started = Instant::now();
        queue.wait(Some(20_000_000));
        assert!(started.elapsed() >= Duration::from_millis(20), "it sleeps as long as told");
        queue.under_way = 0;
    }
}
