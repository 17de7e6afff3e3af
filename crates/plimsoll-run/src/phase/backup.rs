//! Reads every page of every open database front to back, all databases at once, and keeps nothing:
//! the rate at which a backup could be taken. Each page is verified, because a copy of damage is no
//! copy. Transactions may go on meanwhile.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::backend::unable;
use crate::events::Level;
use crate::outcome::{BackupResult, PhaseResult};
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    name: &str,
    read_bytes: u32,
    reads_in_flight: u32,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let mut tasks = Vec::new();
    let backends = state.backends.borrow().clone();
    for (number, backend) in backends {
        let instance = &state.spec.instances[number];
        let backups = backend.backups().ok_or_else(|| unable(instance))?;
        for position in 0..instance.databases.len() {
            let path = instance.database_path(position);
            let (run, backup) = (state.run.clone(), backups.backup(position, read_bytes)?);
            let mut backup = backup.with_reads_outstanding(reads_in_flight as usize);
            tasks.push(state.run.handle.spawn(async move {
                let started = run.handle.now();
                let read = loop {
                    match read_on(&run, &mut backup).await {
                        Ok(true) => {}
                        Ok(false) => break backup.finish().await.map_err(RunError::from),
                        Err(error) => break Err(error),
                    }
                };
                let report = read?;
                let seconds = (run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
                let mib = report.bytes as f64 / f64::from(1 << 20);
                let text =
                    format!("{}: {mib:.0} MiB read in {seconds:.1} s and not kept", path.display());
                run.report(Level::Info, "backed_up", text);
                if report.corrected > 0 {
                    let text = format!(
                        "{}: {} pages have a flipped bit",
                        path.display(),
                        report.corrected
                    );
                    run.report(Level::Error, "bad_pages", text);
                }
                if report.header_copy_damaged {
                    let text = format!("{}: one copy of its header was damaged", path.display());
                    run.report(Level::Error, "bad_pages", text);
                }
                Ok(BackupResult {
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
                    mib_per_s: mib / seconds.max(1e-9),
                })
            }));
        }
    }
    let mut result = PhaseResult::default();
    let mut first_error: Option<RunError> = None;
    for task in tasks {
        match task.await {
            Ok(backup) => result.backups.push(backup),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    state.check_load()?;
    result.databases = state.databases();
    first_error.map_or(Ok(result), Err)
}

async fn read_on(
    run: &crate::context::RunContext,
    backup: &mut plimsoll_engine::jobs::backup::Backup,
) -> Result<bool, RunError> {
    run.check_stop()?;
    let chunk = backup.next_chunk().await?;
    Ok(chunk.is_some())
}
