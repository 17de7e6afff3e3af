//! Drops the open instances as a crash of the process would and opens them again, all at once: each
//! replays what its checkpoint has left to be redone. The time of an instance runs until
//! transactions could begin again.

use crate::RunError;
use crate::backend::unable;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

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
    let mut tasks = Vec::new();
    for (number, instance) in state.run.shard.own(&state.spec.instances) {
        let families = state.families.clone();
        let family = families.of_instance(instance).map_err(RunError::Spec)?;
        let (run, crashed) = (state.run.clone(), family.as_crashed(instance));
        let opening = async move { families.open(&run, number as u16, &crashed).await };
        tasks.push((number, state.run.handle.spawn(opening)));
    }
    let mut first_error = None;
    for (number, task) in tasks {
        match task.await {
            Ok(backend) => drop(state.backends.borrow_mut().insert(number, backend)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    if let Some(error) = first_error {
        return Err(error);
    }
    Ok(PhaseResult {
        databases: state.databases(),
        recoveries: state.recoveries(),
        ..PhaseResult::default()
    })
}
