//! What a plan says of a workload on records, and of the instances and databases that hold them.

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_engine::PageSize;
use plimsoll_workload::records::{Habits, Locality, Mix};

use crate::RunError;
use crate::spec::{InstanceSpec, WorkloadSpec};

/// What only this family knows of a workload.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordsSpec {
    /// What it does.
    pub mix: MixSpec,
    /// Where it does it; absent: anywhere, new records at the end.
    pub locality: Option<LocalitySpec>,
    /// Think time as a multiple of service time.
    pub sluggish: f64,
}

/// Shares of operations, in percent.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// New records.
    pub insert_percent: u32,
    /// Removed records.
    pub delete_percent: u32,
    /// Rewritten records.
    pub replace_percent: u32,
    /// Read records.
    pub read_percent: u32,
    /// Commits that do not wait.
    pub lazy_commit_percent: u32,
}

impl From<MixSpec> for Mix {
    fn from(spec: MixSpec) -> Mix {
        Mix {
            insert_percent: spec.insert_percent,
            delete_percent: spec.delete_percent,
            replace_percent: spec.replace_percent,
            read_percent: spec.read_percent,
            lazy_commit_percent: spec.lazy_commit_percent,
        }
    }
}

/// Where sessions work and where new records go.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalitySpec {
    /// Records of the folder that a batch stays in; 0 for the whole database.
    pub folder_records: u64,
    /// Operations of a batch.
    pub batch_operations: u32,
    /// Whether new records go beside records read in the batch, where there is room.
    pub replies: bool,
    /// Share of the records that are hot; absent: none.
    pub hot_percent: Option<u32>,
    /// Share of the operations that go to them.
    pub hot_access_percent: Option<u32>,
}

impl RecordsSpec {
    /// What a workload says of records.
    ///
    /// # Errors
    /// A key that is missing, unknown or of a wrong kind.
    pub fn of(workload: &WorkloadSpec) -> Result<RecordsSpec, String> {
        workload.options_as()
    }

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self, workload: &str) -> Result<(), String> {
        let mix = Mix::from(self.mix);
        mix.check().map_err(|error| format!("workload {workload}: {error}"))
    }

    /// What its sessions do and where.
    pub fn habits(&self) -> Habits {
        Habits {
            mix: self.mix.into(),
            locality: self.locality.map_or(Locality::default(), |spec| Locality {
                folder_records: spec.folder_records,
                batch_operations: spec.batch_operations,
                replies: spec.replies,
                hot_percent: spec.hot_percent.unwrap_or_default(),
                hot_access_percent: spec.hot_access_percent.unwrap_or_default(),
            }),
        }
    }
}

/// What only this family knows of an instance: one log stream, one cache. Raw files heed the page
/// size alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordsInstance {
    /// Page size.
    pub page_bytes: u32,
    /// The cache never shrinks below this.
    pub cache_bytes_min: u64,
    /// The cache never grows above this.
    pub cache_bytes_max: u64,
    /// Log that may be needed for recovery before pages are flushed for the checkpoint's sake.
    pub checkpoint_depth_bytes: u64,
    /// Whether the checkpoint stays where it was when the instance was opened, so that a crash
    /// leaves the whole log to be redone; absent: it moves.
    pub hold_checkpoint: Option<bool>,
    /// Whether logs before the checkpoint are deleted.
    pub circular_log: bool,
    /// "sector_512" or "segment_4096".
    pub log_framing: String,
    /// Whether the first change of a page after a checkpoint is logged as a whole page.
    pub page_images: bool,
    /// Copies of each database in the site; for each beyond the first the log is read back.
    pub copies_count: u32,
    /// Passive copies that replay the log later than it is written; absent: none.
    pub lagged_copies: Option<Vec<LaggedCopySpec>>,
    /// Background maintenance, if it runs.
    pub maintenance: Option<MaintenanceSpec>,
    /// Seconds for which a transaction stays open from the time the instance is opened, and reads
    /// the same rows again and again; absent: none does.
    pub long_reader_s: Option<u32>,
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

/// A passive copy with a lag, in time or in logs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaggedCopySpec {
    /// What it is called.
    pub name: String,
    /// Seconds for which it does not replay what was written.
    pub lag_s: Option<f64>,
    /// Closed generations that it does not replay.
    pub lag_logs: Option<u32>,
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

/// What only this family knows of a database.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordsDatabase {
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Share of the content that a compressor could remove.
    pub compressible_percent: u32,
    /// Share of leaves with room for a further record, as after a long life; absent: all are full.
    pub vacancy_percent: Option<u32>,
    /// Leaves that it has in common with the other databases that say the same; absent: none.
    pub sharing: Option<SharingSpec>,
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

impl RecordsInstance {
    /// What an instance says.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong.
    pub fn of(instance: &InstanceSpec) -> Result<RecordsInstance, RunError> {
        instance.options_as().map_err(RunError::Spec)
    }

    /// The page size, checked.
    ///
    /// # Errors
    /// When the format knows no such page size.
    pub fn page_size(&self, instance: &str) -> Result<PageSize, String> {
        PageSize::from_bytes(self.page_bytes).ok_or_else(|| {
            format!(
                "instance {instance} has pages of {} bytes; take 4096, 8192, 16384 or 32768",
                self.page_bytes
            )
        })
    }
}

impl RecordsDatabase {
    /// What a database of an instance says.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong.
    pub fn of(instance: &InstanceSpec, position: usize) -> Result<RecordsDatabase, RunError> {
        instance.database_options_as(position).map_err(RunError::Spec)
    }
}

/// Bytes of a page of an instance on the engine; zero where they cannot be read, which the spec was
/// checked for.
pub(crate) fn page_bytes(instance: &InstanceSpec) -> u32 {
    RecordsInstance::of(instance).map_or(0, |settings| settings.page_bytes)
}

/// An instance on the engine as it is found after a crash: its checkpoint moves again from here on.
pub(crate) fn as_crashed(instance: &InstanceSpec) -> InstanceSpec {
    let mut crashed = instance.as_crashed();
    crashed.options.insert("hold_checkpoint".into(), false.into());
    crashed
}
