//! How a run ended: everything that is not a sample or an event, as plain data.

mod search;

use std::collections::BTreeMap;

use serde::Serialize;

use plimsoll_array::ArrayReport;
use plimsoll_io::{Nanos, UtcAnchor};

use crate::RunError;
use crate::host::InstanceDevices;
use crate::recorder::PhaseFigures;
use crate::stalls::Stall;

pub use search::{Decision, Latency, SearchEnd, SearchFigure, SearchResult, SearchStep};

/// The version of this shape.
pub const OUTCOME_SCHEMA_VERSION: u32 = 1;

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every phase was carried out.
    Complete,
    /// The user or a signal asked to stop.
    Interrupted,
    /// An error ended it.
    Failed,
}

impl Ending {
    /// How a run ended that this error ended, if any did.
    pub fn of(error: Option<&RunError>) -> Ending {
        match error {
            None => Ending::Complete,
            Some(RunError::Stopped | RunError::Stuck) => Ending::Interrupted,
            Some(_) => Ending::Failed,
        }
    }
}

/// A thread of the run and what it carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadOutcome {
    /// Its number, counted from 1; samples name it so.
    pub thread: u32,
    /// Its instances, by their names.
    pub instances: Vec<String>,
    /// The processor it was kept on, if it was.
    pub processor: Option<u32>,
}

/// A database as the report needs to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DatabaseState {
    /// Its file.
    pub path: std::path::PathBuf,
    /// Its length now.
    pub size_bytes: u64,
    /// Records ever inserted.
    pub records_ever: u64,
    /// By what commits that were acknowledged can be lost; absent where they are durable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits_at_risk: Vec<String>,
}

/// What a checksum pass found in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ChecksumReport {
    /// Which file.
    pub path: std::path::PathBuf,
    /// Pages read.
    pub pages_seen: u64,
    /// Pages whose checksum is wrong beyond repair, that cannot be read, that are missing, or that
    /// were never written though they are in use; and damaged copies of the header.
    pub bad: u64,
    /// Pages with one flipped bit.
    pub correctable: u64,
    /// Pages that belong elsewhere.
    pub wrong_page_number: u64,
    /// Pages never written.
    pub uninitialized: u64,
    /// What is wrong besides pages that were read, in sentences.
    pub reasons: Vec<String>,
}

/// A checksum pass over one database.
#[derive(Clone, Debug, Serialize)]
pub struct ChecksumResult {
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance, from 1.
    pub database: u32,
    /// What was found.
    #[serde(flatten)]
    pub report: ChecksumReport,
    /// How long it took.
    pub seconds: f64,
    /// How fast it read.
    pub mib_per_s: f64,
}

/// A database that was read front to back.
#[derive(Clone, Debug, Serialize)]
pub struct BackupResult {
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance, from 1.
    pub database: u32,
    /// Its file.
    pub path: std::path::PathBuf,
    /// Pages read and found sound.
    pub pages_count: u64,
    /// Bytes read, headers not counted.
    pub bytes: u64,
    /// Pages with a flipped bit that was put right in memory.
    pub correctable: u64,
    /// Copies of the header that were damaged when the database was opened after a clean end.
    pub headers_bad: u64,
    /// First log generation a copy would need.
    pub generation_first: u32,
    /// Last log generation a copy would need.
    pub generation_last: u32,
    /// How long it took.
    pub seconds: f64,
    /// How fast it read.
    pub mib_per_s: f64,
    /// Its copy; absent where none was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_at: Option<std::path::PathBuf>,
}

/// The log that was kept beside the copies of an instance.
#[derive(Clone, Debug, Serialize)]
pub struct KeptLog {
    /// Position of the instance.
    pub instance: u32,
    /// First generation.
    pub generation_first: u32,
    /// Last generation.
    pub generation_last: u32,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How long it took to copy them and to end the copies.
    pub seconds: f64,
}

/// The copies of an instance, restored.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RestoreResult {
    /// Position of the instance.
    pub instance: u32,
    /// Generations that were replayed.
    pub logs_count: u64,
    /// Transactions that were taken back.
    pub rolled_back: u64,
    /// From opening the copies until transactions could begin.
    pub recovery_seconds: f64,
    /// Until every page was verified.
    pub seconds: f64,
    /// The databases.
    pub databases: Vec<RestoredDatabase>,
    /// What the application says of them; absent where it cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReport>,
    /// Why a clone could not be opened; absent where it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_opened: Option<String>,
    /// The first generation that is left of the log; absent where it was not truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_left_from: Option<u32>,
}

