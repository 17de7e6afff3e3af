//! The phases of a run, each a function of the stage it works on. What a phase found goes into the outcome.

mod backup;
mod calibrate;
mod checksum;
mod generate_logs;
mod measure;
mod precondition;
mod prepare;
mod recover;
mod search;
mod soak;
mod stop;
mod warm_up;

pub use precondition::steadiness;

use crate::RunError;
use crate::outcome::PhaseResult;
use crate::sampler::Sampler;
use crate::spec::PhaseAction;
use crate::stage::Stage;

/// Does what a phase is for.
///
/// # Errors
/// Whatever ends the run; the stage stays as far as it got.
pub async fn act(
    stage: &mut Stage,
    sampler: &Sampler,
    name: &str,
    action: PhaseAction,
) -> Result<PhaseResult, RunError> {
    match action {
        PhaseAction::Prepare {} => prepare::act(stage).await,
        PhaseAction::WarmUp {
            cache_percent,
            timeout_s,
        } => warm_up::act(stage, sampler, name, cache_percent, timeout_s).await,
        PhaseAction::Precondition(spec) => precondition::act(stage, sampler, name, spec).await,
        PhaseAction::Soak {
            duration_s,
            until_utc_s,
        } => soak::act(stage, name, duration_s, until_utc_s).await,
        PhaseAction::Measure { duration_s } => measure::act(stage, name, duration_s).await,
        PhaseAction::Search { duration_s } => search::act(stage, sampler, name, duration_s).await,
        PhaseAction::Backup {
            read_bytes,
            reads_in_flight,
        } => backup::act(stage, name, read_bytes, reads_in_flight).await,
        PhaseAction::GenerateLogs {
            logs_count,
            timeout_s,
        } => generate_logs::act(stage, name, logs_count, timeout_s).await,
        PhaseAction::Recover {} => recover::act(stage, name).await,
        PhaseAction::Stop {} => stop::act(stage).await,
        PhaseAction::Checksum {
            read_bytes,
            reads_in_flight,
        } => checksum::act(stage, read_bytes, reads_in_flight).await,
    }
}
