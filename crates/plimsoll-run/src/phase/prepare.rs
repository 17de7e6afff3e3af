//! Makes the databases that are missing and opens all of them. What another run may have at its
//! server comes first, so that a refusal costs nothing.

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(state: &mut RunState) -> Result<PhaseResult, RunError> {
    let spec = state.spec.clone();
    let mut claimed = Vec::new();
    for instance in &spec.instances {
        let family = state.families.of_instance(instance).map_err(RunError::Spec)?;
        claimed.push(family.is_claimed_by_opening(instance));
    }
    if claimed.contains(&true) {
        open(state, |number| claimed[number]).await?;
        // Other threads have claimed theirs, too.
        state.run.now_together().await?;
    }
    open(state, |number| !claimed[number]).await?;
    Ok(PhaseResult {
        databases: state.databases(),
        recoveries: state.recoveries(),
        ..PhaseResult::default()
    })
}

/// Opens those of our own instances whose number is wanted.
async fn open(state: &mut RunState, wanted: impl Fn(usize) -> bool) -> Result<(), RunError> {
    let (spec, shard) = (state.spec.clone(), state.run.shard.clone());
    for (number, instance) in shard.own(&spec.instances).filter(|(number, _)| wanted(*number)) {
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
    Ok(())
}
