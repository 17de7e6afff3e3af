//! What a plan says of a workload on files, and of the instances that hold them.

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_workload::files::{Access, AccessLine};

use crate::spec::{LoadSpec, WorkloadSpec};

/// What only this family knows of a workload.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// The access specification.
    pub access: Vec<AccessLineSpec>,
    /// Workers, between which the sessions of each file are shared out; those of a worker go on
    /// where the last one has ended.
    pub workers: u32,
    /// What becomes of transfers that are no whole number of logical blocks.
    pub below_block: BelowBlock,
}

/// One line of an access specification.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessLineSpec {
    /// How many of a hundred bursts are of this line.
    pub share_percent: u32,
    /// Bytes of a request.
    pub size_bytes: u64,
    /// How many of a hundred requests read.
    pub read_percent: u32,
    /// How many of a hundred transfers go to a random place.
    pub random_percent: u32,
    /// What the worker waits before a burst.
    pub delay_ms: u64,
    /// Transactions of a burst.
    pub burst: u32,
    /// Transfers begin at multiples of this; 0 for the sectors of the storage.
    pub align_bytes: u64,
    /// Bytes that answer each request; 0 for none.
    pub reply_bytes: u64,
}

/// See [`FilesSpec::below_block`].
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum BelowBlock {
    /// The run does not begin.
    Refuse,
    /// They are made longer, to whole blocks.
    Round,
    /// Reads are made longer; for a write the blocks are read, changed and written.
    ReadModifyWrite,
}

/// What only this family knows of an instance.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesInstance {
    /// What is written: 0 repeats one byte, 1 is random and the same at every write of a place, 2
    /// is random and new each time.
    pub data_pattern: u8,
    /// Whether what is read is compared with what was written.
    pub verify: bool,
}

/// What only this family knows of a file: nothing.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesDatabase {}

impl FilesSpec {
    /// What a workload says, checked.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of(workload: &WorkloadSpec) -> Result<(FilesSpec, Access), String> {
        let spec: FilesSpec = workload.options_as()?;
        let name = &workload.name;
        let access = spec.access().map_err(|error| format!("workload {name}: {error}"))?;
        if spec.workers == 0 {
            return Err(format!("workload {name} has 0 workers; take at least 1"));
        }
        match &workload.load {
            LoadSpec::Sessions(load) if !load.sessions.is_multiple_of(spec.workers) => {
                return Err(format!(
                    "workload {name} shares {} sessions out between {} workers; take a multiple",
                    load.sessions, spec.workers
                ));
            }
            LoadSpec::Sessions(load) if load.shared => {
                return Err(format!(
                    "workload {name} has one pool of sessions, but a slot belongs to one file; \
                     write shared = false"
                ));
            }
            LoadSpec::Sessions(_) => {}
            _ if access.delays() => {
                return Err(format!(
                    "workload {name} arrives by a schedule, but its access lines have delays; \
                     leave out one of both"
                ));
            }
            _ => {}
        }
        Ok((spec, access))
    }

    fn access(&self) -> Result<Access, plimsoll_workload::files::AccessError> {
        let lines = self.access.iter().map(|line| AccessLine {
            share_percent: line.share_percent,
            size_bytes: line.size_bytes,
            read_percent: line.read_percent,
            random_percent: line.random_percent,
            delay_ms: line.delay_ms,
            burst: line.burst,
            align_bytes: line.align_bytes,
            reply_bytes: line.reply_bytes,
        });
        Access::new(lines.collect())
    }
}
