//! Load at work. Sessions do one transaction after the other; arrivals come by a schedule and take a free session of the
//! pool that all arrival loads of a run share. Either way an operation is drawn, its time is waited for, the backend
//! carries it out, and the response time is recorded from the intended start.

mod arrivals;
mod sessions;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{JoinHandle, Permits, Random};
use plimsoll_workload::{Kind, Operation, Population, Result as OperationResult};

use crate::RunError;
use crate::backend::Backend;
use crate::context::RunContext;
use crate::events::Level;
use crate::recorder::Key;
use crate::spec::{LoadSpec, SpacingSpec, WorkloadSpec};

use arrivals::Gate;

/// A database in the list of a workload.
#[derive(Clone)]
pub struct LoadPlace {
    /// The instance that holds it.
    pub backend: Rc<Backend>,
    /// Position of the instance in the plan.
    pub instance: u32,
    /// Position of the database in its instance.
    pub database: usize,
    /// Its share of the work, relative to the others.
    pub weight: f64,
    /// Its records, shared by all sessions that use it.
    pub population: Rc<RefCell<Population>>,
}

/// A place by chance: each as often as its weight says.
fn draw(places: &[LoadPlace], random: &mut Random) -> usize {
    /// The resolution of weights.
    const STEPS: u64 = 1 << 32;
    let same = places.iter().all(|place| place.weight == places[0].weight);
    if same {
        return random.below(places.len() as u64) as usize;
    }
    let total: f64 = places.iter().map(|place| place.weight).sum();
    let mut left = random.below(STEPS) as f64 / STEPS as f64 * total;
    for (position, place) in places.iter().enumerate() {
        left -= place.weight;
        if left < 0.0 {
            return position;
        }
    }
    places.len() - 1
}

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
            LoadSpec::Sessions(spec) => Drive::Sessions {
                count: spec.sessions,
                shared: spec.shared,
            },
            LoadSpec::Search(spec) => Drive::Sessions {
                count: spec.sessions,
                shared: spec.shared,
            },
            LoadSpec::Rate(spec) => Drive::Arrivals {
                per_s: spec.transactions_per_s,
                spacing: spec.spacing,
            },
            LoadSpec::TargetIops(spec) => Drive::Arrivals {
                per_s: spec.target_iops / spec.io_per_transaction_assumed,
                spacing: spec.spacing,
            },
        }
    }
}

/// A workload that is running.
pub struct RunningLoad {
    /// Position of the workload in the plan.
    pub workload: usize,
    shared: Rc<Shared>,
    tasks: Vec<JoinHandle<Result<(), RunError>>>,
    gate: Option<Rc<Gate>>,
}

/// What all tasks of a running workload know.
struct Shared {
    workload: u32,
    /// Share of the records that are hot.
    hot_percent: u32,
    places: Vec<LoadPlace>,
    run: RunContext,
    wanted: Cell<bool>,
    failed: RefCell<Option<RunError>>,
}

impl RunningLoad {
    /// Starts a workload.
    pub fn start(
        (run, random): (&RunContext, &Random),
        number: usize,
        spec: &WorkloadSpec,
        drive: Drive,
        places: &[LoadPlace],
        pool: &Rc<Permits>,
    ) -> Self {
        let random = random.child(&format!("workload {}", spec.name));
        let shared = Rc::new(Shared {
            workload: number as u32 + 1,
            hot_percent: spec.habits().locality.hot_percent,
            places: places.to_vec(),
            run: run.clone(),
            wanted: Cell::new(true),
            failed: RefCell::new(None),
        });
        let mut load = Self {
            workload: number,
            shared,
            tasks: Vec::new(),
            gate: None,
        };
        let how = match drive {
            Drive::Sessions { count, shared } => load.start_sessions(spec, count, shared, &random),
            Drive::Arrivals { per_s, spacing } => load.start_arrivals(spec, per_s, spacing, &random, pool),
        };
        let mix = &spec.mix;
        run.report(
            Level::Info,
            "load_started",
            format!(
                "workload {}: {how} over {} databases, {} % insert, {} % delete, {} % replace, {} % read, {} % lazy commits",
                spec.name,
                places.len(),
                mix.insert_percent,
                mix.delete_percent,
                mix.replace_percent,
                mix.read_percent,
                mix.lazy_commit_percent
            ),
        );
        load
    }

