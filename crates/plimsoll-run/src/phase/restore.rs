//! Opens the copies that a backup of this run kept, which recovers them with the log beside them,
//! closes them, and reads every page: a backup is one when it has been restored. The databases that
//! were backed up may be open meanwhile, or closed.

use std::path::Path;

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::backend::Backend;
use crate::context::RunContext;
use crate::events::Level;
use crate::family::{ChecksumReads, Families};
use crate::outcome::{AuditReport, PhaseResult, RestoreResult, RestoredDatabase};
use crate::spec::InstanceSpec;
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    from: &Path,
    reads: ChecksumReads,
) -> Result<PhaseResult, RunError> {
    let mut tasks = Vec::new();
    for (number, instance) in state.run.shard.own(&state.spec.instances) {
        let family = state.families.of_instance(instance).map_err(RunError::Spec)?;
        let copy = as_copy(family.as_crashed(instance), from);
        let (run, families) = (state.run.clone(), state.families.clone());
        tasks.push(
            state
                .run
                .handle
                .spawn(async move { restore(&run, &families, number, &copy, reads).await }),
        );
    }
    let mut result = PhaseResult { databases: state.databases(), ..PhaseResult::default() };
    let mut first_error = None;
    for task in tasks {
        match task.await {
            Ok(restored) => result.restores.push(restored),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(result), Err)
}

/// The instance that the copies make. They are there: what is missing is not made again.
fn as_copy(mut instance: InstanceSpec, kept: &Path) -> InstanceSpec {
    (instance.directory, instance.log_directory) = instance.places_of_copy(kept);
    for database in &mut instance.databases {
        database.existing_records = Some(0);
        database.file_name = database.name_of_copy();
    }
    instance
}

async fn restore(
    run: &RunContext,
    families: &Families,
    number: usize,
    copy: &InstanceSpec,
    reads: ChecksumReads,
) -> Result<RestoreResult, RunError> {
    let started = run.handle.now();
    // That a copy was not closed is no news, and its cache is nobody's concern.
    let quiet = run.without_events();
    let backend = families.open(&quiet, number as u16, copy).await?;
    let recovery_seconds = (run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
    let (recovery, states) = (backend.recovery(), backend.databases());
    let audited = audit(backend.as_ref()).await;
    backend.close().await?;
    let audit = audited?;
    let mut databases = Vec::new();
    for (position, found) in states.into_iter().enumerate() {
        let family = families.of_instance(copy).map_err(RunError::Spec)?;
        let report = family.checksum(run, number as u16, position, copy, reads).await?;
        databases.push(RestoredDatabase {
            database: position as u32 + 1,
            records_ever: found.records_ever,
            report,
        });
    }
    let seconds = (run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
    let result = RestoreResult {
        instance: number as u32,
        logs_count: recovery.as_ref().map_or(0, |found| found.logs_count),
        rolled_back: recovery.as_ref().map_or(0, |found| found.rolled_back),
        recovery_seconds,
        seconds,
        databases,
        audit,
    };
    let bad = result.bad();
    let (level, judged) = match bad {
        0 => (Level::Info, "every page is sound".into()),
        _ => (Level::Error, format!("{bad} pages or findings are bad")),
    };
    let text = format!(
        "{}: the copy was recovered from {} logs in {recovery_seconds:.1} s and closed; {judged}",
        copy.name, result.logs_count
    );
    run.report(level, "restored", text);
    Ok(result)
}

/// What an application says of the copy, where it can be asked.
async fn audit(backend: &dyn Backend) -> Result<Option<AuditReport>, RunError> {
    match backend.audits() {
        Some(able) => Ok(Some(able.audit().await?)),
        None => Ok(None),
    }
}
