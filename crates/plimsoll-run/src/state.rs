//! What phases work on: the open instances and the loads that are running.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Permits, Random};

use crate::RunError;
use crate::backend::{OpenBackends, Seat};
use crate::context::RunContext;
use crate::family::Families;
use crate::load::{Drive, LoadInstance, LoadStart, RunningLoad, note_idle};
use crate::outcome::{DatabaseState, KeptLog, LoadStage, RecoveryResult};
use crate::recorder::{Key, StepFigures};
use crate::sampler::Sampler;
use crate::spec::{LoadSpec, RunSpec, WorkloadSpec};
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
    /// Workloads that are running here; of several shards each has its part of them.
    pub loads: Vec<Box<dyn RunningLoad>>,
    /// Workloads that are running on any shard, in the order they were started.
    pub running: Vec<usize>,
    /// What presses in the place of what the plan says, for workloads whose rate was measured or
    /// found.
    pub drives: BTreeMap<usize, Drive>,
    /// Logs that a backup has kept.
    pub kept_logs: Vec<KeptLog>,
    /// Stages of loads that have begun in this phase.
    pub stages: Vec<LoadStage>,
    /// The sessions that all arrivals share.
    pool: Rc<Permits>,
}

impl RunState {
    /// Nothing open, nothing running.
    pub fn new(spec: Rc<RunSpec>, run: RunContext, families: Families) -> RunState {
        let sessions_max = spec.workloads.iter().map(|workload| workload.load.sessions_max());
        let pool = run.shard.part(sessions_max.max().unwrap_or(0), &spec, None).max(1);
        RunState {
            pool: Rc::new(Permits::new(pool as usize)),
            drives: BTreeMap::new(),
            kept_logs: Vec::new(),
            stages: Vec::new(),
            spec,
            run,
            families,
            backends: OpenBackends::default(),
            loads: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Fails unless the databases are open.
    ///
    /// # Errors
    /// [`RunError::NotOpen`].
    pub fn require_open(&self, phase: &str) -> Result<(), RunError> {
        if self.backends.borrow().is_empty() {
            return Err(RunError::NotOpen { phase: phase.to_owned() });
        }
        Ok(())
    }

    /// The databases of every instance now.
    pub fn databases(&self) -> Vec<Vec<DatabaseState>> {
        let backends = self.backends.borrow();
        let last = backends.keys().next_back().map_or(0, |last| last + 1);
        let of = |number| backends.get(&number).map_or(Vec::new(), |backend| backend.databases());
        (0..last).map(of).collect()
    }

    /// What opening the instances had to replay.
    pub fn recoveries(&self) -> Vec<RecoveryResult> {
        let backends = self.backends.borrow();
        backends.values().filter_map(|backend| backend.recovery()).collect()
    }

    /// Stops the workloads a phase does not want and starts those it wants and that do not run yet.
    ///
    /// # Errors
    /// What a session met.
    pub async fn set_load(&mut self, phase: &str, wanted: &[String]) -> Result<(), RunError> {
        self.stop_loads(|spec, workload| !wanted.contains(&spec.workloads[workload].name)).await?;
        let spec = self.spec.clone();
        for (number, workload) in spec.workloads.iter().enumerate() {
            if self.running.contains(&number) || !wanted.contains(&workload.name) {
                continue;
            }
            self.require_open(phase)?;
            self.start_load(number)?;
        }
        Ok(())
    }

    /// Stops workloads one after the other. A load stays in the list until its last session is
    /// done: whoever gives up waiting finds it there.
    async fn stop_loads(
        &mut self,
        leaves: impl Fn(&RunSpec, usize) -> bool,
    ) -> Result<(), RunError> {
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
        let spec = self.spec.clone();
        self.running.retain(|number| !leaves(&spec, *number));
        first_error.map_or(Ok(()), Err)
    }

    /// Says of the workloads that do not run that nothing comes of them.
    pub fn note_idle_loads(&self) {
        for number in 0..self.spec.workloads.len() {
            if !self.running.contains(&number) {
                note_idle(&self.run, number);
            }
        }
    }

    /// Starts a workload: as it was measured or found before, or as the plan says.
    ///
    /// # Errors
    /// When its family cannot work on its instances.
    pub fn start_load(&mut self, number: usize) -> Result<(), RunError> {
        self.running.push(number);
        let spec = &self.spec.workloads[number];
        let backends = self.backends.borrow();
        let shard = &self.run.shard;
        let own = self.instances_of(number).into_iter();
        let instances: Vec<LoadInstance> = own
            .filter(|instance| shard.owns(*instance as usize))
            .map(|instance| LoadInstance {
                number: instance,
                weight: self.spec.instances[instance as usize].weight.unwrap_or(1.0),
                backend: backends[&(instance as usize)].clone(),
                seat: Seat::new(&self.backends, instance as usize),
            })
            .collect();
        if instances.is_empty() {
            return Ok(());
        }
        let random = Random::from_seed(self.spec.seed).child(&format!("workload {}", spec.name));
        let load = LoadStart {
            run: &self.run,
            number,
            spec,
            drive: self.own_part(self.drive(number), spec),
            instances,
            random: match shard.is_first() {
                true => random,
                false => random.child(&format!("shard {}", shard.number())),
            },
            pool: self.pool.clone(),
            sessions_max: shard.part(spec.load.sessions_max(), &self.spec, None),
        };
        let family = self.families.of_workload(spec).map_err(RunError::Spec)?;
        let load = family.start(load)?;
        self.loads.push(load);
        Ok(())
    }

    /// What a workload presses with on all shards.
    pub fn drive(&self, number: usize) -> Drive {
        let measured = self.drives.get(&number).copied();
        measured.unwrap_or_else(|| Drive::first(&self.spec.workloads[number].load))
    }

    /// What of a drive falls to this shard.
    fn own_part(&self, drive: Drive, workload: &WorkloadSpec) -> Drive {
        let shard = &self.run.shard;
        match drive {
            Drive::Sessions { count, shared: true } => Drive::Sessions {
                count: shard.part(count, &self.spec, Some(workload)),
                shared: true,
            },
            Drive::Sessions { .. } => drive,
            Drive::Arrivals { per_s, spacing } => {
                Drive::Arrivals { per_s: per_s * shard.share(&self.spec, workload), spacing }
            }
        }
    }

    /// Lets a running workload press in another way from now on; what it has begun is finished
    /// first.
    ///
    /// # Errors
    /// What a session met.
    pub async fn drive_by(&mut self, number: usize, drive: Drive) -> Result<(), RunError> {
        self.drives.insert(number, drive);
        if !self.running.contains(&number) {
            return Ok(());
        }
        self.stop_loads(|_, workload| workload == number).await?;
        self.start_load(number)
    }

    fn load_of(&self, number: usize) -> Option<&dyn RunningLoad> {
        let found = self.loads.iter().find(|load| load.workload() == number);
        found.map(AsRef::as_ref)
    }

    /// Lets a running workload arrive at another rate from now on: all shards together at `per_s`.
    pub fn set_rate(&self, number: usize, per_s: f64) {
        if let Some(load) = self.load_of(number) {
            load.set_rate(per_s * self.share(number));
        }
    }

    /// Lets a running workload arrive at another rate from a moment on, all shards together, in the
    /// order of such moments. What was due before it still arrives.
    pub fn set_rate_at(&self, number: usize, per_s: f64, at: Nanos) {
        if let Some(load) = self.load_of(number) {
            load.set_rate_at(per_s * self.share(number), at);
        }
    }

    /// Notes the rate that a running workload has from now on, all shards together.
    pub fn note_rate(&self, number: usize, per_s: f64) {
        if let Some(load) = self.load_of(number) {
            load.note_rate(per_s * self.share(number));
        }
    }

    /// The stages that have begun, each of which has ended by now.
    pub fn take_stages(&mut self) -> Vec<LoadStage> {
        let now = self.run.handle.now();
        let mut stages = std::mem::take(&mut self.stages);
        stages.iter_mut().for_each(|stage| stage.end_ns = stage.end_ns.min(now));
        stages
    }

    /// What of a workload falls to this shard.
    fn share(&self, number: usize) -> f64 {
        self.run.shard.share(&self.spec, &self.spec.workloads[number])
    }

    /// Lets nothing of a running workload arrive until everything that has arrived is done, on all
    /// shards.
    ///
    /// # Errors
    /// What a session met, or a wish to stop.
    pub async fn empty_queue(&self, number: usize) -> Result<(), RunError> {
        if let Some(load) = self.load_of(number) {
            load.pause();
        }
        while self.load_of(number).is_some_and(|load| load.open_count() > 0) {
            self.load_for(NANOS_PER_MILLISECOND).await?;
        }
        self.run.gather(()).await.map(drop)
    }

    /// Closes the running sample, sets a mark, and says what all shards have counted since the mark
    /// before, and how busy the busiest thread was in all of that time.
    ///
    /// # Errors
    /// A wish to stop.
    pub async fn mark_step(&self, sampler: &Sampler) -> Result<(StepFigures, f64), RunError> {
        let recorder = &self.run.recorder;
        let own = sampler.close_together(false, || recorder.mark_step()).await?;
        let busy = sampler.take_busy();
        let mut figures = StepFigures::new();
        let mut busiest = 0.0_f64;
        for (of_shard, busy) in self.run.gather((own, busy)).await? {
            busiest = busiest.max(busy);
            for (key, latencies) in of_shard {
                figures.entry(key).or_default().merge(&latencies);
            }
        }
        Ok((figures, busiest))
    }

    /// Workloads that run and whose rate must be measured first.
    pub fn uncalibrated(&self) -> Vec<usize> {
        let running = self.running.iter().copied();
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
            operations: names.iter().filter_map(|name| self.run.recorder.code(name)).collect(),
        }
    }

    /// Fails when a session has met an error, or an instance does not come back.
    ///
    /// # Errors
    /// That error.
    pub fn check_load(&self) -> Result<(), RunError> {
        let failure = self.loads.iter().find_map(|load| load.failure());
        failure.or_else(|| self.run.nodes.failure()).map_or(Ok(()), Err)
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
        backends.values().any(|backend| backend.levels().cache_limit_bytes > 0)
    }

    /// The instance whose cache is farthest below `percent` of its limit, and how full it is.
    pub fn coldest_cache(&self, percent: u32) -> Option<(String, u32)> {
        let backends = self.backends.borrow();
        let fullness = backends.iter().filter_map(|(number, backend)| {
            let instance = &self.spec.instances[*number];
            let levels = backend.levels();
            (levels.cache_limit_bytes > 0).then(|| {
                let used = (u128::from(levels.cache_used_bytes) * 100
                    / u128::from(levels.cache_limit_bytes)) as u32;
                (instance.name.clone(), used)
            })
        });
        fullness.filter(|(_, used)| *used < percent).min_by_key(|(_, used)| *used)
    }

    /// Makes the rows of the usual metrics appear in every sample.
    pub fn expect_rows(&self) {
        let recorder = &self.run.recorder;
        for (number, instance) in self.run.shard.own(&self.spec.instances) {
            let number = number as u32;
            for metric in
                ["log_write", "log_read", "log_replication", "page_fault_stall", "in_flight"]
            {
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
