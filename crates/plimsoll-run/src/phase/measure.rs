//! Lets the workloads run for a stated time. The samples that close inside it are what is judged.
//! A load with stages goes through them one after the other, and anew when they have ended.

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::RunError;
use crate::events::Level;
use crate::load::Drive;
use crate::outcome::{LoadStage, PhaseResult};
use crate::spec::StageSpec;
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    name: &str,
    duration_s: f64,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    if let Some(number) = state.uncalibrated().first() {
        return Err(RunError::NotCalibrated {
            workload: state.spec.workloads[*number].name.clone(),
        });
    }
    let end = state.run.handle.now() + nanos(duration_s);
    let mut staged = Staged::of(state);
    let mut stages = Vec::new();
    while state.run.handle.now() < end {
        let mut until = end;
        for load in &mut staged {
            stages.extend(load.go_on(state, end));
            until = until.min(load.next_at);
        }
        state.load_for(until.saturating_sub(state.run.handle.now())).await?;
    }
    for load in &staged {
        state.note_rate(load.number, load.per_s);
    }
    Ok(PhaseResult { databases: state.databases(), stages, ..PhaseResult::default() })
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_SECOND as f64) as Nanos
}

/// A load that goes through stages.
struct Staged {
    number: usize,
    stages: Vec<StageSpec>,
    /// All of its rate.
    per_s: f64,
    /// Stages that have begun.
    begun: usize,
    /// When the next one does.
    next_at: Nanos,
}

impl Staged {
    /// Those of the loads that run.
    fn of(state: &RunState) -> Vec<Staged> {
        let next_at = state.run.handle.now();
        let of_load = |number: usize| {
            let stages = state.spec.workloads[number].load.stages().to_vec();
            match state.drive(number) {
                Drive::Arrivals { per_s, .. } if !stages.is_empty() => {
                    Some(Staged { number, stages, per_s, begun: 0, next_at })
                }
                _ => None,
            }
        };
        state.running.iter().filter_map(|number| of_load(*number)).collect()
    }

    /// The stage that follows those that have begun, and its rate.
    fn next(&self) -> (usize, f64) {
        let place = self.begun % self.stages.len();
        (place, self.per_s * self.stages[place].rate_percent / 100.0)
    }

    /// Begins the next stage if it is time, of a phase that ends at `end`. The rate behind it is
    /// announced, so that no arrival is drawn beyond its end.
    fn go_on(&mut self, state: &RunState, end: Nanos) -> Option<LoadStage> {
        let start_ns = self.next_at;
        if state.run.handle.now() < start_ns {
            return None;
        }
        let (place, per_s) = self.next();
        let stage = self.stages[place];
        if self.begun == 0 {
            // What waited before is not part of what is measured.
            state.set_rate(self.number, per_s);
        }
        state.note_rate(self.number, per_s);
        self.begun += 1;
        self.next_at += nanos(stage.for_s);
        let behind = if self.next_at < end { self.next().1 } else { self.per_s };
        state.set_rate_at(self.number, behind, self.next_at.min(end));
        let workload = state.spec.workloads[self.number].name.clone();
        let text = format!(
            "workload {workload}: stage {} of {}, {} % of its rate, {per_s:.2} transactions/s",
            place + 1,
            self.stages.len(),
            stage.rate_percent
        );
        state.run.report_once(Level::Info, "stage_began", text);
        Some(LoadStage {
            workload,
            stage: place as u32 + 1,
            rate_percent: stage.rate_percent,
            transactions_per_s: per_s,
            start_ns,
            end_ns: self.next_at.min(end),
        })
    }
}
