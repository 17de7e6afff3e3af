//! Looks for the highest rate, or the most sessions, at which the criteria hold, step by step
//! within one run: the caches stay warm and the databases are those that are measured afterwards.
//!
//! Each step begins with an empty queue, or with fresh sessions, settles, and is measured in
//! batches until it is clear whether the rate passes; what stays unclear counts as failed. The rate
//! that was found is tried once more for twice as long, because caches fill and write-back falls
//! behind in longer than a step; where it fails, the search goes on below. The load then stays at
//! it. A rate that failed by the load generator is tried once more.

mod estimate;
mod step;
mod tries;

use plimsoll_io::{NANOS_PER_SECOND, Nanos};
use plimsoll_workload::Bisection;

use crate::RunError;
use crate::events::Level;
use crate::load::Drive;
use crate::outcome::{Decision, PhaseResult, SearchEnd, SearchResult, SearchStep};
use crate::sampler::Sampler;
use crate::spec::{CriterionSpec, LoadSpec, SearchGoal, SearchSpec};
use crate::state::RunState;
use crate::step::StepCounts;

use step::{BATCHES, BATCHES_MIN, EXTENSIONS_MAX, Tally};
use tries::Tries;

/// A rate that makes fewer transactions in a step says nothing of the storage.
const TRANSACTIONS_MIN: f64 = 50.0;

pub async fn act(
    state: &mut RunState,
    sampler: &Sampler,
    name: &str,
    duration_s: f64,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let (number, spec) = searching(state);
    let deadline = state.run.now_together().await? + nanos(duration_s);
    let tolerance = spec.tolerance_percent / 100.0;
    let mut tries = Tries::new(match spec.search {
        SearchGoal::Max => {
            let first_per_s = rate_of_sessions(state, sampler, number, &spec).await?;
            state.drive_by(number, drive(&spec, first_per_s)).await?;
            Bisection::new(first_per_s, TRANSACTIONS_MIN / spec.step_s, tolerance)
        }
        SearchGoal::MaxSessions => Bisection::whole(spec.sessions, spec.sessions_max, tolerance),
    });
    let longer = SearchSpec { step_s: 2.0 * spec.step_s, ..spec.clone() };
    let mut steps: Vec<SearchStep> = Vec::new();
    let mut end = SearchEnd::Narrow;
    while let Some(tried) = tries.next() {
        let spec = if tried.confirms { &longer } else { &spec };
        if state.run.now_together().await? + nanos(spec.settle_s + spec.step_s) > deadline {
            end = SearchEnd::TimeOver;
            break;
        }
        let step = carry_out(state, sampler, number, spec, tried.level).await?;
        report_step(state, &step);
        tries.note(tried, step.decision == Decision::Passed, step.limited_by.as_deref());
        steps.push(step);
    }
    let Tries { bisection, confirmed, .. } = tries;
    state.run.recorder.end_steps();
    end = match (end, bisection.passed(), bisection.failed()) {
        (SearchEnd::Narrow, None, _) => SearchEnd::NothingPasses,
        (SearchEnd::Narrow, Some(_), None) => SearchEnd::MostTried,
        (end, ..) => end,
    };
    let result = result_of(state, number, &spec, &bisection, (end, confirmed), steps);
    let share = spec.throughput_percent.unwrap_or(100.0) / 100.0;
    let stays_at = bisection.passed().or(bisection.failed()).unwrap_or(bisection.first()) * share;
    set_level(state, number, &spec, stays_at).await?;
    report_result(state, &spec, &result, stays_at);
    state.load_for(nanos(spec.settle_s)).await?;
    Ok(PhaseResult { databases: state.databases(), search: Some(result), ..PhaseResult::default() })
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_SECOND as f64) as Nanos
}

/// The running workload whose rate is looked for; that there is exactly one was checked with the
/// spec.
fn searching(state: &RunState) -> (usize, SearchSpec) {
    let running = state.running.iter().copied();
    let mut found = running.filter_map(|number| match &state.spec.workloads[number].load {
        LoadSpec::Search(spec) => Some((number, spec.clone())),
        _ => None,
    });
    found.next().expect("a search phase runs a workload that searches")
}

/// The rate that the sessions of the warm-up make: a rate of the right order to begin with.
async fn rate_of_sessions(
    state: &RunState,
    sampler: &Sampler,
    number: usize,
    spec: &SearchSpec,
) -> Result<f64, RunError> {
    state.mark_step(sampler).await?;
    let started = state.run.now_together().await?;
    state.load_for(nanos(spec.settle_s.max(1.0))).await?;
    let (figures, _) = state.mark_step(sampler).await?;
    let ended = state.run.now_together().await?;
    let counts = StepCounts::of(&figures, &state.step_workload(number));
    let seconds = (ended - started) as f64 / NANOS_PER_SECOND as f64;
    Ok((counts.transactions as f64 / seconds).max(1.0))
}

/// How the load presses at a level: a rate per second, or a number of sessions.
fn drive(spec: &SearchSpec, level: f64) -> Drive {
    match spec.search {
        SearchGoal::Max => Drive::Arrivals { per_s: level, spacing: spec.spacing },
        SearchGoal::MaxSessions => {
            Drive::Sessions { count: whole_sessions(level), shared: spec.shared }
        }
    }
}

fn whole_sessions(level: f64) -> u32 {
    (level as u32).max(1)
}