impl RestoreResult {
    /// Of copies that could not be opened.
    pub(crate) fn not_opened(instance: usize, why: String) -> RestoreResult {
        RestoreResult {
            instance: instance as u32,
            not_opened: Some(why),
            ..RestoreResult::default()
        }
    }

    /// Pages that are bad, and findings of the application.
    pub fn bad(&self) -> u64 {
        let pages: u64 = self.databases.iter().map(|found| found.report.bad).sum();
        let findings = self.audit.as_ref().map_or(0, |audit| audit.findings.len() as u64);
        pages + findings + u64::from(self.not_opened.is_some())
    }
}

/// One database of them.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredDatabase {
    /// Database of the instance, from 1.
    pub database: u32,
    /// How many numbers of records it has used up.
    pub records_ever: u64,
    /// Its pages.
    #[serde(flatten)]
    pub report: ChecksumReport,
}

/// A log that was replayed because its databases had not been closed.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveryResult {
    /// Position of the instance.
    pub instance: u32,
    /// From opening the files until transactions could begin again.
    pub seconds: f64,
    /// Generations that were replayed, the first and the last in part.
    pub logs_count: u64,
    /// The first of them.
    pub generation_first: u32,
    /// The last of them.
    pub generation_last: u32,
    /// Records of the log that were read, in bytes.
    pub log_bytes: u64,
    /// Changes of pages that were made.
    pub changes_made: u64,
    /// Changes of pages that were found in the file already.
    pub changes_found: u64,
    /// Transactions that were taken back.
    pub rolled_back: u64,
}

/// An instance that came back on a survivor after its node had died.
#[derive(Clone, Debug, Serialize)]
pub struct Failover {
    /// The event of the plan.
    pub event: String,
    /// Position of the instance.
    pub instance: u32,
    /// Who died.
    pub node: String,
    /// Who survived.
    pub to: String,
    /// When the node died.
    pub died_ns: Nanos,
    /// When the instance could be spoken to again.
    pub opened_ns: Nanos,
    /// When the first operation was served again; absent: none was in this phase.
    pub served_ns: Option<Nanos>,
    /// Operations that were being carried out when the node died.
    pub lost_count: u64,
    /// Most its cache may use on the survivor.
    pub cache_bytes_max: u64,
    /// What had to be replayed, if anything.
    pub recovery: Option<RecoveryResult>,
}

/// Whether an instance holds what was done to it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditReport {
    /// What was counted, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// What does not add up, in sentences.
    pub findings: Vec<String>,
}

/// The audit of one instance.
#[derive(Clone, Debug, Serialize)]
pub struct AuditResult {
    /// Position of the instance.
    pub instance: u32,
    /// How long it took.
    pub seconds: f64,
    /// What was found.
    #[serde(flatten)]
    pub report: AuditReport,
}

/// The rate that was fixed for a load that aims at database I/O.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// The workload.
    pub workload: String,
    /// What it aims at.
    pub target_iops: f64,
    /// What was measured.
    pub io_per_transaction: f64,
    /// What follows.
    pub transactions_per_s: f64,
    /// How often it was measured.
    pub windows_count: u32,
    /// Whether the last two measurements agreed.
    pub agreed: bool,
}

/// A stage of a load, as it came.
#[derive(Clone, Debug, Serialize)]
pub struct LoadStage {
    /// The workload.
    pub workload: String,
    /// Which of its stages, from 1.
    pub stage: u32,
    /// The share of its rate.
    pub rate_percent: f64,
    /// What arrived.
    pub transactions_per_s: f64,
    /// When it began.
    pub start_ns: Nanos,
    /// When it ended.
    pub end_ns: Nanos,
}

/// How steady the rounds of a window are, each as a share of their mean in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// From the lowest to the highest round.
    pub range_percent: f64,
    /// From one end of the best straight line to the other.
    pub slope_percent: f64,
}

