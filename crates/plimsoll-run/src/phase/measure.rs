//! Lets the workloads run for a stated time. The samples that close inside it are what is judged.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    name: &str,
    duration_s: f64,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    if let Some(number) = state.uncalibrated().first() {
        return Err(RunError::NotCalibrated {
            workload: state.spec.workloads[*number].name.clone(),
        });
    }
    state.load_for((duration_s * NANOS_PER_SECOND as f64) as u64).await?;
    Ok(PhaseResult { databases: state.databases(), ..PhaseResult::default() })
}
