//! What to run, as plain data. Every value is present: defaults live in `python/plimsoll/settings.py` and nowhere else.
//!
//! Unknown keys are refused, so that a plan written for a later version does not quietly run as something else.

mod load;
mod modelled;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_engine::PageSize;

use crate::RunError;

pub use load::{CriterionSpec, LoadSpec, SearchSpec, SpacingSpec, StatisticSpec, TargetIopsSpec};
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
    /// How writes are made durable: "faster", "dsync" or "fdatasync"; absent: whichever is faster on the device.
    pub durable_writes: Option<String>,
    /// Reads and writes the run does at most in a second, to limit the load on storage that others use too.
    pub max_iops: Option<f64>,
    /// MiB the run reads and writes at most in a second.
    pub max_mib_per_s: Option<f64>,
    /// Serials of the block devices that may be overwritten, as the user has typed them.
    pub destroy_serials: Vec<String>,
    /// A modelled array in the place of real storage; absent: the disks of this machine.
    pub modelled: Option<ModelledSpec>,
    /// Machines; this version runs on one.
    pub hosts: Vec<HostSpec>,
    /// Places to put databases.
    pub targets: Vec<TargetSpec>,
    /// Engine instances or raw files.
    pub instances: Vec<InstanceSpec>,
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

/// One log stream, one cache, one or more databases.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceSpec {
    /// Its name in the plan.
    pub name: String,
    /// Which target holds it.
    pub target: String,
    /// What stands behind it.
    pub backend: String,
    /// Directory of the databases.
    pub directory: PathBuf,
    /// Whether databases may be there that their last run has not closed: whole ones are recovered, begun ones are prepared again.
    pub unfinished: bool,
    /// Directory of log and checkpoint.
    pub log_directory: PathBuf,
    /// Its share of a workload that works on several instances, relative to theirs; absent: 1.
    pub weight: Option<f64>,
    /// Page size.
    pub page_bytes: u32,
    /// The databases.
    pub databases: Vec<DatabaseSpec>,
    /// The cache never shrinks below this.
    pub cache_bytes_min: u64,
    /// The cache never grows above this.
    pub cache_bytes_max: u64,
    /// Log that may be needed for recovery before pages are flushed for the checkpoint's sake.
    pub checkpoint_depth_bytes: u64,
    /// Whether the checkpoint stays where it was when the instance was opened, so that a crash leaves the whole log to be
    /// redone; absent: it moves.
    pub hold_checkpoint: Option<bool>,
    /// Whether logs before the checkpoint are deleted.
    pub circular_log: bool,
    /// "sector_512" or "segment_4096".
    pub log_framing: String,
    /// Whether the first change of a page after a checkpoint is logged as a whole page.
    pub page_images: bool,
    /// Copies of each database in the site; for each beyond the first the log is read back.
    pub copies_count: u32,
    /// Background maintenance, if it runs.
    pub maintenance: Option<MaintenanceSpec>,
    /// Log bytes that may wait to be written before changes have to wait.
    pub log_buffer_bytes: u64,
    /// Bytes of old row versions kept at most.
    pub version_store_bytes_max: u64,
    /// Pages a database grows by.
    pub extension_pages: u32,
    /// Pages changed in this many newest log generations are not written.
    pub waypoint_generations: u32,
    /// Page writes under way at once.
    pub writes_outstanding_max: u32,
}

impl InstanceSpec {
    /// Where a database lies. Joining leaves the absolute path of a device as it is.
    pub fn database_path(&self, position: usize) -> PathBuf {
        self.directory.join(&self.databases[position].file_name)
    }

    /// The page size, checked.
    ///
    /// # Errors
    /// When the format knows no such page size.
    pub fn page_size(&self) -> Result<PageSize, RunError> {
        PageSize::from_bytes(self.page_bytes).ok_or_else(|| {
            RunError::Spec(format!(
                "instance {} has pages of {} bytes; take 4096, 8192, 16384 or 32768",
                self.name, self.page_bytes
            ))
        })
    }
}

/// Background database maintenance.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceSpec {
    /// Pause before each read.
    pub throttle_ms: u64,
    /// Length of a read.
    pub read_bytes: u32,
}

/// One database.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSpec {
    /// Its file, inside the instance's directory; or a whole block device, by its absolute path.
    pub file_name: String,
    /// Its length when prepared.
    pub size_bytes: u64,
    /// Decides its content.
    pub seed: u64,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Share of the content that a compressor could remove.
    pub compressible_percent: u32,
    /// Share of leaves with room for a further record, as after a long life; absent: all are full.
    pub vacancy_percent: Option<u32>,
    /// Leaves that it has in common with the other databases that say the same; absent: none.
    pub sharing: Option<SharingSpec>,
    /// Records ever inserted, when an existing database is used; absent when it is to be prepared.
    pub existing_records: Option<u64>,
}

