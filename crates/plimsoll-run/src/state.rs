//! What phases work on: the open instances and the loads that are running.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Permits, Random};

use crate::RunError;
use crate::backend::OpenBackends;
use crate::context::RunContext;
use crate::family::Families;
use crate::load::{Drive, LoadInstance, LoadStart, RunningLoad, note_idle};
use crate::outcome::{DatabaseState, RecoveryResult};
use crate::recorder::Key;
use crate::spec::{LoadSpec, RunSpec};
use crate::step::StepWorkload;

/// See the module text.
pub struct RunState {
    /// What was asked for.
    pub spec: Rc<RunSpec>,
    /// Where it happens.
    pub run: RunContext,
    /// Who opens instances and starts loads.
    pub families: Families,
    /// The open instances, in the order of the plan; empty before prepare and after stop.
    pub backends: OpenBackends,
    /// Workloads that are running.
    pub loads: Vec<Box<dyn RunningLoad>>,
    /// What presses in the place of what the plan says, for workloads whose rate was measured or found.
    pub drives: BTreeMap<usize, Drive>,
    /// The sessions that all arrivals share.
    pool: Rc<Permits>,
}

impl RunState {
    /// Nothing open, nothing running.
    pub fn new(spec: Rc<RunSpec>, run: RunContext, families: Families) -> RunState {
        let sessions_max = spec.workloads.iter().map(|workload| workload.load.sessions_max());
        RunState {
            pool: Rc::new(Permits::new(sessions_max.max().unwrap_or(0) as usize)),
            drives: BTreeMap::new(),
            spec,
            run,
            families,
            backends: OpenBackends::default(),
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

    /// The databases of every instance now.
    pub fn databases(&self) -> Vec<Vec<DatabaseState>> {
        self.backends
            .borrow()
            .iter()
            .map(|backend| backend.databases())
            .collect()
    }

    /// What opening the instances had to replay.
    pub fn recoveries(&self) -> Vec<RecoveryResult> {
        let backends = self.backends.borrow();
        backends.iter().filter_map(|backend| backend.recovery()).collect()
    }

    /// Stops the workloads a phase does not want and starts those it wants and that do not run yet.
    ///
    /// # Errors
    /// What a session met.
    pub async fn set_load(&mut self, phase: &str, wanted: &[String]) -> Result<(), RunError> {
        self.stop_loads(|spec, workload| !wanted.contains(&spec.workloads[workload].name))
            .await?;
        let spec = self.spec.clone();
        for (number, workload) in spec.workloads.iter().enumerate() {
            let running = self.loads.iter().any(|load| load.workload() == number);
            if running || !wanted.contains(&workload.name) {
                continue;
            }
            self.require_open(phase)?;
            self.start_load(number)?;
        }
        Ok(())
    }

    /// Stops workloads one after the other. A load stays in the list until its last session is done: whoever gives up waiting
    /// finds it there.
    async fn stop_loads(&mut self, leaves: impl Fn(&RunSpec, usize) -> bool) -> Result<(), RunError> {
        let mut first_error = None;
        let mut position = 0;
        while let Some(load) = self.loads.get_mut(position) {
            if !leaves(&self.spec, load.workload()) {
                position += 1;
                continue;
            }
            if let Err(error) = load.stop().await {
                first_error.get_or_insert(error);
            }
            self.loads.remove(position);
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Says of the workloads that do not run that nothing comes of them.
    pub fn note_idle_loads(&self) {
        for number in 0..self.spec.workloads.len() {
            if !self.loads.iter().any(|load| load.workload() == number) {
                note_idle(&self.run, number);
            }
        }
    }

    /// Starts a workload: as it was measured or found before, or as the plan says.
    ///
    /// # Errors
    /// When its family cannot work on its instances.
    pub fn start_load(&mut self, number: usize) -> Result<(), RunError> {
        let spec = &self.spec.workloads[number];
        let backends = self.backends.borrow();
        let instances = self
            .instances_of(number)
            .into_iter()
            .map(|instance| LoadInstance {
                number: instance,
                weight: self.spec.instances[instance as usize].weight.unwrap_or(1.0),
                backend: backends[instance as usize].clone(),
            });
        let drive = self.drives.get(&number).copied();
        let load = LoadStart {
            run: &self.run,
            number,
            spec,
            drive: drive.unwrap_or_else(|| Drive::first(&spec.load)),
            instances: instances.collect(),
            random: Random::from_seed(self.spec.seed).child(&format!("workload {}", spec.name)),
            pool: self.pool.clone(),
        };
        let family = self.families.of_workload(spec).map_err(RunError::Spec)?;
        let load = family.start(load)?;
        self.loads.push(load);
        Ok(())
    }

    /// Lets a running workload press in another way from now on; what it has begun is finished first.
    ///
    /// # Errors
    /// What a session met.
    pub async fn drive_by(&mut self, number: usize, drive: Drive) -> Result<(), RunError> {
        self.drives.insert(number, drive);
        if !self.loads.iter().any(|load| load.workload() == number) {
            return Ok(());
        }
        self.stop_loads(|_, workload| workload == number).await?;
        self.start_load(number)
    }

    /// The running load of a workload.
    ///
    /// # Panics
    /// When it does not run: phases name the workloads they ask for.
    pub fn load_of(&self, number: usize) -> &dyn RunningLoad {
        let found = self.loads.iter().find(|load| load.workload() == number);
        found.expect("the phase runs this workload").as_ref()
    }

    /// Workloads that run and whose rate must be measured first.
    pub fn uncalibrated(&self) -> Vec<usize> {
        let running = self.loads.iter().map(|load| load.workload());
        running
            .filter(|number| {
                let load = &self.spec.workloads[*number].load;
                matches!(load, LoadSpec::TargetIops(_)) && !self.drives.contains_key(number)
            })
            .collect()
    }

    /// The positions of the instances a workload works on.
    pub fn instances_of(&self, number: usize) -> Vec<u32> {
        let wanted = &self.spec.workloads[number].instances;
        let named = self.spec.instances.iter().zip(0u32..);
        named
            .filter(|(instance, _)| wanted.contains(&instance.name))
            .map(|(_, position)| position)
            .collect()
    }

    /// What tells the figures of a workload from those of others.
    pub fn step_workload(&self, number: usize) -> StepWorkload {
        let family = self.families.of_workload(&self.spec.workloads[number]);
        let names = family.map_or(&[][..], |family| family.operations());
        StepWorkload {
            number,
            instances: self.instances_of(number),
            operations: names
                .iter()
                .filter_map(|name| self.run.recorder.code(name))
                .collect(),
        }
    }

    /// Fails when a session has met an error.
    ///
    /// # Errors
    /// That error.
    pub fn check_load(&self) -> Result<(), RunError> {
        self.loads
            .iter()
            .find_map(|load| load.failure())
            .map_or(Ok(()), Err)
    }

    /// Lets the load run for a while.
    ///
    /// # Errors
    /// What a session met, or a wish to stop.
    pub async fn load_for(&self, duration_ns: Nanos) -> Result<(), RunError> {
        let deadline = self.run.handle.now() + duration_ns;
        while self.run.handle.now() < deadline {
            self.check_load()?;
            let soon = self.run.handle.now() + NANOS_PER_SECOND / 20;
            self.run.sleep_until(deadline.min(soon)).await?;
        }
        self.check_load()
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
        let recorder = &self.run.recorder;
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
