//! A single-threaded executor: tasks, timers, and the disk's completions reaped before every task
//! poll.
//!
//! Tasks run first come, first served. In virtual time the executor moves the clock to the next
//! timer or completion when no task is ready, so a run is a pure function of its inputs. In real
//! time it sleeps in [`Disk::wait`].
//!
//! One executor hosts any number of engine instances. Nothing here is shared between threads but
//! the ready queue: what another thread wakes ends the executor's sleep.

mod inbox;
mod ready;
mod reply;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use plimsoll_measure::Histogram;

pub use self::inbox::{Inbox, InboxSender, inbox};
pub(crate) use self::ready::{Awaited, Outside};
use self::ready::{ReadyQueue, TaskId, TaskWaker};
pub(crate) use self::reply::reply;
use crate::host::thread_busy_ns;
use crate::{Clock, Disk, Nanos};

/// How long a task runs before it lets others run when it is asked to breathe: well below what one
/// poll may take, because what comes next takes time too.
const BREATH_NS: Nanos = 20_000;

type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    future: Option<TaskFuture>,
    waker: Arc<TaskWaker>,
}

struct Shared {
    clock: Rc<Clock>,
    disk: Rc<dyn Disk>,
    ready: Arc<ReadyQueue>,
    tasks: RefCell<BTreeMap<TaskId, Task>>,
    next_task: Cell<TaskId>,
    timers: RefCell<BinaryHeap<Reverse<(Nanos, u64)>>>,
    timer_wakers: RefCell<BTreeMap<u64, Waker>>,
    next_timer: Cell<u64>,
    poll_started: Cell<Nanos>,
    statistics: RefCell<ExecutorStatistics>,
    /// When the disk's completions were last looked at, in real time.
    looked: Cell<Nanos>,
    /// Whether the next look is the first one after a sleep: then nothing waited for it.
    woken: Cell<bool>,
    /// How long the thread had been inside the kernel at the last look.
    inside_kernel_ns: Cell<Nanos>,
    /// What the thread had been busy when statistics were last taken.
    busy_before_ns: Cell<Nanos>,
}

/// How the executor itself did: without this nobody can tell a slow disk from a busy generator.
#[derive(Clone, Debug, Default)]
pub struct ExecutorStatistics {
    /// Time between two looks at the completions of disk and sockets without a sleep in between:
    /// whatever completed meanwhile waited. A thread that lost its processor is late as much as one
    /// that was at work. What the kernel took to take operations over is its own, and left out.
    pub reap_gap: Histogram,
    /// Task polls.
    pub polls: u64,
    /// Longest single poll.
    pub poll_ns_max: Nanos,
    /// Processor time of the thread, and what it waited for a processor. A thread that the kernel
    /// holds while it hands operations over is not busy. Nothing in virtual time.
    pub busy_ns: Nanos,
}

/// All tasks wait and nothing will ever wake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "every task waits and nothing can wake one: no timer, disk completion, socket or thread is \
     due; the simulated power may be off"
)]
pub struct Stalled;

/// See the module text.
pub struct Executor {
    shared: Rc<Shared>,
}

impl Executor {
    /// An executor over one clock and one disk.
    pub fn new(clock: Rc<Clock>, disk: Rc<dyn Disk>) -> Self {
        let looked = Cell::new(clock.now());
        let ready = Arc::new(ReadyQueue::new(disk.waker()));
        Self {
            shared: Rc::new(Shared {
                looked,
                inside_kernel_ns: Cell::new(disk.inside_kernel_ns()),
                busy_before_ns: Cell::new(if clock.is_virtual() { 0 } else { thread_busy_ns() }),
                woken: Cell::new(true),
                clock,
                disk,
                ready,
                tasks: RefCell::default(),
                next_task: Cell::new(0),
                timers: RefCell::default(),
                timer_wakers: RefCell::default(),
                next_timer: Cell::new(0),
                poll_started: Cell::new(0),
                statistics: RefCell::default(),
            }),
        }
    }

    /// What tasks use to spawn, sleep and read the clock.
    pub fn handle(&self) -> Handle {
        Handle { shared: Rc::downgrade(&self.shared), clock: self.shared.clock.clone() }
    }

