//! Loads at work, the same for every workload family. Sessions do one task after the other;
//! arrivals come by a schedule and take a free session of the pool that all arrival loads of a run
//! share. Either way a demand says what is to be done and when, a service carries it out, and the
//! response time is recorded from the intended start.

mod arrivals;
mod pair;
mod sessions;
mod shared;
mod words;

use std::collections::VecDeque;
use std::rc::Rc;

use plimsoll_io::{JoinHandle, Nanos, Permits, Random};
use plimsoll_workload::Demand;

use crate::RunError;
use crate::backend::{Backend, Work};
use crate::context::RunContext;
use crate::events::Level;
use crate::recorder::Key;
use crate::spec::{LoadSpec, SpacingSpec, WorkloadSpec};

use arrivals::Gate;
pub use pair::{LoadInstance, Pair};
use shared::Shared;
pub use shared::{Book, Label, Service};
pub(crate) use words::rate_in_words;

/// What a workload presses with at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drive {
    /// Sessions, for each database or as one pool.
    Sessions { count: u32, shared: bool },
    /// Arrivals at this rate.
    Arrivals { per_s: f64, spacing: SpacingSpec },
}

impl Drive {
    /// How a load starts, before anything about it was measured. A search warms up with sessions.
    pub fn first(spec: &LoadSpec) -> Drive {
        match spec {
            LoadSpec::Sessions(spec) => {
                Drive::Sessions { count: spec.sessions, shared: spec.shared }
            }
            LoadSpec::Search(spec) => Drive::Sessions { count: spec.sessions, shared: spec.shared },
            LoadSpec::Rate(spec) => {
                Drive::Arrivals { per_s: spec.transactions_per_s, spacing: spec.spacing }
            }
            LoadSpec::TargetIops(spec) => Drive::Arrivals {
                per_s: spec.target_iops / spec.io_per_transaction_assumed,
                spacing: spec.spacing,
            },
        }
    }
}

/// A workload that is running, of any family.
pub trait RunningLoad {
    /// Position of the workload in the plan.
    fn workload(&self) -> usize;

    /// Lets arrivals come at another rate from now on.
    fn set_rate(&self, per_s: f64);

    /// Lets arrivals come at another rate from a moment on, in the order of such moments; what was
    /// due before it still arrives.
    fn set_rate_at(&self, per_s: f64, at: Nanos);

    /// Notes the rate that is offered from now on.
    fn note_rate(&self, per_s: f64);

    /// Lets nothing more arrive until the next [`RunningLoad::set_rate`].
    fn pause(&self);

    /// Tasks that have arrived and are not complete.
    fn open_count(&self) -> usize;

    /// The error that ended a session, if one did.
    fn failure(&self) -> Option<RunError>;

    /// Stops all sessions after their current tasks; the first error that one of them met is
    /// returned. Whoever gives up waiting may ask again: sessions that have ended are known.
    fn stop(&mut self) -> Work<'_, Result<(), RunError>>;
}

/// A load that is to be started.
pub struct LoadStart<'a> {
    /// Where it runs.
    pub run: &'a RunContext,
    /// Position of the workload in the plan.
    pub number: usize,
    /// The workload.
    pub spec: &'a WorkloadSpec,
    /// What it presses with.
    pub drive: Drive,
    /// The instances it works on.
    pub instances: Vec<LoadInstance>,
    /// Decides what it does.
    pub random: Random,
    /// The sessions that all arrivals share.
    pub pool: Rc<Permits>,
    /// How many these are.
    pub sessions_max: u32,
}

