//! Lets the workloads run for a stated time. The samples that close inside it are what is judged.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::outcome::PhaseResult;
use crate::stage::Stage;

pub async fn act(stage: &mut Stage, name: &str, duration_s: f64) -> Result<PhaseResult, RunError> {
    stage.require_open(name)?;
    let deadline = stage.setting.handle.now() + (duration_s * NANOS_PER_SECOND as f64) as u64;
    while stage.setting.handle.now() < deadline {
        stage.check_load()?;
        let soon = stage.setting.handle.now() + NANOS_PER_SECOND / 20;
        stage.setting.sleep_until(deadline.min(soon)).await?;
    }
    stage.check_load()?;
    Ok(PhaseResult {
        databases: stage.databases(),
        ..PhaseResult::default()
    })
}
