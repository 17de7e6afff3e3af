//! Reads every page of every open database front to back, all databases at once. Each page is
//! verified, because a copy of damage is no copy. Transactions may go on meanwhile. Without a place
//! for copies nothing is kept: that is the rate at which a backup could be taken.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_engine::jobs::backup::{Backup, BackupReport};
use plimsoll_engine::jobs::copy::{Copied, Copy, seal};
use plimsoll_engine::log::names::LogNames;
use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::backend::unable;
use crate::context::RunContext;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::{BackupResult, KeptLog, PhaseResult};
use crate::records::{LOG_BASE, until_stop};
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    name: &str,
    reads: ChecksumReads,
    to: Option<&Path>,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let mut tasks = Vec::new();
    let backends = state.backends.borrow().clone();
    for (number, backend) in backends {
        let instance = &state.spec.instances[number];
        let backups = backend.backups().ok_or_else(|| unable(instance))?;
        for position in 0..instance.databases.len() {
            let path = instance.database_path(position);
            let target = to.map(|to| instance.path_of_copy(to, position));
            let (run, backup) = (state.run.clone(), backups.backup(position, reads.read_bytes)?);
            let backup = backup.with_reads_outstanding(reads.in_flight as usize);
            let task = state.run.handle.spawn(async move {
                let started = run.handle.now();
                let (report, copied) = match &target {
                    None => (read(&run, backup).await?, None),
                    Some(target) => {
                        let copied = copy(&run, backup, target).await?;
                        (copied.report(), Some(copied))
                    }
                };
                let seconds = (run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
                let result = BackupResult {
                    instance: number as u32,
                    database: position as u32 + 1,
                    path,
                    pages_count: u64::from(report.pages),
                    bytes: report.bytes,
                    correctable: report.corrected,
                    headers_bad: u64::from(report.header_copy_damaged),
                    generation_first: report.generation_first,
                    generation_last: report.generation_last,
                    seconds,
                    mib_per_s: report.bytes as f64 / f64::from(1 << 20) / seconds.max(1e-9),
                    kept_at: target,
                };
                tell(&run, &result);
                Ok((result, copied))
            });
            tasks.push((number, task));
        }
    }
    let mut result = PhaseResult::default();
    let mut copies: BTreeMap<usize, Vec<Copied>> = BTreeMap::new();
    let mut first_error: Option<RunError> = None;
    for (number, task) in tasks {
        match task.await {
            Ok((backup, copied)) => {
                result.backups.push(backup);
                copies.entry(number).or_default().extend(copied);
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    state.check_load()?;
    if let Some(error) = first_error {
        return Err(error);
    }
    if let Some(to) = to {
        for (number, of_instance) in copies {
            let kept = seal_copies(state, number, of_instance, to).await?;
            state.kept_logs.push(kept.clone());
            result.kept_logs.push(kept);
        }
    }
    result.databases = state.databases();
    Ok(result)
}

async fn read(run: &RunContext, mut backup: Backup) -> Result<BackupReport, RunError> {
    while backup.next_chunk().await?.is_some() {
        run.check_stop()?;
    }
    Ok(backup.finish().await?)
}

async fn copy(run: &RunContext, backup: Backup, to: &Path) -> Result<Copied, RunError> {
    let mut copy = Copy::start(backup, to).await?;
    while copy.copy_on().await? {
        run.check_stop()?;
    }
    Ok(copy.finish().await?)
}

/// Puts the log of an instance beside its copies, and makes them databases.
async fn seal_copies(
    state: &RunState,
    number: usize,
    copies: Vec<Copied>,
    to: &Path,
) -> Result<KeptLog, RunError> {
    let instance = &state.spec.instances[number];
    let started = state.run.handle.now();
    let (_, logs) = instance.places_of_copy(to);
    let names = LogNames::new(&logs, LOG_BASE);
    let log = until_stop(&state.run, seal(copies, &names)).await??;
    let seconds = (state.run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
    let text = format!(
        "{}: log generations {} to {} kept in {} in {seconds:.1} s; the copies can be restored",
        instance.name,
        log.generation_first,
        log.generation_last,
        logs.display()
    );
    state.run.report(Level::Info, "log_kept", text);
    Ok(KeptLog {
        instance: number as u32,
        generation_first: log.generation_first,
        generation_last: log.generation_last,
        bytes: log.bytes,
        seconds,
    })
}

fn tell(run: &RunContext, result: &BackupResult) {
    let path = result.path.display();
    let kept = match &result.kept_at {
        Some(target) => format!("kept at {}", target.display()),
        None => "not kept".into(),
    };
    let mib = result.bytes as f64 / f64::from(1 << 20);
    let text = format!("{path}: {mib:.0} MiB read in {:.1} s and {kept}", result.seconds);
    run.report(Level::Info, "backed_up", text);
    if result.correctable > 0 {
        let text = format!("{path}: {} pages have a flipped bit", result.correctable);
        run.report(Level::Error, "bad_pages", text);
    }
    if result.headers_bad > 0 {
        run.report(
            Level::Error,
            "bad_pages",
            format!("{path}: one copy of its header was damaged"),
        );
    }
}
