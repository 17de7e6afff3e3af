//! Puts a workload on a backend, phase by phase, and reports what happened: samples while it runs, an outcome at the end.
//!
//! Nothing is judged here. The run is described by plain data ([`RunSpec`]) and carried out by [`execute`] on whatever disk
//! it is given.

mod backend;
mod edb_live;
mod erase_live;
mod error;
mod error_watch;
mod events;
mod host;
mod live;
mod load;
mod modelled;
mod outcome;
mod patience;
mod phase;
mod powercut;
mod processors;
mod recorder;
mod run;
mod sampler;
mod setting;
mod silence;
mod spec;
mod stage;
mod stalls;
mod step;
mod storage;
mod sweep;
mod verify_live;

pub use backend::prepared_database;
pub use edb_live::{
    EdbFile, EdbTable, TextCounts, TextFormat, WhenDirty, edb_repair_live, edb_tables_live, edb_text_live,
};
pub use erase_live::erase_device_live;
pub use error::RunError;
pub use events::{Event, Level};
pub use host::InstanceDevices;
pub use live::execute_live;
pub use modelled::execute_modelled;
pub use outcome::{
    BackupResult, Calibration, ChecksumReport, ChecksumResult, DatabaseState, Decision, Ending, ErrorReport,
    PhaseOutcome, PreconditionResult, RecoveryResult, RunOutcome, SearchEnd, SearchResult, SearchStep,
};
pub use phase::steadiness;
pub use powercut::{
    Acknowledged, Behaviour, CommitFound, Kind, MarkFound, PowercutOutcome, PowercutSpec, Rehearsal,
    RehearsalSpec, Survey, SurveyError, SurveyRecovery, Witness, powercut_live, rehearse, survey_live,
};
pub use recorder::{Key, PhaseFigures, Recorder};
pub use run::execute;
pub use setting::{Output, StopSignal};
pub use silence::SilentRun;
pub use spec::{InstanceSpec, ModelledSpec, PlaceSpec, RunSpec, SPEC_SCHEMA_VERSION};
pub use stalls::{IoStamps, Stall};
pub use sweep::{SweepAction, SweepFigures, SweepPoint, sweep_live, sweep_on};
pub use verify_live::{Depth, VerifyRequest, verify_live};
