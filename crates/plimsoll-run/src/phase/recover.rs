//! Drops the open instances as a crash of the process would and opens them again, all at once: each
//! replays what its checkpoint has left to be redone. The time of an instance runs until
//! transactions could begin again.

use crate::RunError;
use crate::backend::unable;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;
use crate::takeover::open_crashed;

pub async fn act(state: &mut RunState, name: &str) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    for (number, backend) in state.backends.borrow().iter() {
        let crashes = backend.clone().crashes();
        crashes.ok_or_else(|| unable(&state.spec.instances[*number]))?;
    }
    for backend in state.backends.take().into_values() {
        if let Some(crashing) = backend.crashes() {
            crashing.abandon().await?;
        }
    }
    let text = "every instance was dropped as by a crash; nothing was closed";
    state.run.gather(()).await?;
    state.run.report_once(Level::Info, "dropped", text.into());
    let own = state.run.shard.own(&state.spec.instances);
    let own = own.map(|(number, instance)| (number, instance.clone()));
    open_crashed(&state.run, &state.families, &state.backends, own).await?;
    Ok(PhaseResult {
        databases: state.databases(),
        recoveries: state.recoveries(),
        ..PhaseResult::default()
    })
}
