//! How a worker thread ends the executor's sleep: an eventfd, written only while somebody sleeps,
//! so that a busy executor costs its workers no system call.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use super::last_errno;
use crate::Nanos;

/// See the module text. The order that makes it safe: the sleeper announces itself, then looks for
/// finished work, then sleeps; the worker publishes its work, then looks for a sleeper. One of the
/// two always sees the other.
pub(crate) struct Wakeup {
    event: OwnedFd,
    sleeping: AtomicBool,
}

impl Wakeup {
    /// A wake-up nobody waits for; the error is an error number.
    pub(crate) fn new() -> Result<Self, i32> {
        // SAFETY: no pointers are passed; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(last_errno());
        }
        Ok(Self {
            // SAFETY: the descriptor was just made and nobody else owns it.
            event: unsafe { OwnedFd::from_raw_fd(fd) },
            sleeping: AtomicBool::new(false),
        })
    }

    /// The descriptor that becomes readable.
    pub(crate) fn fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Ends the sleep of whoever has announced one. Called after the work was published.
    pub(crate) fn ring(&self) {
        if self.sleeping.swap(false, Ordering::SeqCst) {
            self.write();
        }
    }

    fn write(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes are passed. A full counter cannot happen: it is drained
        // before 2^64 rings.
        unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Says that this thread is about to sleep unless it finds work now.
    pub(crate) fn announce_sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
    }

    /// Says that this thread is awake again.
    pub(crate) fn end_sleep(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    /// Whether the descriptor is readable now.
    pub(crate) fn is_rung(&self) -> bool {
        let mut interest = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd is passed; a timeout of zero does not wait.
        unsafe { libc::poll(&mut interest, 1, 0) > 0 }
    }

    /// Makes the descriptor unreadable until the next ring.
    pub(crate) fn drain(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes are passed; the descriptor does not block, an empty counter
        // is EAGAIN.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// For the executor, which knows by itself whether it sleeps or is about to.
impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.write();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.write();
    }
}

/// Nanoseconds as the kernel wants them.
pub(crate) fn timespec_of(duration_ns: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: (duration_ns / crate::NANOS_PER_SECOND) as libc::time_t,
        tv_nsec: (duration_ns % crate::NANOS_PER_SECOND) as libc::c_long,
    }
}