impl LoadStart<'_> {
    /// What stands behind an instance, as its family knows it; `what` names what the load needs,
    /// such as "files".
    ///
    /// # Errors
    /// When the instance holds something else.
    pub fn backend_of<B: Backend>(
        &self,
        instance: &LoadInstance,
        what: &str,
    ) -> Result<Rc<B>, RunError> {
        let found = instance.backend.clone().into_any().downcast::<B>();
        found.map_err(|_| self.holds_no(instance, what))
    }

    /// What is said of an instance that does not hold what the load needs.
    pub fn holds_no(&self, instance: &LoadInstance, what: &str) -> RunError {
        RunError::Spec(format!(
            "workload {} works on {what}, which instance {} of the plan does not hold",
            self.spec.name, instance.number
        ))
    }

    /// Starts the load of a pair.
    pub fn start<P: Pair>(self, pair: P) -> Box<dyn RunningLoad> {
        let what = pair.description();
        let (load, how) = match self.drive {
            Drive::Sessions { count, shared } => self.start_sessions(pair, count, shared),
            Drive::Arrivals { per_s, spacing } => self.start_arrivals(pair, per_s, spacing),
        };
        let mut text = format!("workload {}: {how} over {what}", self.spec.name);
        if !self.run.shard.is_only() {
            text += &format!(", on thread {}", self.run.shard.number() + 1);
        }
        self.run.report(Level::Info, "load_started", text);
        load
    }

    fn shared<S: Service>(&self, service: S) -> Rc<Shared<S>> {
        Rc::new(Shared::new(self.run, self.number as u32 + 1, service))
    }

    fn start_sessions<P: Pair>(
        &self,
        pair: P,
        count: u32,
        one_pool: bool,
    ) -> (Box<dyn RunningLoad>, String) {
        let demands = sessions::demands(&pair, count, one_pool, &self.random);
        let shared = self.shared(pair.into_service());
        let tasks = sessions::start(&shared, demands);
        shared.set_level("sessions", tasks.len() as f64);
        let how = format!("{} sessions", tasks.len());
        let load = Load {
            workload: self.number,
            shared,
            tasks: tasks.into(),
            first_error: None,
            gate: None::<Rc<Gate<P::Demand, P::Service>>>,
        };
        (Box::new(load), how)
    }

    fn start_arrivals<P: Pair>(
        &self,
        pair: P,
        per_s: f64,
        spacing: SpacingSpec,
    ) -> (Box<dyn RunningLoad>, String) {
        let random = self.random.child("arrivals");
        let demand = pair.arrivals(random.child("operations"), self.random.child("arrivals place"));
        let shared = self.shared(pair.into_service());
        let gate = Rc::new(Gate::new(&shared, demand, random.child("gaps"), per_s, spacing));
        let tasks = vec![self.run.handle.spawn(gate.clone().work(self.pool.clone()))];
        shared.set_level("sessions", f64::from(self.sessions_max));
        shared.set_level("offered_rate", per_s);
        let how = format!(
            "{} operations/s, {} arrivals, at most {} open",
            rate_in_words(per_s),
            spacing.name(),
            self.sessions_max
        );
        let load = Load {
            workload: self.number,
            shared,
            tasks: tasks.into(),
            first_error: None,
            gate: Some(gate),
        };
        (Box::new(load), how)
    }
}

struct Load<D, S> {
    workload: usize,
    shared: Rc<Shared<S>>,
    tasks: VecDeque<JoinHandle<Result<(), RunError>>>,
    /// The first error of the tasks that have ended.
    first_error: Option<RunError>,
    gate: Option<Rc<Gate<D, S>>>,
}

impl<D, S> RunningLoad for Load<D, S>
where
    D: Demand<Task = S::Task> + 'static,
    S: Service + 'static,
{
    fn workload(&self) -> usize {
        self.workload
    }

    fn set_rate(&self, per_s: f64) {
        if let Some(gate) = &self.gate {
            gate.set_rate(per_s);
            self.note_rate(per_s);
        }
    }

    fn set_rate_at(&self, per_s: f64, at: Nanos) {
        if let Some(gate) = &self.gate {
            gate.set_rate_at(per_s, at);
        }
    }

    fn note_rate(&self, per_s: f64) {
        if self.gate.is_some() {
            self.shared.set_level("offered_rate", per_s);
        }
    }

    fn pause(&self) {
        if let Some(gate) = &self.gate {
            gate.pause();
            self.shared.set_level("offered_rate", 0.0);
        }
    }

    fn open_count(&self) -> usize {
        self.gate.as_ref().map_or(0, |gate| gate.open_count())
    }

    fn failure(&self) -> Option<RunError> {
        self.shared.failure()
    }

    fn stop(&mut self) -> Work<'_, Result<(), RunError>> {
        Box::pin(async move {
            self.shared.stop();
            while let Some(task) = self.tasks.front_mut() {
                if let Err(error) = task.await {
                    self.first_error.get_or_insert(error);
                }
                self.tasks.pop_front();
            }
            self.first_error.take().map_or(Ok(()), Err)
        })
    }
}

/// Makes the rows of a workload that does not run say that nothing comes of it.
pub fn note_idle(run: &RunContext, number: usize) {
    for metric in ["sessions", "offered_rate"] {
        let key = Key::new(0, 0, metric).of_workload(number as u32 + 1);
        run.recorder.set_level(key, 0.0);
    }
}
