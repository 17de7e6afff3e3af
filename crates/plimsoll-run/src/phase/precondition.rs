//! Lets the workloads run in rounds until the storage keeps steady: a fresh drive is faster than
//! the same drive in use.
//!
//! The rule is that of the SNIA Solid State Storage Performance Test Specification: within a window
//! of rounds, the tracked figure lies in a stated range about its mean, and the best straight line
//! through it rises or falls by no more than a stated share of that mean. Tracked are database
//! reads and writes per second of the workload itself, not of test blocks.
//!
//! Limits: the free space of a file system is not written, and no drive is erased before. A storage
//! that does not become steady in the rounds it gets is measured all the same, with a warning.

use plimsoll_io::NANOS_PER_SECOND;
use plimsoll_measure::metric_code;

use crate::RunError;
use crate::events::Level;
use crate::outcome::{PhaseResult, PreconditionResult, Steadiness};
use crate::sampler::Sampler;
use crate::spec::PreconditionSpec;
use crate::state::RunState;
use crate::step::places_of;

/// Range and slope of some rounds; `None` for fewer than two or for rounds without any I/O.
pub fn steadiness(rounds: &[f64]) -> Option<Steadiness> {
    let count = rounds.len() as f64;
    let mean = rounds.iter().sum::<f64>() / count;
    if rounds.len() < 2 || mean <= 0.0 {
        return None;
    }
    let middle = (count - 1.0) / 2.0;
    let places = || (0..rounds.len()).map(|place| place as f64 - middle);
    let across: f64 = places().map(|place| place * place).sum();
    let slope: f64 = places().zip(rounds).map(|(place, value)| place * value).sum::<f64>() / across;
    let highest = rounds.iter().copied().fold(f64::MIN, f64::max);
    let lowest = rounds.iter().copied().fold(f64::MAX, f64::min);
    Some(Steadiness {
        range_percent: 100.0 * (highest - lowest) / mean,
        slope_percent: 100.0 * (slope * (count - 1.0)).abs() / mean,
    })
}

pub async fn act(
    state: &mut RunState,
    sampler: &Sampler,
    name: &str,
    spec: PreconditionSpec,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let mut found = PreconditionResult {
        rounds_iops: Vec::new(),
        round_s: spec.round_s,
        window_rounds: spec.window_rounds,
        last_window: None,
        range_percent_max: spec.range_percent,
        slope_percent_max: spec.slope_percent,
        is_steady: false,
    };
    while !found.is_steady && (found.rounds_iops.len() as u32) < spec.rounds_max {
        let iops = round(state, sampler, spec.round_s).await?;
        found.rounds_iops.push(iops);
        let window = found.rounds_iops.len().checked_sub(spec.window_rounds as usize);
        found.last_window = window.and_then(|first| steadiness(&found.rounds_iops[first..]));
        found.is_steady = found.last_window.is_some_and(|window| {
            window.range_percent <= spec.range_percent && window.slope_percent <= spec.slope_percent
        });
        let text = format!("round {}: {iops:.0} database IOPS", found.rounds_iops.len());
        state.run.report_once(Level::Info, "precondition_round", text);
    }
    state.run.recorder.end_steps();
    report_end(state, &found);
    Ok(PhaseResult {
        databases: state.databases(),
        precondition: Some(found),
        ..PhaseResult::default()
    })
}

/// Database reads and writes per second over one round, all instances together.
async fn round(state: &RunState, sampler: &Sampler, round_s: f64) -> Result<f64, RunError> {
    state.mark_step(sampler).await?;
    let started = state.run.now_together().await?;
    state.load_for((round_s * NANOS_PER_SECOND as f64) as u64).await?;
    let (figures, _) = state.mark_step(sampler).await?;
    let ended = state.run.now_together().await?;
    let instances: Vec<u32> = (0..state.spec.instances.len() as u32).collect();
    let count: u64 = ["database_read", "database_write"]
        .into_iter()
        .flat_map(|metric| places_of(&figures, metric_code(metric), &instances))
        .map(|(_, latencies)| latencies.count())
        .sum();
    let seconds = (ended - started) as f64 / NANOS_PER_SECOND as f64;
    Ok(count as f64 / seconds)
}

fn report_end(state: &RunState, found: &PreconditionResult) {
    let window = found.last_window.map_or("no window was full".to_owned(), |window| {
        format!(
            "the last {} rounds lie within {:.1} % (limit {} %) with a slope of {:.1} % (limit \
                 {} %)",
            found.window_rounds,
            window.range_percent,
            found.range_percent_max,
            window.slope_percent,
            found.slope_percent_max
        )
    });
    let rounds = found.rounds_iops.len();
    let (level, kind, word) = match found.is_steady {
        true => (Level::Info, "steady_state", "steady"),
        false => (Level::Warning, "not_steady", "not steady"),
    };
    let text = format!("{word} after {rounds} rounds of {} s: {window}", found.round_s);
    state.run.report_once(level, kind, text);
}
