//! Finds the transaction rate that makes the wanted database I/O: the I/O of a transaction is
//! measured under the load itself, and the rate is fixed before anything is judged.
//!
//! How much I/O a transaction makes changes while the cache fills and until the first changed pages
//! are written back, so the rate follows while the caches warm, and windows are then measured until
//! two that follow each other agree.

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::RunError;
use crate::events::Level;
use crate::load::Drive;
use crate::outcome::Calibration;
use crate::sampler::Sampler;
use crate::spec::{LoadSpec, RunSpec, TargetIopsSpec};
use crate::state::RunState;
use crate::step::StepCounts;

/// Two windows agree when their I/O per transaction differs by no more than this share.
const AGREEMENT: f64 = 0.02;
/// A window with fewer transactions says little.
const TRANSACTIONS_MIN: u64 = 100;
/// Windows that are looked at before the last one has to do.
const WINDOWS_MAX: u32 = 10;

/// Follows the I/O of transactions while caches warm, so that the target is about kept from the
/// beginning.
pub struct Follower {
    next_look: Nanos,
}

impl Follower {
    /// Looks for the first time after a second.
    ///
    /// # Errors
    /// A wish to stop.
    pub async fn new(
        state: &RunState,
        sampler: &Sampler,
        now: Nanos,
    ) -> Result<Follower, RunError> {
        if !state.uncalibrated().is_empty() {
            state.mark_step(sampler).await?;
        }
        Ok(Follower { next_look: now + NANOS_PER_SECOND })
    }

    /// Corrects the rates when it is time.
    ///
    /// # Errors
    /// A wish to stop.
    pub async fn look(
        &mut self,
        state: &RunState,
        sampler: &Sampler,
        now: Nanos,
    ) -> Result<(), RunError> {
        let waiting = state.uncalibrated();
        if waiting.is_empty() || now < self.next_look {
            return Ok(());
        }
        self.next_look = now + NANOS_PER_SECOND;
        let (figures, _) = state.mark_step(sampler).await?;
        for number in waiting {
            let counts = StepCounts::of(&figures, &state.step_workload(number));
            if counts.transactions >= TRANSACTIONS_MIN
                && let Some(ratio) = counts.io_per_transaction()
            {
                state.set_rate(number, target_of(&state.spec, number).target_iops / ratio);
            }
        }
        Ok(())
    }
}

/// Measures the I/O of a transaction and fixes the rate of every load that aims at database I/O.
///
/// # Errors
/// A wish to stop, or what a session met.
pub async fn act(state: &mut RunState, sampler: &Sampler) -> Result<Vec<Calibration>, RunError> {
    let waiting = state.uncalibrated();
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let windows = waiting.iter().map(|number| target_of(&state.spec, *number).calibrate_s);
    let window_ns = (windows.fold(0.0, f64::max) * NANOS_PER_SECOND as f64) as Nanos;
    let mut found = Vec::new();
    for number in waiting {
        let calibration = calibrate(state, sampler, number, window_ns).await?;
        found.push(calibration);
    }
    state.run.recorder.end_steps();
    Ok(found)
}

async fn calibrate(
    state: &mut RunState,
    sampler: &Sampler,
    number: usize,
    window_ns: Nanos,
) -> Result<Calibration, RunError> {
    let spec = state.spec.clone();
    let target = target_of(&spec, number);
    let workload = state.step_workload(number);
    let mut before: Option<f64> = None;
    let mut windows = 0;
    let (ratio, agreed) = loop {
        let mut counts = StepCounts::default();
        state.mark_step(sampler).await?;
        while counts.io_per_transaction().is_none() || counts.transactions < TRANSACTIONS_MIN {
            state.load_for(window_ns).await?;
            let (figures, _) = state.mark_step(sampler).await?;
            counts = counts.and(StepCounts::of(&figures, &workload));
            if counts.transactions == 0 {
                return Err(RunError::NothingArrives {
                    workload: state.spec.workloads[number].name.clone(),
                });
            }
            if counts.reads + counts.writes == 0 {
                return Err(RunError::NoDatabaseIo {
                    workload: state.spec.workloads[number].name.clone(),
                });
            }
        }
        windows += 1;
        let ratio = counts.io_per_transaction().unwrap_or(1.0);
        state.set_rate(number, target.target_iops / ratio);
        let agreed = before.is_some_and(|before| (ratio - before).abs() <= AGREEMENT * before);
        if agreed || windows == WINDOWS_MAX {
            break (ratio, agreed);
        }
        before = Some(ratio);
    };
    let per_s = target.target_iops / ratio;
    let spacing = target.spacing;
    state.drives.insert(number, Drive::Arrivals { per_s, spacing });
    let calibration = Calibration {
        workload: state.spec.workloads[number].name.clone(),
        target_iops: target.target_iops,
        io_per_transaction: ratio,
        transactions_per_s: per_s,
        windows_count: windows,
        agreed,
    };
    report(state, &calibration);
    Ok(calibration)
}

fn report(state: &RunState, found: &Calibration) {
    let text = format!(
        "workload {}: a transaction makes {:.3} database I/O, so {:.2} transactions/s arrive from \
         here on for {} IOPS",
        found.workload, found.io_per_transaction, found.transactions_per_s, found.target_iops
    );
    if found.agreed {
        state.run.report_once(Level::Info, "rate_fixed", text);
    } else {
        let text = format!(
            "{text}; it was still changing after {} windows, so the target may be missed: warm up \
             longer",
            found.windows_count
        );
        state.run.report_once(Level::Warning, "rate_fixed", text);
    }
}

fn target_of(spec: &RunSpec, number: usize) -> &TargetIopsSpec {
    match &spec.workloads[number].load {
        LoadSpec::TargetIops(spec) => spec,
        _ => unreachable!("only loads with a target are calibrated"),
    }
}
