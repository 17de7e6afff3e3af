//! An open load: arrivals keep their schedule whatever the storage does. Each takes a free session
//! of the run's one pool, or waits for one; either way its response time runs from the time it was
//! due.
//!
//! Two delays are kept apart. *Arrival lag* is the load generator's own: how late an arrival was
//! noticed although nothing held it up. *Pool wait* is the storage's: every session was busy. The
//! first one can make a result doubtful, the second one belongs to it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_MILLISECOND, Nanos, Notify, Permits, Random};
use plimsoll_workload::{Demand, Schedule, Seen};

use super::shared::{Service, Shared};
use crate::RunError;
use crate::spec::SpacingSpec;

/// How often a long wait for the next arrival looks whether anything has changed.
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// Where the arrivals of one workload come in.
pub struct Gate<D, S> {
    shared: Rc<Shared<S>>,
    schedule: RefCell<Schedule>,
    demand: RefCell<D>,
    /// Counts changes of the rate: an arrival drawn before one is not served after it.
    rate_changes: Cell<u64>,
    paused: Cell<bool>,
    open_count: Cell<usize>,
    one_is_done: Notify,
}

impl<D, S> Gate<D, S>
where
    D: Demand<Task = S::Task> + 'static,
    S: Service + 'static,
{
    /// A gate whose schedule begins now.
    pub fn new(
        shared: &Rc<Shared<S>>,
        demand: D,
        gaps: Random,
        per_s: f64,
        spacing: SpacingSpec,
    ) -> Self {
        let schedule = Schedule::new(gaps, spacing.into(), per_s, shared.handle().now());
        Gate {
            shared: shared.clone(),
            schedule: RefCell::new(schedule),
            demand: RefCell::new(demand),
            rate_changes: Cell::new(0),
            paused: Cell::new(false),
            open_count: Cell::new(0),
            one_is_done: Notify::new(),
        }
    }

    /// Another rate from now on.
    pub fn set_rate(&self, per_s: f64) {
        self.schedule.borrow_mut().set_rate(per_s, self.shared.handle().now());
        self.rate_changes.set(self.rate_changes.get() + 1);
        self.paused.set(false);
    }

    /// Another rate from a moment on; what was due before it still arrives.
    pub fn set_rate_at(&self, per_s: f64, at: Nanos) {
        self.schedule.borrow_mut().set_rate_at(per_s, at);
    }

    /// Nothing arrives until the next [`Gate::set_rate`].
    pub fn pause(&self) {
        self.rate_changes.set(self.rate_changes.get() + 1);
        self.paused.set(true);
    }

    /// Tasks that have arrived and are not complete.
    pub fn open_count(&self) -> usize {
        self.open_count.get()
    }

    /// Lets arrivals in until the load is no longer wanted or nothing more is asked for, then waits
    /// until the last one is complete.
    ///
    /// # Errors
    /// The first error that a task met.
    pub async fn work(self: Rc<Self>, pool: Rc<Permits>) -> Result<(), RunError> {
        let mut held_up_until = 0;
        while self.shared.wanted() {
            if self.paused.get() {
                self.shared.handle().sleep(NANOS_PER_MILLISECOND).await;
                continue;
            }
            let intended = self.schedule.borrow_mut().next_due();
            let Some(step) = self.demand.borrow_mut().next(intended, None) else {
                break;
            };
            if !self.is_due(intended).await {
                continue;
            }
            let due = intended.max(held_up_until);
            let lag = self.shared.handle().now().saturating_sub(due);
            self.shared.record("arrival_lag", lag);
            if let Some(until) = self.let_in(&pool, step.task, intended).await {
                held_up_until = until;
            }
        }
        while self.open_count.get() > 0 {
            self.one_is_done.notified().await;
        }
        self.shared.failure().map_or(Ok(()), Err)
    }

    /// Waits until an arrival is due; false when the rate has changed or the load ended before.
    async fn is_due(&self, intended: Nanos) -> bool {
        let handle = self.shared.handle();
        let changes = self.rate_changes.get();
        loop {
            if !self.shared.wanted() || self.rate_changes.get() != changes {
                return false;
            }
            let now = handle.now();
            if now >= intended {
                return true;
            }
            handle.sleep_until(intended.min(now + LOOK_EVERY_NS)).await;
        }
    }

    /// Gives an arrival a session; returns when one became free, if it had to wait.
    async fn let_in(
        self: &Rc<Self>,
        pool: &Permits,
        task: S::Task,
        intended: Nanos,
    ) -> Option<Nanos> {
        let handle = self.shared.handle();
        let full = pool.free() == 0;
        let asked = handle.now();
        let permit = pool.acquire().await;
        let waited_until = full.then(|| handle.now());
        if let Some(until) = waited_until {
            self.shared.record("pool_wait", until - asked);
        }
        self.open_count.set(self.open_count.get() + 1);
        let gate = self.clone();
        handle.spawn(async move {
            if let Err(error) = gate.arrival(task, intended).await {
                gate.shared.fail(&error);
            }
            gate.open_count.set(gate.open_count.get() - 1);
            gate.one_is_done.notify_all();
            drop(permit);
        });
        waited_until
    }

    /// One arrival. A task that came to nothing is followed by another, still counted from the time
    /// the arrival was due.
    async fn arrival(&self, mut task: S::Task, intended: Nanos) -> Result<(), RunError> {
        loop {
            let (done, finished) = self.shared.carry_out(&task, intended).await?;
            if done.is_final() || !self.shared.wanted() {
                return Ok(());
            }
            let seen = Seen { intended, finished, task: &task, done };
            let next = self.demand.borrow_mut().next(finished, Some(seen));
            match next {
                Some(step) => task = step.task,
                None => return Ok(()),
            }
        }
    }
}
