//! Lets the workloads run for a stated time that nobody judges: databases age, tiers move what is hot, write caches fill.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::outcome::PhaseResult;
use crate::stage::Stage;

pub async fn act(stage: &mut Stage, name: &str, duration_s: f64) -> Result<PhaseResult, RunError> {
    stage.require_open(name)?;
    stage
        .load_for((duration_s * NANOS_PER_SECOND as f64) as u64)
        .await?;
    Ok(PhaseResult {
        databases: stage.databases(),
        ..PhaseResult::default()
    })
}
