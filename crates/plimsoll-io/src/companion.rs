//! A thread for what cannot wait on the executor: clients that block, or that bring a reactor of
//! their own.
//!
//! The worker is made on its thread and never leaves it, so it need not be `Send`. Operations are
//! done one after the other, in the order of the calls. The end of each is stamped on the thread,
//! on the executor's own scale: the way back to the task is not part of a response time. The way
//! out to the thread is, because it lies before the operation.
//!
//! Each call costs two thread switches. So a call holds a whole operation, never one of its
//! statements.
//!
//! Limit: an operation that hangs cannot be ended from outside. Its companion is abandoned, with
//! the thread, when it is dropped.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock::ThreadClock;
use crate::executor::{Outside, reply};
use crate::posix::block_signals;
use crate::{Handle, NANOS_PER_SECOND, Nanos};

/// How long dropping a companion waits for the operation under way.
const DROP_PATIENCE_NS: Nanos = 10 * NANOS_PER_SECOND;
/// How often it looks meanwhile.
const LOOK_NS: Nanos = NANOS_PER_SECOND / 1000;

type Job<W> = Box<dyn FnOnce(&mut W) + Send>;
type Panic = Box<dyn Any + Send>;

/// Why there is no companion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompanionError {
    /// A thread lives in real time only.
    #[error(
        "{name} needs a thread of its own, which has no place in virtual time; run it without a \
         modelled array"
    )]
    VirtualTime {
        /// What the thread was to be called.
        name: String,
    },
    /// The system starts no thread.
    #[error(
        "no thread could be started for {name}: {reason}; raise the limit of threads (`ulimit -u`)"
    )]
    NoThread {
        /// What the thread was to be called.
        name: String,
        /// What the system said.
        reason: String,
    },
}

/// See the module text.
///
/// ```
/// use plimsoll_io::*;
/// use std::rc::Rc;
///
/// let clock = Rc::new(Clock::real());
/// let disk = RealDisk::open(RealDiskOptions::default(), clock.clone()).unwrap();
/// let executor = Executor::new(clock, disk);
/// let counter = Companion::new(&executor.handle(), "counter", || 40).unwrap();
/// let (value, finished) = executor.run(async move { counter.call(|count| *count + 2).await }).unwrap();
/// assert_eq!(value, 42);
/// assert!(finished <= executor.handle().now());
/// ```
pub struct Companion<W> {
    jobs: Option<Sender<Job<W>>>,
    thread: Option<JoinHandle<()>>,
    clock: ThreadClock,
    outside: Outside,
}

impl<W: 'static> Companion<W> {
    /// Starts the thread, and there makes the worker.
    ///
    /// # Errors
    /// In virtual time, and when the system starts no thread.
    pub fn new(
        handle: &Handle,
        name: &str,
        make: impl FnOnce() -> W + Send + 'static,
    ) -> Result<Self, CompanionError> {
        let clock = handle
            .clock()
            .for_threads()
            .ok_or_else(|| CompanionError::VirtualTime { name: name.to_owned() })?;
        let (jobs, received) = channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(make, &received))
            .map_err(|error| CompanionError::NoThread {
                name: name.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), clock, outside: handle.outside() })
    }

    /// Does an operation on the thread; answers its value and when it ended. An operation whose
    /// future is dropped before its turn is not begun; one that has begun goes on to its end.
    ///
    /// # Panics
    /// When the operation or the making of the worker panicked: that panic goes on here.
    pub fn call<T, F>(&self, operation: F) -> impl Future<Output = (T, Nanos)> + use<T, F, W>
    where
        T: Send + 'static,
        F: FnOnce(&mut W) -> T + Send + 'static,
    {
        let (replier, reply) = reply::<Result<(T, Nanos), Panic>>(&self.outside);
        let clock = self.clock;
        let job: Job<W> = Box::new(move |worker| {
            if !replier.is_abandoned() {
                let value = catch_unwind(AssertUnwindSafe(|| operation(worker)));
                replier.send(value.map(|value| (value, clock.now())));
            }
        });
        if let Some(jobs) = &self.jobs {
            // A thread that is gone drops the job, and with it the replier.
            let _ = jobs.send(job);
        }
        async move {
            match reply.await.expect("the companion's worker could not be made") {
                Ok(answer) => answer,
                Err(panic) => resume_unwind(panic),
            }
        }
    }
}

fn work<W>(make: impl FnOnce() -> W, jobs: &Receiver<Job<W>>) {
    block_signals();
    let mut worker = make();
    while let Ok(job) = jobs.recv() {
        job(&mut worker);
    }
}

impl<W> Drop for Companion<W> {
    /// Waits a while for the operations that somebody still awaits; the worker is dropped on its
    /// thread.
    fn drop(&mut self) {
        self.jobs = None;
        let deadline = Instant::now() + Duration::from_nanos(DROP_PATIENCE_NS);
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_nanos(LOOK_NS));
            }
            if thread.is_finished() {
                // A panic was handed on to whoever called.
                let _ = thread.join();
            }
        }
    }
}
