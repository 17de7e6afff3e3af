//! Who is told of what becomes durable, and what waits for each of them. See [`tap`](super::tap).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use plimsoll_io::Notify;

use super::Lsn;
use super::run::LogRun;

/// What a subscriber is told.
#[derive(Clone, Debug)]
pub enum Told {
    /// The next run of log.
    Run(Rc<LogRun>),
    /// It was too slow: what lies between these places is in the files only. What is told next
    /// begins at `upto`.
    Lagged {
        /// The end of what it was told.
        from: Lsn,
        /// Durable when it was told so.
        upto: Lsn,
    },
}

/// What waits for one subscriber.
pub(super) struct Queue {
    runs: RefCell<VecDeque<Rc<LogRun>>>,
    bytes: Cell<usize>,
    bytes_max: usize,
    lagged_from: Cell<Option<Lsn>>,
}

impl Queue {
    /// Bytes of log in it.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn push(&self, run: &Rc<LogRun>) {
        let bytes = self.bytes.get() + run.bytes();
        if self.lagged_from.get().is_some() {
            return;
        }
        if bytes > self.bytes_max {
            self.lagged_from.set(Some(run.from));
            return;
        }
        self.bytes.set(bytes);
        self.runs.borrow_mut().push_back(run.clone());
    }

    /// What comes next; who has lagged goes on from what is durable now.
    pub(super) fn pop(&self, durable: Lsn) -> Option<Told> {
        let run = self.runs.borrow_mut().pop_front();
        if let Some(run) = run {
            self.bytes.set(self.bytes.get() - run.bytes());
            return Some(Told::Run(run));
        }
        let from = self.lagged_from.take()?;
        Some(Told::Lagged { from, upto: durable })
    }
}

/// All subscribers of a log.
#[derive(Default)]
pub(super) struct Subscribers {
    queues: RefCell<Vec<Weak<Queue>>>,
    told: Notify,
}

impl Subscribers {
    /// A queue of at most `bytes_max` bytes for what is told from now on.
    pub(super) fn add(&self, bytes_max: usize) -> Rc<Queue> {
        let queue = Rc::new(Queue {
            runs: RefCell::default(),
            bytes: Cell::new(0),
            bytes_max,
            lagged_from: Cell::new(None),
        });
        self.queues.borrow_mut().push(Rc::downgrade(&queue));
        queue
    }

    /// Whether anybody wants to be told.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.borrow_mut().retain(|queue| queue.strong_count() > 0);
        self.queues.borrow().is_empty()
    }

    /// Tells everybody what is durable now.
    pub(super) fn publish(&self, run: LogRun) {
        let run = Rc::new(run);
        for queue in self.queues.borrow().iter().filter_map(Weak::upgrade) {
            queue.push(&run);
        }
        self.told.notify_all();
    }

    /// Until somebody is told something, or woken.
    pub(super) fn told(&self) -> impl Future<Output = ()> + '_ {
        self.told.notified()
    }

    /// Wakes all: the log has failed, or nobody writes it any more.
    pub(super) fn wake(&self) {
        self.told.notify_all();
    }
}
