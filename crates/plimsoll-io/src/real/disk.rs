//! [`RealDisk`]: everything the methods have in common, so that the contract of [`Disk`] is kept in
//! one place.
//!
//! An operation is either a *transfer* (read, write, file sync), which goes to the method's queue,
//! or a *chore*, which goes to worker threads. Chores on names run on one worker in the order of
//! submission, so a directory sync covers every create, rename and delete submitted before it;
//! extensions have workers of their own, because they can be slow.
//!
//! Transfers submitted during one task poll are handed to the kernel together before the next poll
//! and stamped then.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::RealDiskOptions;
use super::choose::choose;
use super::state::State;
use crate::net::WatchTable;
use crate::posix::Wakeup;
use crate::{Buffer, Clock, Disk, DiskError, DiskFacts, NANOS_PER_SECOND, Nanos, Operation};

/// How long dropping a disk waits for I/O under way. What hangs longer keeps its memory and
/// descriptors for ever.
const DROP_PATIENCE_NS: Nanos = 10 * NANOS_PER_SECOND;

/// Real storage. See the module text.
pub struct RealDisk {
    clock: Rc<Clock>,
    wakeup: Arc<Wakeup>,
    undelivered: Cell<usize>,
    state: RefCell<State>,
}

impl RealDisk {
    /// Opens the disks of this machine.
    ///
    /// # Errors
    /// When the wanted method is refused, or the process has no descriptors left.
    pub fn open(options: RealDiskOptions, clock: Rc<Clock>) -> Result<Rc<Self>, DiskError> {
        let wakeup =
            Wakeup::new().map_err(|errno| DiskError::from_errno(errno, "set up", "an eventfd"))?;
        let wakeup = Arc::new(wakeup);
        sleep_precisely();
        let chosen = choose(&options, &wakeup)?;
        let state = State::new(&options, chosen, &wakeup);
        Ok(Rc::new(Self { clock, wakeup, undelivered: Cell::new(0), state: RefCell::new(state) }))
    }

    /// The sockets that this disk's ring watches, where it has a ring that can.
    pub(crate) fn watch_table(&self) -> Option<Arc<WatchTable>> {
        self.state.borrow().sockets.clone()
    }

    /// Bytes of the memory for I/O that was lent and has not come back, that under way included.
    /// Buffers of more than 2 MiB come from the heap and are not counted.
    pub fn lent_bytes(&self) -> usize {
        self.state.borrow().arena.lent_bytes()
    }
}

impl Disk for RealDisk {
    fn submit(&self, operation: Operation) {
        self.undelivered.set(self.undelivered.get() + 1);
        self.state.borrow_mut().start(operation, self.clock.now());
    }

    fn reap(&self) -> usize {
        let mut finished = {
            let mut state = self.state.borrow_mut();
            state.flush(&self.clock);
            if !state.anything_ready() {
                return 0;
            }
            state.collect(&self.clock);
            state.flush(&self.clock);
            std::mem::take(&mut state.finished)
        };
        let count = finished.len();
        for (completion, outcome) in finished.drain(..) {
            self.undelivered.set(self.undelivered.get() - 1);
            completion(outcome);
        }
        let mut state = self.state.borrow_mut();
        if state.finished.is_empty() {
            state.finished = finished;
        }
        count
    }

    fn wait(&self, deadline: Option<Nanos>) {
        let mut state = self.state.borrow_mut();
        state.flush(&self.clock);
        self.wakeup.announce_sleep();
        if !state.anything_ready() {
            let timeout_ns = deadline.map(|deadline| deadline.saturating_sub(self.clock.now()));
            if timeout_ns != Some(0) {
                state.queue.wait(timeout_ns);
            }
        }
        self.wakeup.end_sleep();
    }

    fn waker(&self) -> Waker {
        Waker::from(self.wakeup.clone())
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn in_flight(&self) -> usize {
        self.undelivered.get()
    }

    fn inside_kernel_ns(&self) -> Nanos {
        self.state.borrow().inside_kernel_ns
    }

    fn allocate(&self, length_bytes: usize) -> Buffer {
        self.state.borrow_mut().allocate(length_bytes)
    }

    fn facts(&self) -> DiskFacts {
        let state = self.state.borrow();
        DiskFacts {
            method: state.method.to_owned(),
            remarks: state.remarks.clone(),
            choices: state.choices.clone(),
        }
    }
}

impl Drop for RealDisk {
    fn drop(&mut self) {
        self.state.get_mut().end(DROP_PATIENCE_NS);
    }
}

/// Lets this thread wake when it asked to: by default the kernel may add 50 µs to every sleep,
/// which would become part of every response time. Concerns the calling thread only; an old kernel
/// that refuses changes nothing else.
fn sleep_precisely() {
    const SLACK_NS: libc::c_ulong = 1;
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0) };
}
