//! Sessions at work: each draws an operation, waits for its time, has the backend carry it out and records the response
//! time from the intended start.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_io::{JoinHandle, Random};
use plimsoll_workload::{Kind, Population, Previous, Result as OperationResult, Session};

use crate::RunError;
use crate::backend::Backend;
use crate::events::Level;
use crate::recorder::Key;
use crate::setting::Setting;
use crate::spec::WorkloadSpec;

/// A database in the list of a workload.
#[derive(Clone)]
pub struct LoadPlace {
    /// The instance that holds it.
    pub backend: Rc<Backend>,
    /// Position of the instance in the plan.
    pub instance: u32,
    /// Position of the database in its instance.
    pub database: usize,
    /// Its records, shared by all sessions that use it.
    pub population: Rc<RefCell<Population>>,
}

/// A workload that is running.
pub struct RunningLoad {
    /// Position of the workload in the plan.
    pub workload: usize,
    wanted: Rc<Cell<bool>>,
    sessions: Vec<JoinHandle<Result<(), RunError>>>,
    failed: Rc<RefCell<Option<RunError>>>,
}

impl RunningLoad {
    /// Starts the sessions of a workload.
    pub fn start(
        setting: &Setting,
        number: usize,
        spec: &WorkloadSpec,
        places: &[LoadPlace],
        random: &Random,
    ) -> Self {
        let groups: Vec<Vec<LoadPlace>> = if spec.load.shared {
            vec![places.to_vec()]
        } else {
            places.iter().map(|place| vec![place.clone()]).collect()
        };
        let wanted = Rc::new(Cell::new(true));
        let failed = Rc::new(RefCell::new(None));
        let mut sessions = Vec::new();
        for (group, places) in groups.into_iter().enumerate() {
            for session in 0..spec.load.sessions {
                let name = format!("workload {} group {group} session {session}", spec.name);
                let customer = Customer {
                    session: Session::new(random.child(&name), spec.mix.into(), spec.sluggish),
                    choice: random.child(&format!("{name} place")),
                    workload: number as u32 + 1,
                    places: places.clone(),
                    setting: setting.clone(),
                    wanted: wanted.clone(),
                    failed: failed.clone(),
                };
                sessions.push(setting.handle.spawn(customer.work()));
            }
        }
        let key = Key::new(0, 0, "sessions").of_workload(number as u32 + 1);
        setting.recorder.set_level(key, sessions.len() as f64);
        setting.tell(
            Level::Info,
            "load_started",
            format!(
                "workload {}: {} sessions over {} databases, {} % insert, {} % delete, {} % replace, {} % read, {} % lazy commits",
                spec.name,
                sessions.len(),
                places.len(),
                spec.mix.insert_percent,
                spec.mix.delete_percent,
                spec.mix.replace_percent,
                spec.mix.read_percent,
                spec.mix.lazy_commit_percent
            ),
        );
        Self {
            workload: number,
            wanted,
            sessions,
            failed,
        }
    }

    /// The error that ended a session, if one did.
    pub fn failure(&self) -> Option<RunError> {
        self.failed.borrow().clone()
    }

    /// Lets every session finish its transaction and go home.
    ///
    /// # Errors
    /// The first error that a session met.
    pub async fn stop(self) -> Result<(), RunError> {
        self.wanted.set(false);
        let mut first_error = None;
        for session in self.sessions {
            if let Err(error) = session.await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

struct Customer {
    session: Session,
    choice: Random,
    workload: u32,
    places: Vec<LoadPlace>,
    setting: Setting,
    wanted: Rc<Cell<bool>>,
    failed: Rc<RefCell<Option<RunError>>>,
}

impl Customer {
    async fn work(mut self) -> Result<(), RunError> {
        let result = self.transactions().await;
        if let Err(error) = &result {
            self.wanted.set(false);
            let mut failed = self.failed.borrow_mut();
            failed.get_or_insert_with(|| error.clone());
        }
        result
    }

    async fn transactions(&mut self) -> Result<(), RunError> {
        let mut previous: Option<Previous> = None;
        let mut place = self.draw_place();
        while self.wanted.get() {
            if previous.is_none_or(|previous| previous.result == OperationResult::Done) {
                place = self.draw_place();
            }
            let step = {
                let now = self.setting.handle.now();
                let mut population = place.population.borrow_mut();
                self.session.next(&mut population, now, previous)
            };
            while self.wanted.get() && self.setting.handle.now() < step.intended {
                // In steps, so that a long think time does not hold up the end of a run.
                let soon = self.setting.handle.now() + 50 * plimsoll_io::NANOS_PER_MILLISECOND;
                self.setting.handle.sleep_until(step.intended.min(soon)).await;
            }
            if !self.wanted.get() {
                break;
            }
            let result = place.backend.execute(place.database, &step.operation).await?;
            let finished = self.setting.handle.now();
            self.record(
                &place,
                step.operation.kind,
                result,
                finished.saturating_sub(step.intended),
            );
            previous = Some(Previous {
                intended: step.intended,
                finished,
                result,
            });
        }
        Ok(())
    }

    fn draw_place(&mut self) -> LoadPlace {
        let chosen = self.choice.below(self.places.len() as u64) as usize;
        self.places[chosen].clone()
    }

    fn record(&self, place: &LoadPlace, kind: Kind, result: OperationResult, response_ns: u64) {
        let key = |metric: &str| {
            Key::new(place.instance, place.database as u32 + 1, metric).of_workload(self.workload)
        };
        let recorder = &self.setting.recorder;
        match result {
            OperationResult::Done => recorder.record(key(kind.name()), response_ns),
            OperationResult::Missing => recorder.count(key("missing_record"), 1),
            OperationResult::Conflict => recorder.count(key("write_conflict"), 1),
        }
    }
}
