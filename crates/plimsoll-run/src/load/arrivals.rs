//! An open load: arrivals keep their schedule whatever the storage does. Each takes a free session of the run's one pool,
//! or waits for one; either way its response time runs from the time it was due.
//!
//! Two delays are kept apart. *Arrival lag* is the load generator's own: how late an arrival was noticed although nothing
//! held it up. *Pool wait* is the storage's: every session was busy. The first one can make a result doubtful, the second
//! one belongs to it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{Handle, NANOS_PER_MILLISECOND, Nanos, Notify, Permits, Random};
use plimsoll_workload::{Arrivals, Previous, Result as OperationResult, Step};

use super::{LoadPlace, Shared};
use crate::RunError;
use crate::recorder::Key;
use crate::spec::{SpacingSpec, WorkloadSpec};

/// How often a long wait for the next arrival looks whether anything has changed.
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;

/// Where the arrivals of one workload come in.
pub struct Gate {
    shared: Rc<Shared>,
    arrivals: RefCell<Arrivals>,
    choice: RefCell<Random>,
    /// Counts changes of the rate: an arrival drawn before one is not served after it.
    rate_changes: Cell<u64>,
    paused: Cell<bool>,
    open_count: Cell<usize>,
    one_is_done: Notify,
}

impl Gate {
    /// A gate whose schedule begins now.
    pub fn new(
        shared: &Rc<Shared>,
        spec: &WorkloadSpec,
        per_s: f64,
        spacing: SpacingSpec,
        random: &Random,
    ) -> Gate {
        let now = shared.run.handle.now();
        let arrivals = Arrivals::new(
            &random.child("arrivals"),
            spec.habits(),
            spacing.into(),
            per_s,
            now,
        );
        Gate {
            shared: shared.clone(),
            arrivals: RefCell::new(arrivals),
            choice: RefCell::new(random.child("arrivals place")),
            rate_changes: Cell::new(0),
            paused: Cell::new(false),
            open_count: Cell::new(0),
            one_is_done: Notify::new(),
        }
    }

    /// Another rate from now on.
    pub fn set_rate(&self, per_s: f64) {
        self.arrivals.borrow_mut().set_rate(per_s, self.handle().now());
        self.rate_changes.set(self.rate_changes.get() + 1);
        self.paused.set(false);
    }

    /// Nothing arrives until the next [`Gate::set_rate`].
    pub fn pause(&self) {
        self.rate_changes.set(self.rate_changes.get() + 1);
        self.paused.set(true);
    }

    /// Transactions that have arrived and are not complete.
    pub fn open_count(&self) -> usize {
        self.open_count.get()
    }

    fn handle(&self) -> &Handle {
        &self.shared.run.handle
    }

    /// Lets arrivals in until the load is no longer wanted, then waits until the last one is complete.
    ///
    /// # Errors
    /// The first error that a transaction met.
    pub async fn work(self: Rc<Self>, pool: Rc<Permits>) -> Result<(), RunError> {
        let mut held_up_until = 0;
        while self.shared.wanted() {
            if self.paused.get() {
                self.handle().sleep(NANOS_PER_MILLISECOND).await;
                continue;
            }
            let place = self.draw_place();
            let step = self
                .arrivals
                .borrow_mut()
                .next(&mut place.population.borrow_mut(), None);
            if !self.is_due(step.intended).await {
                continue;
            }
            let due = step.intended.max(held_up_until);
            self.record("arrival_lag", self.handle().now().saturating_sub(due));
            if let Some(until) = self.let_in(&pool, place, step).await {
                held_up_until = until;
            }
        }
        while self.open_count.get() > 0 {
            self.one_is_done.notified().await;
        }
        self.shared.failed.borrow().clone().map_or(Ok(()), Err)
    }

    /// Waits until an arrival is due; false when the rate has changed or the load ended before.
    async fn is_due(&self, intended: Nanos) -> bool {
        let changes = self.rate_changes.get();
        loop {
            if !self.shared.wanted() || self.rate_changes.get() != changes {
                return false;
            }
            let now = self.handle().now();
            if now >= intended {
                return true;
            }
            self.handle().sleep_until(intended.min(now + LOOK_EVERY_NS)).await;
        }
    }

    /// Gives an arrival a session; returns when one became free, if it had to wait.
    async fn let_in(self: &Rc<Self>, pool: &Permits, place: LoadPlace, step: Step) -> Option<Nanos> {
        let full = pool.free() == 0;
        let asked = self.handle().now();
        let permit = pool.acquire().await;
        let waited_until = full.then(|| self.handle().now());
        if let Some(until) = waited_until {
            self.record("pool_wait", until - asked);
        }
        self.open_count.set(self.open_count.get() + 1);
        let gate = self.clone();
        self.handle().spawn(async move {
            if let Err(error) = gate.transaction(place, step).await {
                gate.shared.fail(&error);
            }
            gate.open_count.set(gate.open_count.get() - 1);
            gate.one_is_done.notify_all();
            drop(permit);
        });
        waited_until
    }

    async fn transaction(&self, place: LoadPlace, mut step: Step) -> Result<(), RunError> {
        loop {
            self.shared.run.processors.transaction(self.handle()).await;
            let result = place.backend.execute(place.database, &step.operation).await?;
            let finished = self.handle().now();
            let response_ns = finished.saturating_sub(step.intended);
            self.shared.record(&place, &step.operation, result, response_ns);
            if result == OperationResult::Done || !self.shared.wanted() {
                return Ok(());
            }
            let previous = Previous {
                intended: step.intended,
                finished,
                operation: step.operation,
                result,
            };
            let mut population = place.population.borrow_mut();
            step = self.arrivals.borrow_mut().next(&mut population, Some(previous));
        }
    }

    fn draw_place(&self) -> LoadPlace {
        let places = &self.shared.places;
        let chosen = super::draw(places, &mut self.choice.borrow_mut());
        places[chosen].clone()
    }

    fn record(&self, metric: &str, latency_ns: Nanos) {
        let key = Key::new(0, 0, metric).of_workload(self.shared.workload);
        self.shared.run.recorder.record(key, latency_ns);
    }
}
