//! One value from another thread: the thread fills it in, the task that awaits it is woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::{Awaited, Outside};

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    /// The thread has answered or never will.
    is_over: bool,
    /// Nobody waits any more.
    is_abandoned: bool,
}

type Shared<T> = Arc<Mutex<Slot<T>>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, Slot<T>> {
    shared.lock().expect("no panic happens under this lock")
}

/// The two ends of one value.
pub(crate) fn reply<T>(outside: &Outside) -> (Replier<T>, Reply<T>) {
    let shared = Arc::new(Mutex::new(Slot {
        value: None,
        waker: None,
        is_over: false,
        is_abandoned: false,
    }));
    let replier = Replier { shared: shared.clone(), _awaited: outside.awaited() };
    (replier, Reply { shared })
}

/// The thread's end.
pub(crate) struct Replier<T> {
    shared: Shared<T>,
    /// Dropped after the waiting task was woken: the executor never finds neither.
    _awaited: Awaited,
}

impl<T> Replier<T> {
    /// Gives the value.
    pub(crate) fn send(self, value: T) {
        lock(&self.shared).value = Some(value);
    }

    /// Whether nobody waits for the value any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        lock(&self.shared).is_abandoned
    }
}

impl<T> Drop for Replier<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = lock(&self.shared);
            slot.is_over = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The task's end: the value, or `None` when the thread went away without giving any.
pub(crate) struct Reply<T> {
    shared: Shared<T>,
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = lock(&self.shared);
        if slot.is_over {
            return Poll::Ready(slot.value.take());
        }
        let before = slot.waker.replace(context.waker().clone());
        drop(slot);
        drop(before);
        Poll::Pending
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.shared);
        slot.is_abandoned = true;
        let before = slot.waker.take();
        drop(slot);
        drop(before);
    }
}
