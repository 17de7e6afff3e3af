//! Waiting inside one executor: a condition ([`Notify`]) and shared permits ([`Permits`]). Both are
//! first come, first served, so a simulated run is the same every time.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::{Handle, Nanos};

/// The wakers of a condition are not looked through for duplicates below this number.
const TIDY_FROM: usize = 64;

/// A condition that tasks wait for; the waiter re-checks its condition after waking.
#[derive(Default)]
pub struct Notify {
    epoch: Cell<u64>,
    waiting: RefCell<Waiting>,
}

/// Wakers in the order in which their tasks first came.
///
/// A task that gave up and waits again is here more than once until the next tidying. Nobody is
/// taken out when it gives up: a task keeps its first place, which waking it twice does not change.
#[derive(Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// How many tasks the last tidying left.
    tidy_count: usize,
}

impl Waiting {
    /// Adds one more; every so often takes out what is there twice, so that the list stays in
    /// proportion to the tasks in it.
    fn push(&mut self, waker: &Waker) {
        if self.wakers.len() >= TIDY_FROM.max(2 * self.tidy_count) {
            let mut seen = HashSet::with_capacity(self.wakers.len());
            self.wakers.retain(|waker| seen.insert(waker.data()));
            self.tidy_count = self.wakers.len();
        }
        self.wakers.push(waker.clone());
    }
}

impl Notify {
    /// A condition nobody waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everybody who waits now.
    pub fn notify_all(&self) {
        self.epoch.set(self.epoch.get() + 1);
        for waker in self.waiting.take().wakers {
            waker.wake();
        }
    }

    /// Completes at the next [`Notify::notify_all`] after this call.
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, since_epoch: self.epoch.get() }
    }
}

/// See [`Notify::notified`].
pub struct Notified<'a> {
    notify: &'a Notify,
    since_epoch: u64,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.notify.epoch.get() != self.since_epoch {
            return Poll::Ready(());
        }
        self.notify.waiting.borrow_mut().push(context.waker());
        Poll::Pending
    }
}

/// A counted resource shared by tasks, such as the global pool of sessions.
pub struct Permits {
    shared: Rc<RefCell<PermitState>>,
}

struct PermitState {
    free: usize,
    next_ticket: u64,
    queue: VecDeque<(u64, Waker)>,
}

impl Permits {
    /// `count` free permits.
    pub fn new(count: usize) -> Self {
        Self {
            shared: Rc::new(RefCell::new(PermitState {
                free: count,
                next_ticket: 0,
                queue: VecDeque::new(),
            })),
        }
    }

    /// Waits for a permit, in order of arrival.
    pub fn acquire(&self) -> Acquire {
        Acquire { shared: self.shared.clone(), ticket: None }
    }

    /// Whether one is had without waiting.
    pub fn is_free(&self) -> bool {
        let state = self.shared.borrow();
        state.free > 0 && state.queue.is_empty()
    }

    /// Permits nobody holds.
    pub fn free(&self) -> usize {
        self.shared.borrow().free
    }
}

impl PermitState {
    fn wake_first(&self) {
        if self.free > 0
            && let Some((_, waker)) = self.queue.front()
        {
            waker.wake_by_ref();
        }
    }
}

/// See [`Permits::acquire`].
pub struct Acquire {
    shared: Rc<RefCell<PermitState>>,
    ticket: Option<u64>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let shared = self.shared.clone();
        let mut state = shared.borrow_mut();
        let my_turn = match self.ticket {
            None => state.queue.is_empty(),
            Some(ticket) => state.queue.front().is_some_and(|(first, _)| *first == ticket),
        };
        if my_turn && state.free > 0 {
            state.free -= 1;
            if self.ticket.take().is_some() {
                state.queue.pop_front();
            }
            state.wake_first();
            return Poll::Ready(Permit { shared: self.shared.clone() });
        }
        match self.ticket {
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.queue.push_back((ticket, context.waker().clone()));
                self.ticket = Some(ticket);
            }
            Some(ticket) => {
                if let Some(place) = state.queue.iter_mut().find(|(queued, _)| *queued == ticket) {
                    place.1 = context.waker().clone();
                }
            }
        }
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.shared.borrow_mut();
            state.queue.retain(|(queued, _)| *queued != ticket);
            state.wake_first();
        }
    }
}

/// A held permit; dropping it frees it.
pub struct Permit {
    shared: Rc<RefCell<PermitState>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shared.borrow_mut();
        state.free += 1;
        state.wake_first();
    }
}

/// What the future gives, or `None` when that takes longer; then it is dropped.
pub async fn within<T>(
    handle: &Handle,
    duration_ns: Nanos,
    future: impl Future<Output = T>,
) -> Option<T> {
    let (mut future, mut sleep) =
        (std::pin::pin!(future), std::pin::pin!(handle.sleep(duration_ns)));
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Completes when the first of two futures does; the other is dropped.
pub async fn either(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    std::future::poll_fn(|context| {
        if first.as_mut().poll(context).is_ready() || second.as_mut().poll(context).is_ready() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await
}