    fn start_sessions(&mut self, spec: &WorkloadSpec, count: u32, shared: bool, random: &Random) -> String {
        self.tasks = sessions::start(&self.shared, spec, count, shared, random);
        self.set_level("sessions", self.tasks.len() as f64);
        format!("{} sessions", self.tasks.len())
    }

    fn start_arrivals(
        &mut self,
        spec: &WorkloadSpec,
        per_s: f64,
        spacing: SpacingSpec,
        random: &Random,
        pool: &Rc<Permits>,
    ) -> String {
        let gate = Rc::new(Gate::new(&self.shared, spec, per_s, spacing, random));
        self.tasks = vec![self.shared.run.handle.spawn(gate.clone().work(pool.clone()))];
        self.gate = Some(gate);
        self.set_level("sessions", f64::from(spec.load.sessions_max()));
        self.set_level("offered_rate", per_s);
        format!(
            "{per_s:.6} transactions/s, {} arrivals, at most {} open",
            spacing.name(),
            spec.load.sessions_max()
        )
    }

    fn set_level(&self, metric: &str, value: f64) {
        let key = Key::new(0, 0, metric).of_workload(self.shared.workload);
        self.shared.run.recorder.set_level(key, value);
    }

    /// Lets arrivals come at another rate from now on.
    pub fn set_rate(&self, per_s: f64) {
        if let Some(gate) = &self.gate {
            gate.set_rate(per_s);
            self.set_level("offered_rate", per_s);
        }
    }

    /// Lets nothing more arrive until the next [`RunningLoad::set_rate`].
    pub fn pause(&self) {
        if let Some(gate) = &self.gate {
            gate.pause();
            self.set_level("offered_rate", 0.0);
        }
    }

    /// Transactions that have arrived and are not complete.
    pub fn open_count(&self) -> usize {
        self.gate.as_ref().map_or(0, |gate| gate.open_count())
    }

    /// The error that ended a session, if one did.
    pub fn failure(&self) -> Option<RunError> {
        self.shared.failed.borrow().clone()
    }

    /// Stops all sessions after their current transactions.
    ///
    /// # Errors
    /// The first error that a session met.
    pub async fn stop(self) -> Result<(), RunError> {
        self.shared.wanted.set(false);
        let mut first_error = None;
        for task in self.tasks {
            if let Err(error) = task.await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Shared {
    fn wanted(&self) -> bool {
        self.wanted.get()
    }

    /// Notes an error that ends the run.
    fn fail(&self, error: &RunError) {
        self.wanted.set(false);
        self.failed.borrow_mut().get_or_insert_with(|| error.clone());
    }

    fn record(&self, place: &LoadPlace, operation: &Operation, result: OperationResult, response_ns: u64) {
        let kind = operation.kind;
        let key = |metric: &str| {
            Key::new(place.instance, place.database as u32 + 1, metric).of_workload(self.workload)
        };
        let recorder = &self.run.recorder;
        match result {
            OperationResult::Done => {
                recorder.record(key(kind.name()), response_ns);
                let hot_count = place.population.borrow().hot_count(self.hot_percent);
                if kind != Kind::Insert && operation.record < hot_count {
                    recorder.count(key("hot_operation"), 1);
                }
            }
            OperationResult::Missing => recorder.count(key("missing_record"), 1),
            // Not an operation that failed: the same one follows at the end of the table.
            OperationResult::NoRoom => {}
            OperationResult::Conflict => recorder.count(key("write_conflict"), 1),
        }
    }
}
