//! Opens the copies that a backup of this run kept, or clones of the storage that a snapshot made:
//! recovers them with the log beside them, closes them, and reads every page. A backup is one when
//! it has been restored. The databases that it is of may be open meanwhile, or closed.
//!
//! Where a kept backup cannot be opened the run ends with that error. A clone is the work of
//! others: why it cannot be opened is what the phase has found.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::backend::{Backend, unable};
use crate::context::RunContext;
use crate::events::Level;
use crate::family::{ChecksumReads, Families};
use crate::outcome::{AuditReport, PhaseResult, RestoreResult, RestoredDatabase};
use crate::spec::{CloneSpec, InstanceSpec};
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    copies: Copies<'_>,
    reads: ChecksumReads,
    truncates: bool,
) -> Result<PhaseResult, RunError> {
    let mut tasks = Vec::new();
    for (number, instance) in state.run.shard.own(&state.spec.instances) {
        let family = state.families.of_instance(instance).map_err(RunError::Spec)?;
        let copy = copies.of_instance(family.as_crashed(instance));
        let (run, families) = (state.run.clone(), state.families.clone());
        tasks.push(
            state
                .run
                .handle
                .spawn(async move { restore(&run, &families, number, copy, reads).await }),
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
    if let Some(error) = first_error {
        return Err(error);
    }
    if truncates {
        // Log of an instance whose copy is not sound is all that is left of it.
        for restored in result.restores.iter_mut().filter(|restored| restored.bad() == 0) {
            restored.log_left_from = truncate(state, restored.instance).await?;
        }
    }
    Ok(result)
}

/// Deletes the log of an instance that its backup does not need; nothing of one that is closed.
async fn truncate(state: &RunState, number: u32) -> Result<Option<u32>, RunError> {
    let backend = state.backends.borrow().get(&(number as usize)).cloned();
    let kept = state.kept_logs.iter().find(|kept| kept.instance == number);
    let (Some(backend), Some(kept)) = (backend, kept) else { return Ok(None) };
    let instance = &state.spec.instances[number as usize];
    let backups = backend.backups().ok_or_else(|| unable(instance))?;
    let left_from = backups.truncate_log(kept.generation_first).await?;
    let text = format!(
        "{}: log before generation {left_from} deleted; its backup needs it from {} on",
        instance.name, kept.generation_first
    );
    state.run.report(Level::Info, "log_truncated", text);
    Ok(Some(left_from))
}

/// Which copies are to be restored.
#[derive(Clone, Copy)]
pub enum Copies<'a> {
    /// Those that a backup kept in this directory.
    Kept(&'a Path),
    /// Those on clones of the storage.
    Cloned(&'a [CloneSpec]),
}

impl<'a> Copies<'a> {
    /// What a spec says of them.
    ///
    /// # Errors
    /// [`RunError::Spec`] where it names both kinds or neither.
    pub fn of(
        from: Option<&'a Path>,
        clones: Option<&'a [CloneSpec]>,
    ) -> Result<Copies<'a>, RunError> {
        match (from, clones) {
            (Some(kept), None) => Ok(Copies::Kept(kept)),
            (None, Some(clones)) => Ok(Copies::Cloned(clones)),
            _ => Err(RunError::Spec(
                "a phase of kind restore needs either `from` or `clones`".into(),
            )),
        }
    }

    /// The instance that the copies make, if they can be told. They are there: what is missing is
    /// not made again.
    fn of_instance(self, mut instance: InstanceSpec) -> Copied {
        for database in &mut instance.databases {
            database.existing_records = Some(0);
        }
        match self {
            Copies::Kept(kept) => {
                (instance.directory, instance.log_directory) = instance.places_of_copy(kept);
                for database in &mut instance.databases {
                    database.file_name = database.name_of_copy();
                }
                Copied { instance, is_clone: false, why_not: None }
            }
            Copies::Cloned(clones) => {
                let cloned = as_cloned(&instance, clones);
                let why_not = match &cloned {
                    Err(why_not) => Some(why_not.clone()),
                    Ok(clone) => why_no_clone(&instance, clone),
                };
                let instance = cloned.unwrap_or(instance);
                Copied { instance, is_clone: true, why_not }
            }
        }
    }
}

/// An instance made of copies.
struct Copied {
    instance: InstanceSpec,
    is_clone: bool,
    /// Why it must not be opened.
    why_not: Option<String>,
}

fn as_cloned(instance: &InstanceSpec, clones: &[CloneSpec]) -> Result<InstanceSpec, String> {
    let place_of = |path: &Path| -> Result<PathBuf, String> {
        let places = clones.iter().filter(|clone| path.starts_with(&clone.of));
        // A volume may be mounted below another.
        let nearest = places.max_by_key(|clone| clone.of.components().count());
        let place = nearest.and_then(|clone| clone.place_of(path));
        place.ok_or_else(|| format!("no clone is of {}", path.display()))
    };
    Ok(InstanceSpec {
        directory: place_of(&instance.directory)?,
        log_directory: place_of(&instance.log_directory)?,
        ..instance.clone()
    })
}

/// Why what should be a clone is none: a file is missing, or it is the database itself.
#[expect(
    clippy::disallowed_methods,
    reason = "a clone is made by a command on this machine; a simulated disk has none"
)]
fn why_no_clone(instance: &InstanceSpec, clone: &InstanceSpec) -> Option<String> {
    let databases = (0..instance.databases.len())
        .map(|position| (instance.database_path(position), clone.database_path(position)));
    let logs = (instance.log_directory.clone(), clone.log_directory.clone());
    databases.chain([logs]).find_map(|(original, cloned)| {
        let found = match std::fs::metadata(&cloned) {
            Ok(found) => found,
            Err(error) => return Some(format!("{} cannot be read: {error}", cloned.display())),
        };
        let is_itself = std::fs::metadata(&original)
            .is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()));
        is_itself.then(|| {
            format!("{} is {} itself and no clone of it", cloned.display(), original.display())
        })
    })
}

async fn restore(
    run: &RunContext,
    families: &Families,
    number: usize,
    copied: Copied,
    reads: ChecksumReads,
) -> Result<RestoreResult, RunError> {
    let why = match copied.why_not {
        Some(why_not) => why_not,
        None => match opened(run, families, number, &copied.instance, reads).await {
            Err(error) if copied.is_clone && is_of_copy(&error) => error.to_string(),
            restored => return restored,
        },
    };
    let text = format!("{}: its clone was not opened: {why}", copied.instance.name);
    run.report(Level::Error, "not_restored", text);
    Ok(RestoreResult::not_opened(number, why))
}

/// Whether an error says something of the copy, and not of the run.
fn is_of_copy(error: &RunError) -> bool {
    !matches!(error, RunError::Stopped | RunError::Stuck | RunError::HungIo)
}

async fn opened(
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
        not_opened: None,
        log_left_from: None,
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