/// Content that several databases have in common, for storage that deduplicates.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharingSpec {
    /// Decides which leaves are shared and what they hold.
    pub seed: u64,
    /// How many of a million leaves.
    pub leaves_per_million: u32,
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
    pub options: serde_json::Map<String, serde_json::Value>,
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
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PhaseAction {
    /// Makes the databases that do not exist yet and opens all of them.
    Prepare {},
    /// Waits until every cache holds this share of its limit.
    WarmUp { cache_percent: u32, timeout_s: f64 },
    /// Lets the workloads run in rounds until their database IOPS keep steady, or the rounds are over.
    Precondition(PreconditionSpec),
    /// Lets the workloads run without being measured, for so long and then until a moment in UTC, where one is given.
    Soak {
        duration_s: f64,
        until_utc_s: Option<f64>,
    },
    /// Lets the workloads run.
    Measure { duration_s: f64 },
    /// Looks for the highest rate that keeps the limits of its workload, and stays at it.
    Search { duration_s: f64 },
    /// Reads every page of the open databases front to back and keeps nothing.
    Backup { read_bytes: u32, reads_in_flight: u32 },
    /// Lets the workloads run until every instance has written so many generations of its log.
    GenerateLogs { logs_count: u32, timeout_s: f64 },
    /// Drops the open instances as a crash would and opens them again, which replays their log.
    Recover {},
    /// Closes the databases cleanly.
    Stop {},
    /// Reads every page and verifies its checksum.
    Checksum { read_bytes: u32, reads_in_flight: u32 },
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
    /// How much the straight line through them may rise or fall over the window, as a share of their mean.
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
            PhaseAction::GenerateLogs { .. } => "generate_logs",
            PhaseAction::Recover {} => "recover",
            PhaseAction::Stop {} => "stop",
            PhaseAction::Checksum { .. } => "checksum",
        }
    }

    /// How long it may last by its own time; nothing for what is done when it is done.
    pub fn lasts_s(&self) -> f64 {
        match self {
            PhaseAction::WarmUp { timeout_s, .. } | PhaseAction::GenerateLogs { timeout_s, .. } => *timeout_s,
            PhaseAction::Measure { duration_s } | PhaseAction::Search { duration_s } => *duration_s,
            PhaseAction::Precondition(spec) => spec.round_s * f64::from(spec.rounds_max),
            // It looks at nothing but the time, which may be one of the calendar.
            PhaseAction::Soak { .. } => f64::INFINITY,
            PhaseAction::Prepare {}
            | PhaseAction::Backup { .. }
            | PhaseAction::Recover {}
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
                | PhaseAction::Recover {}
                | PhaseAction::Checksum { .. }
        )
    }
}

impl RunSpec {
    /// Reads a spec and checks what the types cannot, all but what only families know.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong. The people's plan was checked before, so this is a second line of defence.
    pub(crate) fn read(text: &str) -> Result<RunSpec, RunError> {
        let spec: RunSpec = serde_json::from_str(text).map_err(|error| RunError::Spec(error.to_string()))?;
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
        if self.sample_interval_ms == 0 {
            return Err("sample_interval_ms is 0; take at least 1".into());
        }
        if self.hosts.len() != 1 {
            return Err(format!(
                "{} hosts are named; this version runs on exactly one",
                self.hosts.len()
            ));
        }
        self.instances
            .iter()
            .try_for_each(|instance| self.check_instance(instance))?;
        self.workloads
            .iter()
            .try_for_each(|workload| self.check_workload(workload))?;
        self.phases.iter().try_for_each(|phase| self.check_phase(phase))
    }

    fn check_instance(&self, instance: &InstanceSpec) -> Result<(), String> {
        let name = &instance.name;
        if !self.targets.iter().any(|target| target.name == instance.target) {
            return Err(format!(
                "instance {name} is on target {}, which is not in the list",
                instance.target
            ));
        }
        if instance
            .weight
            .is_some_and(|weight| !(weight.is_finite() && weight > 0.0))
        {
            return Err(format!(
                "instance {name} has a weight that is no number above zero"
            ));
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
        workload
            .load
            .check()
            .map_err(|error| format!("workload {name}: {error}"))?;
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
                format!(
                    "phase {} names workload {wanted}, which is not in the list",
                    phase.name
                )
            })?);
        }
        for load in loads.iter().filter(|load| load.load.counts_database_io()) {
            let others = loads.iter().filter(|other| other.name != load.name);
            for other in others {
                if let Some(shared) = load.instances.iter().find(|name| other.instances.contains(name)) {
                    return Err(format!(
                        "workload {} aims at database I/O, but {} works on instance {shared} at the same time in phase {} \
                         and no one could tell whose I/O it is; give them instances of their own",
                        load.name, other.name, phase.name
                    ));
                }
            }
        }
        let searches = loads
            .iter()
            .filter(|load| matches!(load.load, LoadSpec::Search(_)))
            .count();
        if matches!(phase.action, PhaseAction::Search { .. }) && searches != 1 {
            return Err(format!(
                "phase {} searches, so exactly one of its workloads must say search; {searches} do",
                phase.name
            ));
        }
        Ok(())
    }
}
