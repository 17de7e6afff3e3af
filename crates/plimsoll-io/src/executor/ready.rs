//! What is ready to run, and how the executor is told by whom it does not know: another thread may
//! wake a task, and what is awaited from outside (a socket, a thread of its own) keeps the executor
//! from calling itself stalled.
//!
//! The order that loses no wake: the sleeper announces itself, asks what is awaited, looks once
//! more at the queue, then sleeps. Who wakes puts the task into the queue, lets go of what was
//! awaited, and each time looks for a sleeper. So either sees the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

pub(super) type TaskId = u64;

/// The tasks to be polled, first come, first served.
pub(super) struct ReadyQueue {
    ids: Mutex<VecDeque<TaskId>>,
    sleeping: AtomicBool,
    /// Ends the sleep in the disk.
    sleeper: Waker,
    awaited_count: AtomicUsize,
}

impl ReadyQueue {
    /// An empty queue of an executor that `sleeper` wakes.
    pub(super) fn new(sleeper: Waker) -> Self {
        Self {
            ids: Mutex::default(),
            sleeping: AtomicBool::new(false),
            sleeper,
            awaited_count: AtomicUsize::new(0),
        }
    }

    pub(super) fn push(&self, id: TaskId) {
        self.lock().push_back(id);
        self.wake_sleeper();
    }

    pub(super) fn pop(&self) -> Option<TaskId> {
        self.lock().pop_front()
    }

    /// Says that the executor is about to sleep unless it finds a reason not to.
    pub(super) fn announce_sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
    }

    /// Says that the executor is awake.
    pub(super) fn end_sleep(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    fn wake_sleeper(&self) {
        if self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst) {
            self.sleeper.wake_by_ref();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether anything is awaited from outside. Asked before the queue is: what is awaited no more
    /// has put its task there first.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited_count.load(Ordering::SeqCst) > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<TaskId>> {
        self.ids.lock().expect("no panic happens under this lock")
    }
}

pub(super) struct TaskWaker {
    pub(super) id: TaskId,
    pub(super) ready: Arc<ReadyQueue>,
    /// Set while the id is in the queue, so that a task woken twice is polled once.
    pub(super) queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.ready.push(self.id);
        }
    }
}

/// Counts what the tasks of one executor await from outside its disk and its timers.
#[derive(Clone)]
pub(crate) struct Outside {
    ready: Arc<ReadyQueue>,
}

impl Outside {
    pub(super) fn of(ready: &Arc<ReadyQueue>) -> Self {
        Self { ready: ready.clone() }
    }

    /// One more thing is awaited, until the answer is dropped.
    pub(crate) fn awaited(&self) -> Awaited {
        self.ready.awaited_count.fetch_add(1, Ordering::SeqCst);
        Awaited { ready: self.ready.clone() }
    }
}

/// See [`Outside::awaited`].
pub(crate) struct Awaited {
    ready: Arc<ReadyQueue>,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if self.ready.awaited_count.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Whoever sleeps for nothing but this has to notice that it stalls.
            self.ready.wake_sleeper();
        }
    }
}
