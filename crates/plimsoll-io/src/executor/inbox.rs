//! What other threads tell a task: taken one after the other, in the order of the sending.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use crate::Handle;

struct Shared<T> {
    letters: Mutex<Letters<T>>,
}

struct Letters<T> {
    queue: VecDeque<T>,
    senders: usize,
    waker: Option<Waker>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Letters<T>> {
        self.letters.lock().expect("no panic happens under this lock")
    }
}

/// Makes the two ends. Both may be made on one thread and used on another.
pub fn inbox<T>() -> (InboxSender<T>, Inbox<T>) {
    let shared = Arc::new(Shared {
        letters: Mutex::new(Letters { queue: VecDeque::new(), senders: 1, waker: None }),
    });
    (InboxSender { shared: shared.clone() }, Inbox { shared })
}

/// The end of other threads.
pub struct InboxSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> InboxSender<T> {
    /// Puts something in; never waits.
    pub fn send(&self, value: T) {
        let waker = {
            let mut letters = self.shared.lock();
            letters.queue.push_back(value);
            letters.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        self.shared.lock().senders += 1;
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for InboxSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut letters = self.shared.lock();
            letters.senders -= 1;
            letters.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The end of a task.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Inbox<T> {
    /// The next of what was put in; `None` when all senders are gone and all was taken. Dropped
    /// while it waits, it has taken nothing.
    pub async fn receive(&self, handle: &Handle) -> Option<T> {
        // Dropped after the task was woken, so that the executor always finds one of the two.
        let _awaited = handle.outside().awaited();
        poll_fn(|context| {
            let mut letters = self.shared.lock();
            if let Some(value) = letters.queue.pop_front() {
                return Poll::Ready(Some(value));
            }
            if letters.senders == 0 {
                return Poll::Ready(None);
            }
            letters.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
