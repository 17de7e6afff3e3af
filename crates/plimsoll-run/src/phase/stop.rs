//! Closes every instance cleanly. Also done when a run is stopped early or fails, as far as the
//! disk lets it.

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(state: &mut RunState) -> Result<PhaseResult, RunError> {
    let databases = state.databases();
    let mut first_error = None;
    for backend in state.backends.take().into_values() {
        if let Err(error) = backend.close().await {
            state.run.report(Level::Error, "close_failed", error.to_string());
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => {
            report_closed(state).await;
            Ok(PhaseResult { databases, ..PhaseResult::default() })
        }
    }
}

/// Of several shards the first one speaks for all, unless some of them have failed: then each
/// speaks for itself.
async fn report_closed(state: &RunState) {
    let run = &state.run;
    let together = !run.stop.was_asked() && run.gather(()).await.is_ok();
    match together || run.shard.is_only() {
        true => run.report_once(Level::Info, "closed", "every database was closed cleanly".into()),
        false => {
            let text =
                format!("every database of thread {} was closed cleanly", run.shard.number() + 1);
            run.report(Level::Info, "closed", text);
        }
    }
}
