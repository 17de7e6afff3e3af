//! Lets the workloads run for a stated time. The samples that close inside it are what is judged.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::outcome::PhaseResult;
use crate::stage::Stage;

pub async fn act(stage: &mut Stage, name: &str, duration_s: f64) -> Result<PhaseResult, RunError> {
    stage.require_open(name)?;
    if let Some(number) = stage.uncalibrated().first() {
        return Err(RunError::NotCalibrated {
            workload: stage.spec.workloads[*number].name.clone(),
        });
    }
    stage
        .load_for((duration_s * NANOS_PER_SECOND as f64) as u64)
        .await?;
    Ok(PhaseResult {
        databases: stage.databases(),
        ..PhaseResult::default()
    })
}
