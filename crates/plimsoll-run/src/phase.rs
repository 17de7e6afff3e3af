//! The phases of a run, each a function of the run state it works on. What a phase found goes into
//! the outcome.

mod audit;
mod backup;
mod calibrate;
mod checksum;
mod generate_logs;
mod measure;
mod precondition;
mod prepare;
mod recover;
mod restore;
mod search;
mod soak;
mod stop;
mod warm_up;

pub use precondition::steadiness;

use crate::RunError;
use crate::family::ChecksumReads;
use crate::outcome::PhaseResult;
use crate::sampler::Sampler;
use crate::spec::PhaseAction;
use crate::state::RunState;

/// Does what a phase is for.
///
/// # Errors
/// Whatever ends the run; the state stays as far as it got.
pub async fn act(
    state: &mut RunState,
    sampler: &Sampler,
    name: &str,
    action: &PhaseAction,
) -> Result<PhaseResult, RunError> {
    match action {
        PhaseAction::Prepare {} => prepare::act(state).await,
        PhaseAction::WarmUp { cache_percent, timeout_s } => {
            warm_up::act(state, sampler, name, *cache_percent, *timeout_s).await
        }
        PhaseAction::Precondition(spec) => precondition::act(state, sampler, name, *spec).await,
        PhaseAction::Soak { duration_s, until_utc_s } => {
            soak::act(state, name, *duration_s, *until_utc_s).await
        }
        PhaseAction::Measure { duration_s } => measure::act(state, name, *duration_s).await,
        PhaseAction::Search { duration_s } => search::act(state, sampler, name, *duration_s).await,
        PhaseAction::Backup { read_bytes, reads_in_flight, to } => {
            let reads = ChecksumReads { read_bytes: *read_bytes, in_flight: *reads_in_flight };
            backup::act(state, name, reads, to.as_deref()).await
        }
        PhaseAction::Restore { from, clones, truncate_log, read_bytes, reads_in_flight } => {
            let reads = ChecksumReads { read_bytes: *read_bytes, in_flight: *reads_in_flight };
            let copies = restore::Copies::of(from.as_deref(), clones.as_deref())?;
            restore::act(state, copies, reads, truncate_log.unwrap_or(false)).await
        }
        PhaseAction::GenerateLogs { logs_count, timeout_s } => {
            generate_logs::act(state, name, *logs_count, *timeout_s).await
        }
        PhaseAction::Recover {} => recover::act(state, name).await,
        PhaseAction::Audit {} => audit::act(state, name).await,
        PhaseAction::Stop {} => stop::act(state).await,
        PhaseAction::Checksum { read_bytes, reads_in_flight } => {
            checksum::act(state, *read_bytes, *reads_in_flight).await
        }
    }
}
