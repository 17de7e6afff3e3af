//! Drops the open instances as a crash of the process would and opens them again, all at once: each replays what its
//! checkpoint has left to be redone. The time of an instance runs until transactions could begin again.

use crate::RunError;
use crate::backend::unable;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(state: &mut RunState, name: &str) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    for (backend, instance) in state.backends.borrow().iter().zip(&state.spec.instances) {
        backend.clone().crashes().ok_or_else(|| unable(instance))?;
    }
    for backend in state.backends.take() {
        if let Some(crashing) = backend.crashes() {
            crashing.abandon().await?;
        }
    }
    let text = "every instance was dropped as by a crash; nothing was closed";
    state.run.report(Level::Info, "dropped", text.into());
    let mut tasks = Vec::new();
    for (number, instance) in state.spec.instances.iter().enumerate() {
        let families = state.families.clone();
        let family = families.of_instance(instance).map_err(RunError::Spec)?;
        let (run, crashed) = (state.run.clone(), family.as_crashed(instance));
        tasks.push(
            state
                .run
                .handle
                .spawn(async move { families.open(&run, number as u16, &crashed).await }),
        );
    }
    let mut first_error = None;
    for task in tasks {
        match task.await {
            Ok(backend) => state.backends.borrow_mut().push(backend),
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