/// What preconditioning came to.
#[derive(Clone, Debug, Serialize)]
pub struct PreconditionResult {
    /// Database IOPS of every round.
    pub rounds_iops: Vec<f64>,
    /// Length of a round.
    pub round_s: f64,
    /// Rounds that were looked at together.
    pub window_rounds: u32,
    /// The last window; absent when there were too few rounds for one.
    pub last_window: Option<Steadiness>,
    /// What the window was held against.
    pub range_percent_max: f64,
    /// Likewise.
    pub slope_percent_max: f64,
    /// Whether it kept within both.
    pub is_steady: bool,
}

/// What a phase found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PhaseResult {
    /// The databases of each instance at its end.
    pub databases: Vec<Vec<DatabaseState>>,
    /// Checksum passes.
    pub checksums: Vec<ChecksumResult>,
    /// Databases that were backed up.
    pub backups: Vec<BackupResult>,
    /// Logs that were kept with backups; absent where none were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_logs: Vec<KeptLog>,
    /// Backups that were restored; absent where none were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restores: Vec<RestoreResult>,
    /// Instances that were audited; absent where none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audits: Vec<AuditResult>,
    /// Logs that were replayed.
    pub recoveries: Vec<RecoveryResult>,
    /// Instances that came back on a survivor; absent where none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failovers: Vec<Failover>,
    /// Rates that were measured and fixed.
    pub calibrations: Vec<Calibration>,
    /// Stages that loads went through; absent where none has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<LoadStage>,
    /// What a search found.
    pub search: Option<SearchResult>,
    /// Whether the storage became steady; absent where that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PreconditionResult>,
    /// What a modelled array counted; absent on real storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayReport>,
}

/// A phase that was begun.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseOutcome {
    /// Its name in the plan.
    pub name: String,
    /// What it was for.
    pub kind: &'static str,
    /// When it began.
    pub start_ns: Nanos,
    /// When it ended.
    pub end_ns: Nanos,
    /// Whether it did all it was for.
    pub complete: bool,
    /// What it found.
    #[serde(flatten)]
    pub result: PhaseResult,
}

/// Two readings of one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Anchor {
    /// Monotonic.
    pub monotonic_ns: Nanos,
    /// Nanoseconds since 1970.
    pub utc_ns: u64,
    /// What must be added on this host.
    pub host_offset_ns: i64,
}

impl From<UtcAnchor> for Anchor {
    fn from(anchor: UtcAnchor) -> Anchor {
        Anchor {
            monotonic_ns: anchor.monotonic_ns,
            utc_ns: anchor.utc_ns,
            host_offset_ns: anchor.host_offset_ns,
        }
    }
}

/// An error as plain data.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorReport {
    /// "config", "disk", "corruption", "stopped", "service", "cluster", "overloaded" or "other".
    pub family: &'static str,
    /// What happened and what to do.
    pub text: String,
}

impl From<&RunError> for ErrorReport {
    fn from(error: &RunError) -> ErrorReport {
        ErrorReport { family: error.family(), text: error.to_string() }
    }
}

/// See the module text.
#[derive(Clone, Debug, Serialize)]
pub struct RunOutcome {
    /// [`OUTCOME_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// How far it came.
    pub ending: Ending,
    /// What ended it, unless it is complete.
    pub error: Option<ErrorReport>,
    /// Whether this is a debug build, whose figures mean nothing.
    pub debug_build: bool,
    /// Whether time was simulated.
    pub virtual_time: bool,
    /// How I/O was done.
    pub io_method: String,
    /// What a reader must know about that.
    pub io_remarks: Vec<String>,
    /// What was chosen because it was measured to be better, such as the way of durable writes.
    pub io_choices: Vec<String>,
    /// The threads that carried the instances; absent where one carried all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadOutcome>,
    /// Ties the run's clock to UTC, at its start, at every phase and at its end.
    pub anchors: Vec<Anchor>,
    /// Which block devices carry the instances; empty in virtual time.
    pub devices: Vec<InstanceDevices>,
    /// The phases, in order.
    pub phases: Vec<PhaseOutcome>,
    /// The longest transactions of each phase, longest first.
    pub stalls: Vec<Stall>,
    /// Distributions by phase.
    pub figures: Vec<PhaseFigures>,
}
