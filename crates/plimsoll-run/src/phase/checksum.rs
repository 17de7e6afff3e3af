//! Reads every page of every database and verifies it, all databases at once. What cannot be
//! judged by reading it is left out, and said: files that are not verified, databases of others.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::events::Level;
use crate::family::ChecksumReads;
use crate::outcome::{ChecksumResult, PhaseResult};
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    read_bytes: u32,
    reads_in_flight: u32,
) -> Result<PhaseResult, RunError> {
    let reads = ChecksumReads { read_bytes, in_flight: reads_in_flight };
    let mut tasks = Vec::new();
    for (number, instance) in state.run.shard.own(&state.spec.instances) {
        let of_family = state.families.of_instance(instance).map_err(RunError::Spec)?;
        let unit_bytes = of_family.checksum_unit_bytes(instance);
        if unit_bytes == 0 {
            let text =
                format!("{}: left out, nothing in it tells what should be there", instance.name);
            state.run.report(Level::Info, "checksummed", text);
            continue;
        }
        for position in 0..instance.databases.len() {
            let (run, instance) = (state.run.clone(), instance.clone());
            let families = state.families.clone();
            tasks.push(state.run.handle.spawn(async move {
                let started = run.handle.now();
                let number = number as u16;
                let family = families.of_instance(&instance).map_err(RunError::Spec)?;
                let report = family.checksum(&run, number, position, &instance, reads).await?;
                let seconds = (run.handle.now() - started) as f64 / NANOS_PER_SECOND as f64;
                let mib = report.pages_seen as f64 * f64::from(unit_bytes) / f64::from(1 << 20);
                run.report(
                    Level::Info,
                    "checksummed",
                    format!(
                        "{}: {} pages, {} bad, {mib:.0} MiB in {seconds:.1} s",
                        report.path.display(),
                        report.pages_seen,
                        report.bad
                    ),
                );
                Ok(ChecksumResult {
                    instance: u32::from(number),
                    database: position as u32 + 1,
                    report,
                    seconds,
                    mib_per_s: mib / seconds.max(1e-9),
                })
            }));
        }
    }
    let mut result = PhaseResult::default();
    let mut first_error = None;
    for task in tasks {
        match task.await {
            Ok(checksum) => result.checksums.push(checksum),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(result), Err)
}
