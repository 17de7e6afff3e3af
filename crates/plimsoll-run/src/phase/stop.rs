//! Closes every instance cleanly. Also done when a run is stopped early or fails, as far as the disk lets it.

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(state: &mut RunState) -> Result<PhaseResult, RunError> {
    let databases = state.databases();
    let mut first_error = None;
    for backend in state.backends.take() {
        if let Err(error) = backend.close().await {
            state.run.report(Level::Error, "close_failed", error.to_string());
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => {
            state
                .run
                .report(Level::Info, "closed", "every database was closed cleanly".into());
            Ok(PhaseResult {
                databases,
                ..PhaseResult::default()
            })
        }
    }
}
