//! What to run, as plain data. Every value is present: defaults live in
//! `python/plimsoll/settings.py` and nowhere else.
//!
//! Unknown keys are refused, so that a plan written for a later version does not quietly run as
//! something else.

mod cluster;
mod distribution;
mod load;
mod modelled;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::RunError;

pub use cluster::{ClusterSpec, NodeDeathSpec, TakenSpec};
pub use distribution::{DistributionSpec, distribution_of};
pub use load::{
    CriterionSpec, LoadSpec, SearchGoal, SearchSpec, SpacingSpec, StatisticSpec, TargetIopsSpec,
};
pub use modelled::{ModelledSpec, PlaceSpec};

/// The version of this shape.
pub const SPEC_SCHEMA_VERSION: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Must be [`SPEC_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Decides keys, content and order of operations.
    pub seed: u64,
    /// How often a sample is taken.
    pub sample_interval_ms: u64,
    /// A transfer in flight for longer is reported before it completes.
    pub hung_after_ms: u64,
    /// How I/O is done: "auto", "io_uring", "libaio" or "threads".
    pub io_method: String,
    /// How writes are made durable: "faster", "dsync" or "fdatasync"; absent: whichever is faster
    /// on the device.
    pub durable_writes: Option<String>,
    /// Reads and writes the run does at most in a second, to limit the load on storage that others
    /// use too.
    pub max_iops: Option<f64>,
    /// MiB the run reads and writes at most in a second.
    pub max_mib_per_s: Option<f64>,
    /// Whether writes can be held, for snapshots; absent: no.
    pub can_hold_writes: Option<bool>,
    /// Threads that carry the instances, each with its own executor; absent: one.
    #[schemars(range(min = 1, max = 1024))]
    pub threads: Option<u32>,
    /// Whether each thread is kept on a processor of its own; absent: no.
    pub pin: Option<bool>,
    /// Serials of the block devices that may be overwritten, as the user has typed them.
    pub destroy_serials: Vec<String>,
    /// A modelled array in the place of real storage; absent: the disks of this machine.
    pub modelled: Option<ModelledSpec>,
    /// Machines; this version runs on one.
    pub hosts: Vec<HostSpec>,
    /// Places to put databases.
    pub targets: Vec<TargetSpec>,
    /// What holds the databases.
    pub instances: Vec<InstanceSpec>,
    /// The nodes they live on; absent: they do not die.
    pub cluster: Option<ClusterSpec>,
    /// Load.
    pub workloads: Vec<WorkloadSpec>,
    /// What happens, in order.
    pub phases: Vec<PhaseSpec>,
}

/// A machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name in the plan.
    pub name: String,
}

/// Storage under test.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// Its name in the plan.
    pub name: String,
    /// The machine it is attached to.
    pub host: String,
    /// The directory that is used.
    pub path: PathBuf,
}

/// One or more databases, and what stands behind them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct InstanceSpec {
    /// Its name in the plan.
    pub name: String,
    /// Which target holds it.
    pub target: String,
    /// What stands behind it.
    pub backend: String,
    /// Directory of the databases.
    pub directory: PathBuf,
    /// Whether databases may be there that their last run has not closed: whole ones are recovered,
    /// begun ones are prepared again.
    pub unfinished: bool,
    /// Directory of log and checkpoint, and of whatever else is no database.
    pub log_directory: PathBuf,
    /// Its share of a workload that works on several instances, relative to theirs; absent: 1.
    pub weight: Option<f64>,
    /// The databases.
    pub databases: Vec<DatabaseSpec>,
    /// Everything else, which only the family of its backend knows and which refuses what it does
    /// not know.
    #[serde(flatten)]
    pub options: Options,
}

/// Keys that only a family knows.
pub type Options = serde_json::Map<String, serde_json::Value>;

impl InstanceSpec {
    /// Where a database lies. Joining leaves the absolute path of a device as it is.
    pub fn database_path(&self, position: usize) -> PathBuf {
        self.directory.join(&self.databases[position].file_name)
    }

    /// Where a backup that is kept below `kept` puts the databases of the instance, and its log.
    pub fn places_of_copy(&self, kept: &Path) -> (PathBuf, PathBuf) {
        let of_instance = kept.join(&self.name);
        (of_instance.join("databases"), of_instance.join("logs"))
    }

    /// Where a backup that is kept below `kept` puts one of the databases.
    pub fn path_of_copy(&self, kept: &Path, position: usize) -> PathBuf {
        self.places_of_copy(kept).0.join(self.databases[position].name_of_copy())
    }

    /// The same as it is found after a crash, without knowledge of what ran before.
    pub fn as_crashed(&self) -> InstanceSpec {
        let mut crashed = self.clone();
        crashed.unfinished = true;
        for database in &mut crashed.databases {
            database.existing_records = None;
        }
        crashed
    }

    /// What a family says of the instance.
    ///
    /// # Errors
    /// A key that is missing, unknown or of a wrong kind.
    pub fn options_as<T: DeserializeOwned>(&self) -> Result<T, String> {
        read_options(&self.options, || format!("instance {}", self.name))
    }

    /// What a family says of one of its databases.
    ///
    /// # Errors
    /// A key that is missing, unknown or of a wrong kind.
    pub fn database_options_as<T: DeserializeOwned>(&self, position: usize) -> Result<T, String> {
        let database = &self.databases[position];
        read_options(&database.options, || {
            format!("database {} of instance {}", database.file_name, self.name)
        })
    }
}

fn read_options<T: DeserializeOwned>(
    options: &Options,
    whose: impl Fn() -> String,
) -> Result<T, String> {
    let options = serde_json::Value::Object(options.clone());
    T::deserialize(options).map_err(|error| format!("{}: {error}", whose()))
}

/// One database.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct DatabaseSpec {
    /// Its file, inside the instance's directory; or a whole block device, by its absolute path.
    pub file_name: String,
    /// Its length when prepared.
    pub size_bytes: u64,
    /// Decides its content.
    pub seed: u64,
    /// Records ever inserted, when an existing database is used; absent when it is to be prepared.
    pub existing_records: Option<u64>,
    /// Everything else, which only a family knows.
    #[serde(flatten)]
    pub options: Options,
}

impl DatabaseSpec {
    /// What its copy is called: never an absolute path, which would be the device itself.
    pub fn name_of_copy(&self) -> String {
        let name = Path::new(&self.file_name).file_name();
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Load on some instances.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WorkloadSpec {
    /// Its name in the plan.
    pub name: String,
    /// The instances it works on.
    pub instances: Vec<String>,
    /// The family it belongs to; absent: the first one that the run knows, which is "records".
    pub family: Option<String>,
    /// How hard.
    pub load: LoadSpec,
    /// Everything else, which only its family knows and which refuses what it does not know.
    #[serde(flatten)]
    pub options: Options,
}

impl WorkloadSpec {
    /// What a family says of the workload.
    ///
    /// # Errors
    /// A key that is missing, unknown or of a wrong kind.
    pub fn options_as<T: DeserializeOwned>(&self) -> Result<T, String> {
        read_options(&self.options, || format!("workload {}", self.name))
    }
}

/// One step of the run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Its name in the plan.
    pub name: String,
    /// What it does.
    pub action: PhaseAction,
    /// Workloads that run during it. A workload that also ran in the phase before simply goes on.
    pub workloads: Vec<String>,
}

/// What a phase does.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PhaseAction {
    /// Makes the databases that do not exist yet and opens all of them.
    Prepare {},
    /// Waits until every cache holds this share of its limit.
    WarmUp { cache_percent: u32, timeout_s: f64 },
    /// Lets the workloads run in rounds until their database IOPS keep steady, or the rounds are
    /// over.
    Precondition(PreconditionSpec),
    /// Lets the workloads run without being measured, for so long and then until a moment in UTC,
    /// where one is given.
    Soak { duration_s: f64, until_utc_s: Option<f64> },
    /// Lets the workloads run.
    Measure { duration_s: f64 },
    /// Looks for the highest rate that keeps the limits of its workload, and stays at it.
    Search { duration_s: f64 },
    /// Reads every page of the open databases front to back, and keeps copies where a directory is
    /// named: those of an instance in `NAME/databases` there, their log in `NAME/logs`.
    Backup { read_bytes: u32, reads_in_flight: u32, to: Option<PathBuf> },
    /// Opens copies of the databases, which recovers them, closes them, and reads every page: those
    /// that a backup kept in `from`, or clones of the storage.
    Restore {
        from: Option<PathBuf>,
        clones: Option<Vec<CloneSpec>>,
        /// Whether log that the backup makes superfluous is deleted once the copies are found
        /// sound; absent: no.
        truncate_log: Option<bool>,
        read_bytes: u32,
        reads_in_flight: u32,
    },
    /// Lets the workloads run until every instance has written so many generations of its log.
    GenerateLogs { logs_count: u32, timeout_s: f64 },
    /// Drops the open instances as a crash would and opens them again, which replays their log.
    Recover {},
    /// Asks what holds more than pages whether it holds what was done to it.
    Audit {},
    /// Closes the databases cleanly.
    Stop {},
    /// Reads every page and verifies its checksum.
    Checksum { read_bytes: u32, reads_in_flight: u32 },
}

/// Where a clone of some storage is.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CloneSpec {
    /// The directory that was cloned.
    pub of: PathBuf,
    /// Where the clone of it is.
    pub at: PathBuf,
}

impl CloneSpec {
    /// Where the clone of a path is; nothing where the path was not cloned.
    pub fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.of).ok()?;
        Some(if below.as_os_str().is_empty() { self.at.clone() } else { self.at.join(below) })
    }
}

/// When a storage counts as steady.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PreconditionSpec {
    /// Length of a round.
    pub round_s: f64,
    /// Rounds at most.
    pub rounds_max: u32,
    /// Rounds that are looked at together.
    pub window_rounds: u32,
    /// How far the rounds of a window may lie apart, as a share of their mean.
    pub range_percent: f64,
    /// How much the straight line through them may rise or fall over the window, as a share of
    /// their mean.
    pub slope_percent: f64,
}

impl PhaseAction {
    /// The name used in files.
    pub fn name(&self) -> &'static str {
        match self {
            PhaseAction::Prepare {} => "prepare",
            PhaseAction::WarmUp { .. } => "warm_up",
            PhaseAction::Precondition(_) => "precondition",
            PhaseAction::Soak { .. } => "soak",
            PhaseAction::Measure { .. } => "measure",
            PhaseAction::Search { .. } => "search",
            PhaseAction::Backup { .. } => "backup",
            PhaseAction::Restore { .. } => "restore",
            PhaseAction::GenerateLogs { .. } => "generate_logs",
            PhaseAction::Recover {} => "recover",
            PhaseAction::Audit {} => "audit",
            PhaseAction::Stop {} => "stop",
            PhaseAction::Checksum { .. } => "checksum",
        }
    }

    /// How long it may last by its own time; nothing for what is done when it is done.
    pub fn lasts_s(&self) -> f64 {
        match self {
            PhaseAction::WarmUp { timeout_s, .. } | PhaseAction::GenerateLogs { timeout_s, .. } => {
                *timeout_s
            }
            PhaseAction::Measure { duration_s } | PhaseAction::Search { duration_s } => *duration_s,
            PhaseAction::Precondition(spec) => spec.round_s * f64::from(spec.rounds_max),
            // It looks at nothing but the time, which may be one of the calendar.
            PhaseAction::Soak { .. } => f64::INFINITY,
            PhaseAction::Prepare {}
            | PhaseAction::Backup { .. }
            | PhaseAction::Restore { .. }
            | PhaseAction::Recover {}
            | PhaseAction::Audit {}
            | PhaseAction::Stop {}
            | PhaseAction::Checksum { .. } => 0.0,
        }
    }

    /// Whether it is one of those a test is made for, and not only leads up to them or ends them.
    pub fn is_measured(&self) -> bool {
        matches!(
            self,
            PhaseAction::Measure { .. }
                | PhaseAction::Search { .. }
                | PhaseAction::Backup { .. }
                | PhaseAction::Restore { .. }
                | PhaseAction::Recover {}
                | PhaseAction::Checksum { .. }
        )
    }
}

impl RunSpec {
    /// Reads a spec and checks what the types cannot, all but what only families know.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong. The people's plan was checked before, so this is a
    /// second line of defence.
    pub(crate) fn read(text: &str) -> Result<RunSpec, RunError> {
        let spec: RunSpec =
            serde_json::from_str(text).map_err(|error| RunError::Spec(error.to_string()))?;
        spec.check().map_err(RunError::Spec)?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema_version != SPEC_SCHEMA_VERSION {
            return Err(format!(
                "schema_version is {}, but this version runs {SPEC_SCHEMA_VERSION}",
                self.schema_version
            ));
        }
        if self.threads == Some(0) {
            return Err("threads is 0; take at least 1".into());
        }
        if self.sample_interval_ms == 0 {
            return Err("sample_interval_ms is 0; take at least 1".into());
        }
        if self.hosts.len() != 1 {
            return Err(format!(
                "{} hosts are named; this version runs on exactly one",
                self.hosts.len()
            ));
        }
        self.instances.iter().try_for_each(|instance| self.check_instance(instance))?;
        self.workloads.iter().try_for_each(|workload| self.check_workload(workload))?;
        self.check_threads()?;
        self.phases.iter().try_for_each(|phase| self.check_phase(phase))?;
        self.cluster.as_ref().map_or(Ok(()), |cluster| cluster.check(self))
    }

    /// How many threads carry the instances: an instance lives on one, and virtual time knows one
    /// only.
    pub fn threads_count(&self) -> usize {
        match self.modelled {
            Some(_) => 1,
            None => (self.threads.unwrap_or(1) as usize).clamp(1, self.instances.len().max(1)),
        }
    }

    /// The thread of each instance, counted from 0: in the order of the plan, each goes to the one
    /// that has the fewest databases.
    pub(crate) fn threads_of_instances(&self) -> Vec<usize> {
        let mut databases = vec![0; self.threads_count()];
        let place = |instance: &InstanceSpec| {
            let fewest = (0..databases.len()).min_by_key(|thread| databases[*thread]);
            let thread = fewest.unwrap_or(0);
            databases[thread] += instance.databases.len();
            thread
        };
        self.instances.iter().map(place).collect()
    }

    /// Sessions that are one pool over several instances are shared out between the threads of
    /// these: each needs one.
    fn check_threads(&self) -> Result<(), String> {
        let shards = self.threads_of_instances();
        for workload in &self.workloads {
            let Some(count) = workload.load.pooled_sessions() else {
                continue;
            };
            let named = shards.iter().zip(&self.instances);
            let threads: BTreeSet<_> = named
                .filter(|(_, instance)| workload.instances.contains(&instance.name))
                .map(|(shard, _)| *shard)
                .collect();
            if (count as usize) < threads.len() {
                return Err(format!(
                    "workload {} shares {count} sessions between instances on {} threads; take at \
                     least {} sessions, or fewer threads",
                    workload.name,
                    threads.len(),
                    threads.len()
                ));
            }
        }
        Ok(())
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        let name = &instance.name;
        if !self.targets.iter().any(|target| target.name == instance.target) {
            return Err(format!(
                "instance {name} is on target {}, which is not in the list",
                instance.target
            ));
        }
        if instance.weight.is_some_and(|weight| !(weight.is_finite() && weight > 0.0)) {
            return Err(format!("instance {name} has a weight that is not a number above zero"));
        }
        if instance.databases.is_empty() || instance.databases.len() > 250 {
            return Err(format!(
                "instance {name} has {} databases; take 1 to 250",
                instance.databases.len()
            ));
        }
        Ok(())
    }

    fn check_workload(&self, workload: &WorkloadSpec) -> Result<(), String> {
        let name = &workload.name;
        workload.load.check().map_err(|error| format!("workload {name}: {error}"))?;
        if workload.instances.is_empty() {
            return Err(format!("workload {name} has no instances"));
        }
        for wanted in &workload.instances {
            if !self.instances.iter().any(|instance| &instance.name == wanted) {
                return Err(format!(
                    "workload {name} names instance {wanted}, which is not in the list"
                ));
            }
        }
        Ok(())
    }

    fn check_phase(&self, phase: &PhaseSpec) -> Result<(), String> {
        let mut loads = Vec::new();
        for wanted in &phase.workloads {
            let found = self.workloads.iter().find(|workload| &workload.name == wanted);
            loads.push(found.ok_or_else(|| {
                format!("phase {} names workload {wanted}, which is not in the list", phase.name)
            })?);
        }
        for load in loads.iter().filter(|load| load.load.counts_database_io()) {
            let others = loads.iter().filter(|other| other.name != load.name);
            for other in others {
                if let Some(shared) =
                    load.instances.iter().find(|name| other.instances.contains(name))
                {
                    return Err(format!(
                        "workload {} aims at database I/O, but {} works on instance {shared} at \
                         the same time in phase {} \
                         and no one could tell whose I/O it is; give them instances of their own",
                        load.name, other.name, phase.name
                    ));
                }
            }
        }
        let searches = loads.iter().filter(|load| matches!(load.load, LoadSpec::Search(_))).count();
        if matches!(phase.action, PhaseAction::Search { .. }) && searches != 1 {
            return Err(format!(
                "phase {} searches, so exactly one of its workloads must say search; {searches} do",
                phase.name
            ));
        }
        Ok(())
    }
}
