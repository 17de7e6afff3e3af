//! What a plan says of a workload on records.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use plimsoll_workload::records::{Habits, Locality, Mix};

use crate::spec::WorkloadSpec;

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
        let options = Value::Object(workload.options.clone());
        RecordsSpec::deserialize(options).map_err(|error| format!("workload {}: {error}", workload.name))
    }

    /// Whether the values are possible.
    ///
    /// # Errors
    /// The first thing that is not.
    pub fn check(&self, workload: &str) -> Result<(), String> {
        let mix = Mix::from(self.mix);
        mix.check()
            .map_err(|error| format!("workload {workload}: {error}"))
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
