//! Lets the workloads run for a stated time that is not judged: databases age, tiers move what is
//! hot, write caches fill.
//!
//! With a moment in UTC it lasts until then, so that several hosts begin to measure together
//! whatever each of them took to prepare and to warm up. The moment is looked for on the wall clock
//! again and again, because that clock may be set meanwhile.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    name: &str,
    duration_s: f64,
    until_utc_s: Option<f64>,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    state.load_for((duration_s * NANOS_PER_SECOND as f64) as u64).await?;
    if let Some(moment_s) = until_utc_s {
        load_until(state, (moment_s * NANOS_PER_SECOND as f64) as u64).await?;
    }
    Ok(PhaseResult { databases: state.databases(), ..PhaseResult::default() })
}

async fn load_until(state: &RunState, moment_ns: u64) -> Result<(), RunError> {
    let run = &state.run;
    let left_ns = || moment_ns.saturating_sub(run.clock().anchor().utc_ns);
    if left_ns() == 0 {
        let late_s = (run.clock().anchor().utc_ns - moment_ns) as f64 / NANOS_PER_SECOND as f64;
        let text = format!(
            "the moment to start was {late_s:.1} s ago when the warm-up ended; other hosts began \
             without this one"
        );
        run.report_once(Level::Warning, "started_late", text);
    }
    while left_ns() > 0 {
        state.load_for(left_ns().min(NANOS_PER_SECOND)).await?;
    }
    Ok(())
}
