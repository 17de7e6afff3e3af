//! A few threads that take jobs in order and publish results. Used for everything that can only be
//! done by blocking: names, free space, file syncs, and all transfers of the `threads` method.
//!
//! Signals are blocked in the workers: they belong to the main thread, and a worker's system call
//! must not be cut short.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Wakeup;

/// A worker's stack: the deepest thing it does is a system call and building an error text.
const STACK_BYTES: usize = 256 * 1024;

struct Board<J, R> {
    jobs: Mutex<Jobs<J>>,
    posted: Condvar,
    idle: Condvar,
    results: Mutex<Vec<R>>,
    results_count: AtomicUsize,
}

struct Jobs<J> {
    queue: VecDeque<J>,
    waiting_workers: usize,
    running: usize,
    closed: bool,
}

impl<J, R> Board<J, R> {
    fn jobs(&self) -> MutexGuard<'_, Jobs<J>> {
        self.jobs.lock().expect("no panic happens under this lock")
    }

    fn next(&self) -> Option<J> {
        let mut jobs = self.jobs();
        loop {
            if let Some(job) = jobs.queue.pop_front() {
                jobs.running += 1;
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            jobs.waiting_workers += 1;
            jobs = self.posted.wait(jobs).expect("no panic happens under this lock");
            jobs.waiting_workers -= 1;
        }
    }

    fn publish(&self, result: R) {
        let mut results = self.results.lock().expect("no panic happens under this lock");
        results.push(result);
        self.results_count.store(results.len(), Ordering::SeqCst);
    }

    fn job_ended(&self) {
        let mut jobs = self.jobs();
        jobs.running -= 1;
        if jobs.closed && jobs.running == 0 && jobs.queue.is_empty() {
            self.idle.notify_all();
        }
    }
}

/// See the module text.
pub(crate) struct Crew<J, R> {
    board: Arc<Board<J, R>>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    name: &'static str,
    wakeup: Arc<Wakeup>,
    work: fn(J) -> R,
}

impl<J: Send + 'static, R: Send + 'static> Crew<J, R> {
    /// A crew of at most `threads_max` workers, started as they are needed. One worker means strict
    /// order.
    pub(crate) fn new(
        name: &'static str,
        threads_max: usize,
        wakeup: Arc<Wakeup>,
        work: fn(J) -> R,
    ) -> Self {
        Self {
            board: Arc::new(Board {
                jobs: Mutex::new(Jobs {
                    queue: VecDeque::new(),
                    waiting_workers: 0,
                    running: 0,
                    closed: false,
                }),
                posted: Condvar::new(),
                idle: Condvar::new(),
                results: Mutex::new(Vec::new()),
                results_count: AtomicUsize::new(0),
            }),
            threads: Vec::new(),
            threads_max,
            name,
            wakeup,
            work,
        }
    }

    /// Hands a job to the crew.
    pub(crate) fn push(&mut self, job: J) {
        let short_handed = {
            let mut jobs = self.board.jobs();
            jobs.queue.push_back(job);
            jobs.queue.len() > jobs.waiting_workers
        };
        if short_handed && self.threads.len() < self.threads_max {
            self.start_worker();
        }
        self.board.posted.notify_one();
    }

    fn start_worker(&mut self) {
        let board = self.board.clone();
        let wakeup = self.wakeup.clone();
        let work = self.work;
        let worker = std::thread::Builder::new()
            .name(self.name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                block_signals();
                while let Some(job) = board.next() {
                    board.publish(work(job));
                    wakeup.ring();
                    board.job_ended();
                }
            });
        match worker {
            Ok(thread) => self.threads.push(thread),
            // With one worker or more the jobs are done all the same, only later.
            Err(error) => {
                assert!(!self.threads.is_empty(), "cannot start a single I/O thread: {error}")
            }
        }
    }

    /// Whether results are waiting: one load from memory.
    pub(crate) fn ready(&self) -> bool {
        self.board.results_count.load(Ordering::SeqCst) != 0
    }

    /// Moves all waiting results to `into`.
    pub(crate) fn take(&self, into: &mut Vec<R>) {
        let mut results = self.board.results.lock().expect("no panic happens under this lock");
        into.append(&mut results);
        self.board.results_count.store(0, Ordering::SeqCst);
    }

    /// Lets the queued jobs end and joins the workers, or abandons workers that hang for longer
    /// than `patience`. Returns whether all jobs have ended.
    pub(crate) fn finish(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut jobs = self.board.jobs();
        jobs.closed = true;
        self.board.posted.notify_all();
        while jobs.running > 0 || !jobs.queue.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            jobs = self
                .board
                .idle
                .wait_timeout(jobs, left)
                .expect("no panic happens under this lock")
                .0;
        }
        drop(jobs);
        for thread in self.threads.drain(..) {
            thread.join().expect("a worker does not panic");
        }
        true
    }
}

/// Leaves all signals to the main thread.
pub(crate) fn block_signals() {
    // SAFETY: the set is initialised by sigfillset before it is used, and both calls only touch
    // this thread.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}