    /// Statistics since the last call.
    pub fn take_statistics(&self) -> ExecutorStatistics {
        self.shared.take_statistics()
    }

    /// Runs until `future` is complete; other tasks stay as they are.
    ///
    /// # Errors
    /// [`Stalled`] when in virtual time nothing can ever happen again.
    pub fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Result<T, Stalled> {
        let join = self.handle().spawn(future);
        while !join.is_finished() {
            self.turn()?;
        }
        Ok(join.take().expect("the task has just finished"))
    }

    /// Does one step: reap, then poll one ready task, or else wait for time, disk or whoever else
    /// wakes a task.
    fn turn(&self) -> Result<(), Stalled> {
        let shared = &self.shared;
        shared.note_look();
        shared.disk.reap();
        shared.fire_timers();
        if let Some(id) = shared.ready.pop() {
            shared.poll_task(id);
            return Ok(());
        }
        shared.idle()
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Tasks hold handles and engine state that may point back here: free them while everything
        // still stands.
        loop {
            let tasks = std::mem::take(&mut *self.shared.tasks.borrow_mut());
            if tasks.is_empty() {
                break;
            }
        }
    }
}

impl Shared {
    fn poll_task(&self, id: TaskId) {
        let (mut future, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let Some(task) = tasks.get_mut(&id) else {
                return;
            };
            task.waker.queued.store(false, Ordering::Release);
            let Some(future) = task.future.take() else {
                return;
            };
            (future, task.waker.clone())
        };
        let started = self.clock.now();
        self.poll_started.set(started);
        let waker = Waker::from(waker);
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        self.note_poll(self.clock.now() - started);
        if poll.is_pending() {
            if let Some(task) = self.tasks.borrow_mut().get_mut(&id) {
                task.future = Some(future);
            }
        } else {
            let finished = self.tasks.borrow_mut().remove(&id);
            drop(finished);
        }
    }

    fn note_poll(&self, poll_ns: Nanos) {
        let mut statistics = self.statistics.borrow_mut();
        statistics.polls += 1;
        statistics.poll_ns_max = statistics.poll_ns_max.max(poll_ns);
    }

    /// Notes how long completions may have waited for this look. In virtual time nothing takes any.
    fn note_look(&self) {
        if self.clock.is_virtual() {
            return;
        }
        let now = self.clock.now();
        let gap_ns = now - self.looked.replace(now);
        let inside_ns = self.disk.inside_kernel_ns();
        let held_ns = inside_ns - self.inside_kernel_ns.replace(inside_ns);
        if !self.woken.replace(false) {
            let mut statistics = self.statistics.borrow_mut();
            statistics.reap_gap.record(gap_ns.saturating_sub(held_ns));
        }
    }

    fn take_statistics(&self) -> ExecutorStatistics {
        let mut statistics = self.statistics.take();
        if !self.clock.is_virtual() {
            let busy_ns = thread_busy_ns();
            statistics.busy_ns = busy_ns.saturating_sub(self.busy_before_ns.replace(busy_ns));
        }
        statistics
    }

    fn fire_timers(&self) {
        if self.timers.borrow().is_empty() {
            return;
        }
        let now = self.clock.now();
        loop {
            let id = match self.timers.borrow().peek() {
                Some(Reverse((due, id))) if *due <= now => *id,
                _ => return,
            };
            self.timers.borrow_mut().pop();
            let waker = self.timer_wakers.borrow_mut().remove(&id);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn next_timer_due(&self) -> Option<Nanos> {
        let mut timers = self.timers.borrow_mut();
        while let Some(Reverse((due, id))) = timers.peek() {
            // Timers whose sleeper was dropped must not hold virtual time back.
            if self.timer_wakers.borrow().contains_key(id) {
                return Some(*due);
            }
            timers.pop();
        }
        None
    }

    fn idle(&self) -> Result<(), Stalled> {
        let timer = self.next_timer_due();
        if self.clock.is_virtual() {
            let event = self.disk.next_event();
            let next = [timer, event].into_iter().flatten().min().ok_or(Stalled)?;
            self.clock.advance_to(next.max(self.clock.now()));
        } else {
            self.ready.announce_sleep();
            let is_awaited =
                timer.is_some() || self.disk.in_flight() > 0 || self.ready.is_awaited();
            let is_idle = self.ready.is_empty();
            if is_idle && is_awaited {
                self.sleep(timer);
            }
            self.ready.end_sleep();
            if is_idle && !is_awaited {
                return Err(Stalled);
            }
        }
        Ok(())
    }

    fn sleep(&self, timer: Option<Nanos>) {
        self.disk.wait(timer);
        self.looked.set(self.clock.now());
        self.woken.set(true);
    }
}

/// A task's view of its executor. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Weak<Shared>,
    clock: Rc<Clock>,
}

impl Handle {
    fn shared(&self) -> Rc<Shared> {
        self.shared.upgrade().expect("tasks do not outlive their executor")
    }

