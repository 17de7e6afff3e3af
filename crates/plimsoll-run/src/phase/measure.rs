//! Lets the workloads run for a stated time. The samples that close inside it are what is judged.
//! A load with stages goes through them one after the other, and anew when they have ended.

use std::collections::VecDeque;

use plimsoll_io::{NANOS_PER_SECOND, Nanos};

use crate::RunError;
use crate::events::Level;
use crate::load::{Drive, rate_in_words};
use crate::outcome::{LoadStage, PhaseResult};
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
    let mut staged = Staged::of(state, end);
    while state.run.handle.now() < end {
        let mut until = end;
        for load in &mut staged {
            until = until.min(load.go_on(state));
        }
        state.load_for(until.saturating_sub(state.run.handle.now())).await?;
    }
    for load in &staged {
        state.note_rate(load.number, load.per_s);
    }
    let stages = state.take_stages();
    Ok(PhaseResult { databases: state.databases(), stages, ..PhaseResult::default() })
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_SECOND as f64) as Nanos
}

/// A load that goes through stages.
struct Staged {
    number: usize,
    /// All of its rate.
    per_s: f64,
    /// Those that have not begun, the next one first.
    to_come: VecDeque<LoadStage>,
    end: Nanos,
}

impl Staged {
    /// Those of the loads that run, in a phase that begins now. All of their rates are announced:
    /// an arrival that is drawn in a calm stage must not pass over the busy ones behind it.
    fn of(state: &RunState, end: Nanos) -> Vec<Staged> {
        let found: Vec<_> =
            state.running.iter().filter_map(|number| Staged::new(state, *number, end)).collect();
        for load in &found {
            for (place, stage) in load.to_come.iter().enumerate() {
                match place {
                    // What waited before is not part of what is measured.
                    0 => state.set_rate(load.number, stage.transactions_per_s),
                    _ => state.set_rate_at(load.number, stage.transactions_per_s, stage.start_ns),
                }
            }
            state.set_rate_at(load.number, load.per_s, end);
        }
        found
    }

    fn new(state: &RunState, number: usize, end: Nanos) -> Option<Staged> {
        let workload = &state.spec.workloads[number];
        let Drive::Arrivals { per_s, .. } = state.drive(number) else { return None };
        let mut start_ns = state.run.handle.now();
        let mut to_come = VecDeque::new();
        for (place, stage) in workload.load.stages().iter().enumerate().cycle() {
            if start_ns >= end {
                break;
            }
            let end_ns = (start_ns + nanos(stage.for_s)).min(end);
            to_come.push_back(LoadStage {
                workload: workload.name.clone(),
                stage: place as u32 + 1,
                rate_percent: stage.rate_percent,
                transactions_per_s: per_s * stage.rate_percent / 100.0,
                start_ns,
                end_ns,
            });
            start_ns = end_ns;
        }
        (!to_come.is_empty()).then_some(Staged { number, per_s, to_come, end })
    }

    /// Notes the stages that have begun; when the next one does.
    fn go_on(&mut self, state: &mut RunState) -> Nanos {
        let now = state.run.handle.now();
        while self.to_come.front().is_some_and(|stage| stage.start_ns <= now) {
            let Some(stage) = self.to_come.pop_front() else { break };
            state.note_rate(self.number, stage.transactions_per_s);
            let text = format!(
                "workload {}: stage {} of {}, {} % of its rate, {} operations/s",
                stage.workload,
                stage.stage,
                state.spec.workloads[self.number].load.stages().len(),
                stage.rate_percent,
                rate_in_words(stage.transactions_per_s)
            );
            state.run.report_once(Level::Info, "stage_began", text);
            state.stages.push(stage);
        }
        self.to_come.front().map_or(self.end, |stage| stage.start_ns)
    }
}
