//! An engine that is open, with the jobs that run beside it: what every family on the engine holds,
//! and what a backend answers by it.

use std::rc::Rc;

use plimsoll_engine::instance::Instance;
use plimsoll_engine::jobs::backup::Backup;
use plimsoll_engine::log::GENERATION_BYTES;

use super::jobs::Jobs;
use super::lagged::{lagged_copies_of, release_all};
use super::spec::RecordsInstance;
use crate::RunError;
use crate::backend::InstanceLevels;
use crate::context::RunContext;
use crate::outcome::{DatabaseState, RecoveryResult};

/// See the module text.
pub(crate) struct OpenEngine {
    instance: Rc<Instance>,
    jobs: Jobs,
    recovery: Option<RecoveryResult>,
    page_bytes: u64,
    cache_limit_bytes: u64,
}

impl OpenEngine {
    /// Starts the jobs that an instance wants.
    ///
    /// # Errors
    /// What the disk reports where an earlier run left holds of copies that there are no more.
    pub async fn start(
        run: &RunContext,
        instance: Rc<Instance>,
        settings: &RecordsInstance,
        recovery: Option<RecoveryResult>,
    ) -> Result<OpenEngine, RunError> {
        let page_bytes = u64::from(settings.page_bytes);
        let copies = lagged_copies_of(settings).map_err(RunError::Spec)?;
        release_all(&instance, &copies).await?;
        Ok(OpenEngine {
            jobs: Jobs::start(run, &instance, settings, copies),
            cache_limit_bytes: instance.store().cache.limits().frames_max as u64 * page_bytes,
            instance,
            recovery,
            page_bytes,
        })
    }

    /// The engine.
    pub fn instance(&self) -> &Rc<Instance> {
        &self.instance
    }

    /// What opening it had to replay, if anything.
    pub fn recovery(&self) -> Option<RecoveryResult> {
        self.recovery.clone()
    }

    /// The state of the instance now.
    pub fn levels(&self) -> InstanceLevels {
        let store = self.instance.store();
        let (oldest, tip) = (store.log.oldest_generation(), store.log.tip().generation);
        let bytes_from = |generation: u32| u64::from(tip + 1 - generation) * GENERATION_BYTES;
        InstanceLevels {
            cache_used_bytes: store.cache.frames_used() as u64 * self.page_bytes,
            cache_limit_bytes: self.cache_limit_bytes,
            page_fault_stalls: store.cache.statistics().page_fault_stalls,
            log_generation: u64::from(tip),
            log_space_bytes: bytes_from(oldest.min(tip)),
            log_lagged_bytes: self.jobs.lagged_needs_from().map_or(0, bytes_from),
        }
    }

    /// The databases now; how many records each ever had is what the family counts.
    pub fn databases(&self, records_ever: impl Iterator<Item = u64>) -> Vec<DatabaseState> {
        let open = self.instance.store().databases.all();
        let each = open.iter().zip(records_ever);
        each.map(|(database, records_ever)| DatabaseState {
            path: database.path().to_owned(),
            size_bytes: database.size().file_bytes(database.pages_in_use()),
            records_ever,
            ..DatabaseState::default()
        })
        .collect()
    }

    /// Pages of each database that were read with a flipped bit which their checksum put right.
    pub fn pages_corrected(&self) -> Vec<u64> {
        let open = self.instance.store().databases.all();
        open.iter().map(|database| database.statistics().corrected).collect()
    }

    /// Begins to read a database front to back.
    ///
    /// # Errors
    /// When there is no such database.
    pub fn backup(&self, position: usize, read_bytes: u32) -> Result<Backup, RunError> {
        let backup = Backup::start(&self.instance, position as u8 + 1, read_bytes as usize);
        Ok(backup?)
    }

    /// Deletes log before a generation that neither recovery nor a holder needs; the first that is
    /// left.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn truncate_log(&self, before: u32) -> Result<u32, RunError> {
        Ok(self.instance.truncate_log(before).await?)
    }

    /// Stops the jobs and closes the instance cleanly.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn close(self) -> Result<(), RunError> {
        let stopped = self.jobs.stop().await;
        let released = release_all(&self.instance, &[]).await;
        self.instance.close().await?;
        stopped?;
        Ok(released?)
    }

    /// Stops the jobs and lets go of the instance as a crash would.
    ///
    /// # Errors
    /// What the disk reports.
    pub async fn abandon(self) -> Result<(), RunError> {
        let stopped = self.jobs.stop().await;
        self.instance.abandon().await?;
        Ok(stopped?)
    }
}
