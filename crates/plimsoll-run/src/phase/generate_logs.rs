//! Lets the workloads run until every instance has written so many generations of its log, as the
//! published recovery test does instead of running for a time. With the checkpoint held, all of
//! them have to be replayed after a crash.

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::RunError;
use crate::backend::unable;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

/// How often it is looked whether there are enough.
const LOOK_EVERY_NS: Nanos = NANOS_PER_SECOND / 20;

pub async fn act(
    state: &mut RunState,
    name: &str,
    logs_count: u32,
    timeout_s: f64,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    if let Some(number) = state.uncalibrated().first() {
        return Err(RunError::NotCalibrated {
            workload: state.spec.workloads[*number].name.clone(),
        });
    }
    let first = generations(state)?;
    let started = state.run.now_together().await?;
    let deadline = started + (timeout_s * NANOS_PER_SECOND as f64) as u64;
    loop {
        let written = generations(state)?.into_iter().zip(&first).map(|(now, first)| now - first);
        let fewest = written.min().unwrap_or(0);
        let fewest = state.run.gather(fewest).await?.into_iter().min().unwrap_or(0);
        let now = state.run.now_together().await?;
        if fewest >= u64::from(logs_count) {
            let seconds = (now - started) as f64 / NANOS_PER_SECOND as f64;
            let text = format!("every instance has written {logs_count} logs after {seconds:.1} s");
            state.run.report_once(Level::Info, "logs_generated", text);
            return Ok(PhaseResult { databases: state.databases(), ..PhaseResult::default() });
        }
        if now >= deadline {
            return Err(RunError::TooFewLogs {
                waited_s: timeout_s,
                written_count: fewest,
                wanted_count: u64::from(logs_count),
            });
        }
        state.load_for(LOOK_EVERY_NS).await?;
    }
}

/// The current generation of every instance.
fn generations(state: &RunState) -> Result<Vec<u64>, RunError> {
    let backends = state.backends.borrow();
    let each = backends.iter();
    each.map(|(number, backend)| {
        // Only a log that can be replayed is worth waiting for.
        let crashes = backend.clone().crashes().is_some();
        crashes
            .then(|| backend.levels().log_generation)
            .ok_or_else(|| unable(&state.spec.instances[*number]))
    })
    .collect()
}
