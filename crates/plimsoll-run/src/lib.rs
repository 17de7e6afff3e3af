//! Puts a workload on a backend, phase by phase, and reports what happened: samples while it runs,
//! an outcome at the end.
//!
//! Nothing is judged here. The run is described by plain data ([`RunSpec`]) and carried out by
//! [`execute`] on whatever disk it is given.

mod backend;
mod busy;
mod context;
mod error;
mod error_watch;
mod events;
mod families;
mod family;
mod files;
mod homes;
mod host;
mod live;
mod load;
mod mail;
mod modelled;
mod nodes;
mod outcome;
mod phase;
mod processors;
mod recorder;
mod records;
mod run;
mod sampler;
mod schema;
mod sequential;
mod shards;
mod spec;
mod stalls;
mod state;
mod step;
mod storage;
mod store;
mod takeover;
mod timeout;
mod watch;

pub use backend::{Audits, Backend, Backups, Crashes, InstanceLevels, Work, only};
pub use context::{Output, RunContext};
pub use error::RunError;
pub use events::{Event, Level};
pub use families::built_in;
pub use family::{BackendSchemas, ChecksumReads, Families, Family};
pub use host::InstanceDevices;
pub use live::{execute_held, execute_live};
pub use load::{Book, Drive, Label, LoadInstance, LoadStart, Pair, RunningLoad, Service};
pub use mail::MailFamily;
pub use modelled::execute_modelled;
pub use outcome::{
    AuditReport, AuditResult, BackupResult, Calibration, ChecksumReport, ChecksumResult,
    DatabaseState, Decision, Ending, ErrorReport, PhaseOutcome, PreconditionResult, RecoveryResult,
    RunOutcome, SearchEnd, SearchResult, SearchStep, ThreadOutcome,
};
pub use phase::steadiness;
pub use plimsoll_io::{StopSignal, WriteHold};
pub use recorder::{Key, PhaseFigures, Recorder};
pub use records::{Records, prepared_database};
pub use run::{execute, execute_for};
pub use shards::execute_on_threads;
pub use spec::{
    InstanceSpec, ModelledSpec, PlaceSpec, RunSpec, SPEC_SCHEMA_VERSION, SpacingSpec, WorkloadSpec,
};
pub use stalls::{IoStamps, Stall};
pub use storage::Storage;
pub use watch::RunWatch;