/// Lets the load press at another level from now on.
async fn set_level(
    state: &mut RunState,
    number: usize,
    spec: &SearchSpec,
    level: f64,
) -> Result<(), RunError> {
    match spec.search {
        SearchGoal::Max => {
            state.empty_queue(number).await?;
            state.set_rate(number, level);
            state.drives.insert(number, drive(spec, level));
            Ok(())
        }
        SearchGoal::MaxSessions => state.drive_by(number, drive(spec, level)).await,
    }
}

/// The metrics of the criteria, which may be those of a family.
fn codes_of(state: &RunState, spec: &SearchSpec) -> Result<Vec<u32>, RunError> {
    let code = |criterion: &CriterionSpec| {
        let known = state.run.recorder.code(&criterion.metric);
        let unknown = || format!("criterion {} names no metric", criterion.name);
        known.ok_or_else(|| RunError::Spec(unknown()))
    };
    spec.criteria.iter().map(code).collect()
}

async fn carry_out(
    state: &mut RunState,
    sampler: &Sampler,
    number: usize,
    spec: &SearchSpec,
    level: f64,
) -> Result<SearchStep, RunError> {
    set_level(state, number, spec, level).await?;
    state.load_for(nanos(spec.settle_s)).await?;
    state.mark_step(sampler).await?;
    let mut began = state.run.now_together().await?;
    let codes = codes_of(state, spec)?;
    let mut tally = Tally::new(spec, codes, state.step_workload(number), level, began);
    for batch in 1..=BATCHES * EXTENSIONS_MAX {
        state.load_for(nanos(spec.step_s) / BATCHES as u64).await?;
        let (figures, busy) = state.mark_step(sampler).await?;
        let now = state.run.now_together().await?;
        tally.add(&figures, (now - began) as f64 / NANOS_PER_SECOND as f64, busy);
        began = now;
        let clear = match tally.step(now).decision {
            Decision::Failed => batch >= BATCHES_MIN,
            Decision::Passed => batch >= BATCHES,
            Decision::Unsure => false,
        };
        if clear {
            break;
        }
    }
    Ok(tally.step(began))
}

fn result_of(
    state: &RunState,
    number: usize,
    spec: &SearchSpec,
    bisection: &Bisection,
    (end, confirmed): (SearchEnd, bool),
    steps: Vec<SearchStep>,
) -> SearchResult {
    let at = |level: Option<f64>| {
        let level = level?;
        let of = |step: &SearchStep| step.sessions.map_or(step.transactions_per_s, f64::from);
        steps.iter().rev().find(|step| of(step) == level)
    };
    let (passed, failed) = (at(bisection.passed()), at(bisection.failed()));
    SearchResult {
        workload: state.spec.workloads[number].name.clone(),
        search: spec.search,
        end,
        passed_per_s: passed.map(|step| step.transactions_per_s),
        passed_sessions: passed.and_then(|step| step.sessions),
        passed_iops: passed.map(|step| step.database_iops),
        confirmed,
        failed_per_s: failed.map(|step| step.transactions_per_s),
        failed_sessions: failed.and_then(|step| step.sessions),
        limited_by: failed.and_then(|step| step.limited_by.clone()),
        confidence_percent: None,
        tolerance_percent: spec.tolerance_percent,
        steps,
    }
}

fn report_step(state: &RunState, step: &SearchStep) {
    let decision = match (&step.decision, &step.limited_by) {
        (Decision::Passed, _) => "passes".to_owned(),
        (Decision::Failed, Some(limit)) => format!("fails by {limit}"),
        (Decision::Unsure, Some(limit)) => {
            format!("too near to {limit} to tell, counted as failed")
        }
        (_, None) => "fails".to_owned(),
    };
    let sessions = step.sessions.map(|count| format!("{count} sessions: ")).unwrap_or_default();
    let text = format!(
        "{sessions}{:.1} transactions/s, {:.0} database IOPS: reads {:.2} ms, log writes {:.2} ms: \
         {decision}",
        step.transactions_per_s,
        step.database_iops,
        step.database_read_ms.mean,
        step.log_write_ms.mean
    );
    state.run.report_once(Level::Info, "search_step", text);
}

fn report_result(state: &RunState, spec: &SearchSpec, result: &SearchResult, stays_at: f64) {
    let limit = result.limited_by.as_deref().unwrap_or("nothing yet");
    let (passed, failed, what, last) = match spec.search {
        SearchGoal::Max => (
            result.passed_per_s.map(|per_s| format!("{per_s:.1}")),
            result.failed_per_s.map(|per_s| format!("{per_s:.1}")),
            "transactions/s",
            format!("{stays_at:.3}"),
        ),
        SearchGoal::MaxSessions => (
            result.passed_sessions.map(|count| count.to_string()),
            result.failed_sessions.map(|count| count.to_string()),
            "sessions",
            whole_sessions(stays_at).to_string(),
        ),
    };
    let (level, text) = match (passed, failed) {
        (Some(passed), Some(failed)) => (
            Level::Info,
            format!("{passed} {what} pass, {failed} do not: the first limit is {limit}"),
        ),
        (Some(passed), None) if result.end == SearchEnd::MostTried => (
            Level::Warning,
            format!("{passed} {what} pass, the most that may be tried; no limit was met"),
        ),
        (Some(passed), None) => (
            Level::Warning,
            format!("at least {passed} {what} pass; the time was over before any more failed"),
        ),
        (None, _) => (Level::Warning, format!("nothing passes; {last} {what} fail by {limit}")),
    };
    state.run.report_once(level, "search_ended", text);
}
