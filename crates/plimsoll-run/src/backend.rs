//! What carries out operations: the engine, or raw files.
//!
//! A backend hosts one instance. It says what it found and how long its databases are; it times nothing, because disk
//! latency is measured at the disk and response time by the session that asked.

mod engine;
mod existing;
mod jobs;
mod raw_files;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_workload::{Operation, Population, Result as OperationResult};

use crate::RunError;
use crate::context::RunContext;
use crate::outcome::{DatabaseState, RecoveryResult};
use crate::spec::{BackendKind, InstanceSpec};

pub use engine::{EngineInstance, checksum as engine_checksum, prepared_database, run_error};
pub use raw_files::{RawFiles, checksum as raw_files_checksum};

/// The state of an instance, for samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceLevels {
    /// Cache in use.
    pub cache_used_bytes: u64,
    /// Most the cache may use; zero when there is no cache.
    pub cache_limit_bytes: u64,
    /// Page faults that found no free buffer, since the instance was opened.
    pub page_fault_stalls: u64,
    /// Number of the current log generation.
    pub log_generation: u64,
}

/// The open instances, in the order of the plan; the sampler looks at them too.
pub type OpenBackends = Rc<RefCell<Vec<Rc<Backend>>>>;

/// One instance under load, whatever stands behind it.
pub enum Backend {
    /// Preallocated files.
    RawFiles(RawFiles),
    /// The engine.
    Engine(EngineInstance),
}

impl Backend {
    /// Prepares the databases that do not exist and opens all of them.
    ///
    /// # Errors
    /// What the disk reports, or data that is not what was asked for.
    pub async fn open(run: &RunContext, number: u16, spec: &InstanceSpec) -> Result<Backend, RunError> {
        match spec.backend {
            BackendKind::RawFiles => Ok(Backend::RawFiles(RawFiles::open(run, number, spec).await?)),
            BackendKind::Engine => Ok(Backend::Engine(EngineInstance::open(run, number, spec).await?)),
        }
    }

    /// The records each database has.
    pub fn populations(&self) -> Vec<Population> {
        match self {
            Backend::RawFiles(files) => {
                let records = files.records_ever().into_iter();
                records.map(Population::prepared).collect()
            }
            Backend::Engine(instance) => instance.populations(),
        }
    }

    /// Carries out one transaction on a database of the instance, its commit included.
    ///
    /// # Errors
    /// Whatever ends the run.
    pub async fn execute(&self, database: usize, operation: &Operation) -> Result<OperationResult, RunError> {
        match self {
            Backend::RawFiles(files) => files.execute(database, operation).await,
            Backend::Engine(instance) => instance.execute(database, operation).await,
        }
    }

    /// The state of the instance now.
    pub fn levels(&self) -> InstanceLevels {
        match self {
            Backend::RawFiles(_) => InstanceLevels::default(),
            Backend::Engine(instance) => instance.levels(),
        }
    }

    /// The databases now.
    pub fn databases(&self) -> Vec<DatabaseState> {
        match self {
            Backend::RawFiles(files) => files.databases(),
            Backend::Engine(instance) => instance.databases(),
        }
    }

    /// The engine behind the instance.
    ///
    /// # Errors
    /// [`RunError::NotAnEngine`].
    pub fn engine(&self, name: &str) -> Result<&EngineInstance, RunError> {
        match self {
            Backend::RawFiles(_) => Err(RunError::NotAnEngine {
                instance: name.to_owned(),
            }),
            Backend::Engine(instance) => Ok(instance),
        }
    }

    /// What opening had to replay, if anything.
    pub fn recovery(&self) -> Option<RecoveryResult> {
        match self {
            Backend::RawFiles(_) => None,
            Backend::Engine(instance) => instance.recovery().cloned(),
        }
    }

    /// Lets go of everything as a crash would.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn abandon(self) -> Result<(), RunError> {
        match self {
            Backend::RawFiles(files) => files.close().await,
            Backend::Engine(instance) => instance.abandon().await,
        }
    }

    /// Closes everything cleanly.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn close(self) -> Result<(), RunError> {
        match self {
            Backend::RawFiles(files) => files.close().await,
            Backend::Engine(instance) => instance.close().await,
        }
    }
}