    /// Counts what is awaited from other threads and from the network.
    pub(crate) fn outside(&self) -> Outside {
        Outside::of(&self.shared().ready)
    }

    /// The clock.
    pub fn clock(&self) -> &Rc<Clock> {
        &self.clock
    }

    /// Nanoseconds since the clock's epoch.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Statistics since the last call.
    pub fn take_statistics(&self) -> ExecutorStatistics {
        self.shared().take_statistics()
    }

    /// Starts a task. Dropping the returned handle lets it run on by itself. After the executor is
    /// gone nothing is started.
    pub fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        let state = Rc::new(RefCell::new(JoinState { value: None, waker: None, finished: false }));
        let Some(shared) = self.shared.upgrade() else {
            return JoinHandle { state };
        };
        let filled = state.clone();
        let id = shared.next_task.get();
        shared.next_task.set(id + 1);
        let future: TaskFuture = Box::pin(async move {
            let value = future.await;
            let mut state = filled.borrow_mut();
            state.value = Some(value);
            state.finished = true;
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        });
        let waker =
            Arc::new(TaskWaker { id, ready: shared.ready.clone(), queued: AtomicBool::new(true) });
        shared.tasks.borrow_mut().insert(id, Task { future: Some(future), waker });
        shared.ready.push(id);
        JoinHandle { state }
    }

    /// Sleeps until the clock shows `deadline`.
    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep { handle: self.clone(), deadline, timer: None }
    }

    /// Sleeps for a while.
    pub fn sleep(&self, duration_ns: Nanos) -> Sleep {
        self.sleep_until(self.now() + duration_ns)
    }

    /// Lets others run if this task has been running for a while; for loops that may go on for long
    /// without waiting. In virtual time a task takes no time at all, so that nothing happens.
    pub async fn breathe(&self) {
        let long_ago =
            |shared: Rc<Shared>| self.now().saturating_sub(shared.poll_started.get()) >= BREATH_NS;
        if !self.clock.is_virtual() && self.shared.upgrade().is_some_and(long_ago) {
            self.yield_now().await;
        }
    }

    /// Lets every other ready task run once.
    pub fn yield_now(&self) -> Yield {
        Yield { yielded: false }
    }
}

/// See [`Handle::sleep_until`].
pub struct Sleep {
    handle: Handle,
    deadline: Nanos,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.handle.now() >= self.deadline {
            return Poll::Ready(());
        }
        let shared = self.handle.shared();
        let id = match self.timer {
            Some(id) => id,
            None => {
                let id = shared.next_timer.get();
                shared.next_timer.set(id + 1);
                shared.timers.borrow_mut().push(Reverse((self.deadline, id)));
                self.timer = Some(id);
                id
            }
        };
        shared.timer_wakers.borrow_mut().insert(id, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(id), Some(shared)) = (self.timer, self.handle.shared.upgrade()) {
            shared.timer_wakers.borrow_mut().remove(&id);
        }
    }
}

/// See [`Handle::yield_now`].
pub struct Yield {
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

struct JoinState<T> {
    value: Option<T>,
    waker: Option<Waker>,
    finished: bool,
}

/// The result of a task, to be awaited.
pub struct JoinHandle<T> {
    state: Rc<RefCell<JoinState<T>>>,
}

impl<T> JoinHandle<T> {
    /// Whether the task has finished.
    pub fn is_finished(&self) -> bool {
        self.state.borrow().finished
    }

    /// The value, once.
    pub fn take(&self) -> Option<T> {
        self.state.borrow_mut().value.take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state.borrow_mut();
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
