//! A thread that watches descriptors with epoll, for machines without a ring. What it sees it
//! notes, and wakes the tasks itself: their executor's sleep ends by that. Source: epoll(7).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::posix::{block_signals, errno_of};

/// The key of the descriptor that ends the thread; no slot has it, because its generation is never
/// used.
const END_KEY: u64 = u64::MAX;
const EVENTS_AT_ONCE: usize = 256;
/// The thread only notes and wakes.
const STACK_BYTES: usize = 256 * 1024;

/// See the module text. Dropping it ends the thread.
pub(super) struct EpollThread {
    epoll: Arc<OwnedFd>,
    end: Arc<OwnedFd>,
}

impl EpollThread {
    /// An epoll that nobody asks yet.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the results are checked.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        let end = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let thread = Self { epoll: Arc::new(epoll), end: Arc::new(end) };
        thread.control(
            libc::EPOLL_CTL_ADD,
            thread.end.as_raw_fd(),
            libc::EPOLLIN as u32,
            END_KEY,
        )?;
        Ok(thread)
    }

    /// Starts the thread, which tells of everything it sees by key and events, until it is told
    /// that nobody listens any more.
    pub(super) fn start(&self, tell: impl Fn(u64, u32) -> bool + Send + 'static) -> io::Result<()> {
        // A descriptor that is closed is watched no more: told and closed at once, the thread would
        // never hear of its end.
        let (epoll, end) = (self.epoll.clone(), self.end.clone());
        std::thread::Builder::new().name("plimsoll-net".to_owned()).stack_size(STACK_BYTES).spawn(
            move || {
                block_signals();
                watch(&epoll, tell);
                drop(end);
            },
        )?;
        Ok(())
    }

    /// Watches a descriptor for these events under a key.
    pub(super) fn begin(&self, key: u64, fd: RawFd, events: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events | libc::EPOLLET as u32, key)
    }

    /// Watches it no more.
    pub(super) fn end(&self, fd: RawFd) {
        // It can only fail for a descriptor that is not watched, and then there is nothing to be
        // done.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn control(&self, operation: i32, fd: RawFd, events: u32, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: the event lives through the call.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for EpollThread {
    fn drop(&mut self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes are passed.
        unsafe { libc::write(self.end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn watch(epoll: &OwnedFd, tell: impl Fn(u64, u32) -> bool) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_AT_ONCE];
    loop {
        // SAFETY: the array holds as many events as are asked for.
        let count = unsafe {
            libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1)
        };
        if count < 0 && errno_of(&io::Error::last_os_error()) != libc::EINTR {
            return;
        }
        for event in &events[..usize::try_from(count).unwrap_or(0)] {
            let (key, seen) = (event.u64, event.events);
            if key == END_KEY || !tell(key, seen) {
                return;
            }
        }
    }
}
