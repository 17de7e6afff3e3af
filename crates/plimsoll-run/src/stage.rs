//! What phases work on: the open instances, the records they hold and the load that is running.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_io::Random;
use plimsoll_workload::Population;

use crate::RunError;
use crate::backend::{Backend, DatabaseState};
use crate::load::{LoadPlace, RunningLoad};
use crate::recorder::Key;
use crate::setting::Setting;
use crate::spec::RunSpec;

/// See the module text.
pub struct Stage {
    /// What was asked for.
    pub spec: Rc<RunSpec>,
    /// Where it happens.
    pub setting: Setting,
    /// The open instances, in the order of the plan; empty before prepare and after stop.
    pub backends: OpenBackends,
    /// Every open database with its records.
    pub places: Vec<LoadPlace>,
    /// Workloads that are running.
    pub loads: Vec<RunningLoad>,
}

/// The open instances, in the order of the plan; the sampler looks at them too.
pub type OpenBackends = Rc<RefCell<Vec<Rc<Backend>>>>;

impl Stage {
    /// Nothing open, nothing running.
    pub fn new(spec: Rc<RunSpec>, setting: Setting) -> Stage {
        Stage {
            spec,
            setting,
            backends: OpenBackends::default(),
            places: Vec::new(),
            loads: Vec::new(),
        }
    }

    /// Fails unless the databases are open.
    ///
    /// # Errors
    /// [`RunError::NotOpen`].
    pub fn require_open(&self, phase: &str) -> Result<(), RunError> {
        if self.backends.borrow().is_empty() {
            return Err(RunError::NotOpen {
                phase: phase.to_owned(),
            });
        }
        Ok(())
    }

    /// Makes the list of databases that workloads draw from.
    pub fn make_populations(&mut self) {
        for (instance, backend) in self.backends.borrow().iter().enumerate() {
            for (database, records) in backend.records_ever().into_iter().enumerate() {
                self.places.push(LoadPlace {
                    backend: backend.clone(),
                    instance: instance as u32,
                    database,
                    population: Rc::new(RefCell::new(Population::prepared(records))),
                });
            }
        }
    }

    /// The databases of every instance now.
    pub fn databases(&self) -> Vec<Vec<DatabaseState>> {
        self.backends
            .borrow()
            .iter()
            .map(|backend| backend.databases())
            .collect()
    }

    /// Stops the workloads a phase does not want and starts those it wants and that do not run yet.
    ///
    /// # Errors
    /// What a session met.
    pub async fn set_load(&mut self, phase: &str, wanted: &[String]) -> Result<(), RunError> {
        let (stay, leave): (Vec<_>, Vec<_>) = std::mem::take(&mut self.loads)
            .into_iter()
            .partition(|load| wanted.contains(&self.spec.workloads[load.workload].name));
        self.loads = stay;
        let mut first_error = None;
        for load in leave {
            if let Err(error) = load.stop().await {
                first_error.get_or_insert(error);
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        let spec = self.spec.clone();
        for (number, workload) in spec.workloads.iter().enumerate() {
            let running = self.loads.iter().any(|load| load.workload == number);
            if running || !wanted.contains(&workload.name) {
                continue;
            }
            self.require_open(phase)?;
            let places: Vec<LoadPlace> = self
                .places
                .iter()
                .filter(|place| {
                    workload
                        .instances
                        .contains(&spec.instances[place.instance as usize].name)
                })
                .cloned()
                .collect();
            let random = Random::from_seed(spec.seed);
            self.loads.push(RunningLoad::start(
                &self.setting,
                number,
                workload,
                &places,
                &random,
            ));
        }
        Ok(())
    }

    /// Fails when a session has met an error.
    ///
    /// # Errors
    /// That error.
    pub fn check_load(&self) -> Result<(), RunError> {
        self.loads
            .iter()
            .find_map(RunningLoad::failure)
            .map_or(Ok(()), Err)
    }

    /// Whether any instance has a cache.
    pub fn has_cache(&self) -> bool {
        let backends = self.backends.borrow();
        backends
            .iter()
            .any(|backend| backend.levels().cache_limit_bytes > 0)
    }

    /// The instance whose cache is farthest below `percent` of its limit, and how full it is.
    pub fn coldest_cache(&self, percent: u32) -> Option<(String, u32)> {
        let backends = self.backends.borrow();
        let fullness = backends
            .iter()
            .zip(&self.spec.instances)
            .filter_map(|(backend, instance)| {
                let levels = backend.levels();
                (levels.cache_limit_bytes > 0).then(|| {
                    let used = (u128::from(levels.cache_used_bytes) * 100
                        / u128::from(levels.cache_limit_bytes)) as u32;
                    (instance.name.clone(), used)
                })
            });
        fullness
            .filter(|(_, used)| *used < percent)
            .min_by_key(|(_, used)| *used)
    }

    /// Makes the rows of the usual metrics appear in every sample.
    pub fn expect_rows(&self) {
        let recorder = &self.setting.recorder;
        for (number, instance) in self.spec.instances.iter().enumerate() {
            let number = number as u32;
            for metric in [
                "log_write",
                "log_read",
                "log_replication",
                "page_fault_stall",
                "in_flight",
            ] {
                recorder.expect(Key::new(number, 0, metric));
            }
            for database in 1..=instance.databases.len() as u32 {
                for metric in ["database_read", "database_write", "maintenance"] {
                    recorder.expect(Key::new(number, database, metric));
                }
            }
        }
    }
}
