//! Makes the databases that are missing and opens all of them.

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(state: &mut RunState) -> Result<PhaseResult, RunError> {
    let (spec, shard) = (state.spec.clone(), state.run.shard.clone());
    for (number, instance) in shard.own(&spec.instances) {
        let missing =
            instance.databases.iter().filter(|database| database.existing_records.is_none());
        let bytes: u64 = missing.clone().map(|database| database.size_bytes).sum();
        state.run.report(
            Level::Info,
            "instance_opening",
            format!(
                "instance {}: {} databases to prepare ({} MiB), {} to open",
                instance.name,
                missing.count(),
                bytes >> 20,
                instance.databases.len()
            ),
        );
        let backend = state.families.open(&state.run, number as u16, instance).await?;
        state.backends.borrow_mut().insert(number, backend);
    }
    Ok(PhaseResult {
        databases: state.databases(),
        recoveries: state.recoveries(),
        ..PhaseResult::default()
    })
}
