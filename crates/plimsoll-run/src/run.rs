//! A run from beginning to end: phase after phase, then a clean stop whatever happened, then the
//! outcome.

use std::rc::Rc;

use plimsoll_io::{
    Clock, CompletedIo, Disk, Executor, Files, Held, NANOS_PER_MILLISECOND, NANOS_PER_SECOND,
    Nanos, Observer, Recorded, StopSignal, ThrottleLimits, Throttled,
};

use crate::RunError;
use crate::context::{Output, RunContext, RunNetwork};
use crate::error_watch::ErrorWatch;
use crate::events::Level;
use crate::families::built_in;
use crate::family::Families;
use crate::host::HostWatch;
use crate::nodes::Nodes;
use crate::outcome::{
    Anchor, Ending, ErrorReport, OUTCOME_SCHEMA_VERSION, PhaseOutcome, PhaseResult, RunOutcome,
};
use crate::phase;
use crate::recorder::{PhaseFigures, Recorder};
use crate::sampler::Sampler;
use crate::shards::Shard;
use crate::spec::{PhaseAction, PhaseSpec, RunSpec};
use crate::stalls::{Stall, StallLog};
use crate::state::RunState;
use crate::storage::{PhaseWatch, Storage};
use crate::takeover;
use crate::timeout::{Waits, is_stuck, unless_stuck, why_given_up};

/// Carries out a run on a disk and returns when it is over. Whatever goes wrong is part of the
/// outcome.
pub fn execute(
    spec: RunSpec,
    clock: Rc<Clock>,
    disk: Rc<dyn Disk>,
    output: Output,
    stop: StopSignal,
) -> RunOutcome {
    execute_for(&built_in(), spec, clock, disk, output, stop)
}

/// The same with families of its own: those the spec was read for.
pub fn execute_for(
    families: &Families,
    spec: RunSpec,
    clock: Rc<Clock>,
    disk: Rc<dyn Disk>,
    output: Output,
    stop: StopSignal,
) -> RunOutcome {
    execute_on(families, spec, clock, Storage::of(disk), output, stop)
}

/// The same on storage of any kind.
pub fn execute_on(
    families: &Families,
    spec: RunSpec,
    clock: Rc<Clock>,
    storage: Storage,
    output: Output,
    stop: StopSignal,
) -> RunOutcome {
    let families = families.clone();
    execute_shard(families, Rc::new(spec), clock, storage, (output, stop), Shard::only())
}

/// Carries out what of a run is one shard's, on the calling thread.
pub fn execute_shard(
    families: Families,
    spec: Rc<RunSpec>,
    clock: Rc<Clock>,
    storage: Storage,
    (output, stop): (Output, StopSignal),
    shard: Shard,
) -> RunOutcome {
    let Storage { disk, ring, watch: array, hold, processors } = storage;
    let recorder = Rc::new(Recorder::with_metrics(families.metrics()));
    let watch = Rc::new(ErrorWatch::new(clock.clone(), recorder.clone(), output.clone()));
    let stalls = Rc::new(StallLog::new(waits_for_writes(&families, &spec)));
    let watchers = Rc::new(Watchers(watch, stalls.clone()));
    let recorded = Rc::new(Recorded::observed(disk.clone(), clock.clone(), watchers));
    let host = (!clock.is_virtual()).then(|| Rc::new(HostWatch::start(&spec, shard.thread())));
    let devices = host.as_ref().map_or(Vec::new(), |host| host.devices(&spec));
    let throttled = throttle_to_plan_limits(&spec, &shard, recorded.clone(), &clock);
    let top: Rc<dyn Disk> = match hold {
        // The wait lies above the recorder, too.
        Some(hold) => Rc::new(Held::new(throttled, clock.clone(), hold, stop.clone())),
        None => throttled,
    };
    let executor = Executor::new(clock.clone(), top.clone());
    let (record, hung_after_ms) = (recorded.clone(), spec.hung_after_ms);
    let run = RunContext {
        files: Files::new(top.clone()),
        disk: recorded,
        network: Rc::new(RunNetwork::new(ring)),
        handle: executor.handle(),
        nodes: Rc::new(Nodes::of(&spec, processors)),
        recorder,
        stalls,
        output,
        stop,
        phase: None,
        shard,
    };
    let mut progress = RunProgress::new(&clock, array);
    let ended = executor.run(follow_plan(RunState::new(spec, run, families), progress, host));
    let error;
    (progress, error) = match ended {
        Ok((progress, result)) => (progress, result.err()),
        Err(stalled) => (RunProgress::new(&clock, None), Some(RunError::Stalled(stalled))),
    };
    progress.anchors.push(clock.anchor().into());
    // Asked at the end, because a disk learns of fallbacks when files are opened.
    let facts = top.facts();
    if is_stuck(&record, &clock, hung_after_ms) {
        // Taking a disk down waits for what is under way. This one is left to the end of the
        // process, and its I/O to the kernel.
        std::mem::forget((executor, disk));
    }
    RunOutcome {
        schema_version: OUTCOME_SCHEMA_VERSION,
        ending: Ending::of(error.as_ref()),
        error: error.as_ref().map(ErrorReport::from),
        debug_build: cfg!(debug_assertions),
        virtual_time: clock.is_virtual(),
        io_method: facts.method,
        io_remarks: facts.remarks,
        io_choices: facts.choices,
        devices,
        threads: Vec::new(),
        anchors: progress.anchors,
        phases: progress.phases,
        stalls: progress.stalls,
        figures: progress.figures,
    }
}

/// Of each instance whether its transactions wait for their page writes.
fn waits_for_writes(families: &Families, spec: &RunSpec) -> Vec<bool> {
    let each = spec.instances.iter().map(|instance| {
        let family = families.of_instance(instance);
        family.is_ok_and(|family| family.waits_for_writes(instance))
    });
    each.collect()
}

/// Who is shown every completed I/O.
struct Watchers(Rc<ErrorWatch>, Rc<StallLog>);

impl Observer for Watchers {
    fn completed(&self, io: &CompletedIo<'_>) {
        self.0.completed(io);
        self.1.completed(io);
    }
}

/// Time that a throttled disk may make up for afterwards.
const THROTTLE_BURST_NS: u64 = 100 * NANOS_PER_MILLISECOND;

/// The disk behind the ceiling the plan sets, if it sets one. The wait lies above the recorder:
/// disk latency is that of the disk.
fn throttle_to_plan_limits(
    spec: &RunSpec,
    shard: &Shard,
    recorded: Rc<Recorded<Rc<dyn Disk>>>,
    clock: &Rc<Clock>,
) -> Rc<dyn Disk> {
    if spec.max_iops.is_none() && spec.max_mib_per_s.is_none() {
        return recorded;
    }
    // Shards know nothing of each other while they work: each keeps its part of the ceiling.
    let share = shard.share_of_all(spec);
    let limits = ThrottleLimits {
        operations_per_second: spec.max_iops.map(|rate| rate * share),
        bytes_per_second: spec.max_mib_per_s.map(|rate| rate * share * f64::from(1 << 20)),
        burst_ns: THROTTLE_BURST_NS,
    };
    Rc::new(Throttled::new(recorded, clock.clone(), limits))
}

/// What has happened so far.
struct RunProgress {
    anchors: Vec<Anchor>,
    phases: Vec<PhaseOutcome>,
    stalls: Vec<Stall>,
    figures: Vec<PhaseFigures>,
    array: Option<Rc<dyn PhaseWatch>>,
}

impl RunProgress {
    fn new(clock: &Clock, array: Option<Rc<dyn PhaseWatch>>) -> RunProgress {
        RunProgress {
            array,
            anchors: vec![clock.anchor().into()],
            phases: Vec::new(),
            stalls: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// The time of a phase is over: what its sessions still finish counts for no phase, as its time
    /// does not either. Rows of it bear the second number after those of the plan.
    fn end_phase(&mut self, state: &RunState) {
        if !state.running.is_empty() {
            self.begin_phase(state, state.spec.phases.len() as u32 + 1);
        }
    }

    /// Takes the figures of the phase before; from now on they belong to `phase`.
    fn begin_phase(&mut self, state: &RunState, phase: u32) {
        self.figures.extend(state.run.recorder.begin_phase(phase));
        self.stalls.extend(state.run.stalls.begin_phase(phase));
    }
}

async fn follow_plan(
    mut state: RunState,
    mut progress: RunProgress,
    host: Option<Rc<HostWatch>>,
) -> (RunProgress, Result<(), RunError>) {
    state.expect_rows();
    let sampler =
        Rc::new(Sampler::new(state.spec.clone(), state.run.clone(), state.backends.clone(), host));
    // The sampler has no end of its own; it goes with the executor.
    drop(state.run.handle.spawn(sampler.clone().beat()));
    let spec = state.spec.clone();
    let mut ended = Ok(());
    for (number, phase) in spec.phases.iter().enumerate() {
        ended = follow_phase(&mut state, &sampler, &mut progress, number, phase).await;
        if ended.is_err() {
            break;
        }
    }
    if let Err(error) = &ended {
        let level = if matches!(error, RunError::Stopped) { Level::Warning } else { Level::Error };
        if state.run.shard.fail(error) {
            state.run.report(level, "run_ended_early", error.to_string());
        }
        sampler.let_go();
        let given_up = matches!(error, RunError::HungIo | RunError::Stuck);
        close_after_failure(&mut state, &sampler, &mut progress, given_up).await;
    }
    sampler.close_last();
    let last = spec.phases.len() as u32;
    progress.begin_phase(&state, last);
    (progress, ended)
}

async fn follow_phase(
    state: &mut RunState,
    sampler: &Sampler,
    progress: &mut RunProgress,
    number: usize,
    phase: &PhaseSpec,
) -> Result<(), RunError> {
    let outside = state.run.clone();
    let kind = phase.action.name();
    let acted = enter_and_act(state, sampler, progress, number, phase).await;
    let mut result = acted.unwrap_or_else(|| Err(why_given_up(&outside)));
    if result.is_ok() {
        // A phase is over when it is on all shards.
        let together = sampler.close_together(true, || ()).await;
        result = together.and(result);
    }
    if result.is_err() {
        sampler.close_sample();
    }
    let complete = result.is_ok();
    let (found, ended) = match result {
        Ok(found) => (found, Ok(())),
        // What a load went through is known however the phase ended.
        Err(error) => {
            (PhaseResult { stages: state.take_stages(), ..PhaseResult::default() }, Err(error))
        }
    };
    finish_phase(progress, state, phase, complete, found);
    state.run.report_once(Level::Info, "phase_ended", format!("{kind} ended"));
    state.run = outside;
    ended
}

/// Lets sessions finish that the phase does not want, then enters it and does what it is for;
/// `None` when that was given up.
async fn enter_and_act(
    state: &mut RunState,
    sampler: &Sampler,
    progress: &mut RunProgress,
    number: usize,
    phase: &PhaseSpec,
) -> Option<Result<PhaseResult, RunError>> {
    let (outside, hung_after_ms) = (state.run.clone(), state.spec.hung_after_ms);
    progress.end_phase(state);
    let staying = stay(state, phase);
    let leaving = state.set_load(&phase.name, &staying);
    if let Err(error) =
        unless_stuck(&outside, hung_after_ms, Waits::HopefullyUntil(0), leaving).await?
    {
        return Some(Err(error));
    }
    let entered = sampler.close_together(false, || progress.begin_phase(state, number as u32));
    if let Err(error) = entered.await {
        return Some(Err(error));
    }
    enter_phase(state, progress, phase);
    let lasts_ns = (phase.action.lasts_s() * NANOS_PER_SECOND as f64) as Nanos;
    let waits = Waits::HopefullyUntil(outside.handle.now().saturating_add(lasts_ns));
    let acting = async {
        state.note_idle_loads();
        state.set_load(&phase.name, &phase.workloads).await?;
        takeover::schedule(state, &phase.name);
        let acted = phase::act(state, sampler, &phase.name, &phase.action).await;
        // What dies in a phase is back when it ends.
        let settled = state.run.nodes.settle().await;
        settled.and(acted)
    };
    unless_stuck(&outside, hung_after_ms, waits, acting).await
}

/// The workloads that run now and that the next phase wants too.
fn stay(state: &RunState, phase: &PhaseSpec) -> Vec<String> {
    let running = state.running.iter();
    running
        .map(|number| state.spec.workloads[*number].name.clone())
        .filter(|name| phase.workloads.contains(name))
        .collect()
}

fn enter_phase(state: &mut RunState, progress: &mut RunProgress, phase: &PhaseSpec) {
    if let Some(array) = &progress.array {
        array.begin(&phase.action);
    }
    let anchor: Anchor = state.run.clock().anchor().into();
    progress.anchors.push(anchor);
    progress.phases.push(PhaseOutcome {
        name: phase.name.clone(),
        kind: phase.action.name(),
        start_ns: anchor.monotonic_ns,
        end_ns: anchor.monotonic_ns,
        complete: false,
        result: PhaseResult::default(),
    });
    state.run = state.run.in_phase(&phase.name);
    state.run.report_once(Level::Info, "phase_started", format!("{} started", phase.action.name()));
}

fn finish_phase(
    progress: &mut RunProgress,
    state: &RunState,
    phase: &PhaseSpec,
    complete: bool,
    found: PhaseResult,
) {
    if let Some(outcome) = progress.phases.last_mut().filter(|outcome| outcome.name == phase.name) {
        outcome.end_ns = state.run.handle.now();
        outcome.complete = complete;
        outcome.result = found;
        outcome.result.failovers = state.run.nodes.take_failovers();
        outcome.result.array = progress.array.as_ref().map(|array| array.report());
    }
}

/// Stops all sessions and closes what is open, as far as the disk allows; the first error stays the
/// one reported.
async fn close_after_failure(
    state: &mut RunState,
    sampler: &Sampler,
    progress: &mut RunProgress,
    given_up: bool,
) {
    let (run, hung_after_ms) = (state.run.clone(), state.spec.hung_after_ms);
    progress.end_phase(state);
    let leaving = state.set_load("stop", &[]);
    match unless_stuck(&run, hung_after_ms, Waits::WhileAnswered, leaving).await {
        Some(Ok(())) => {}
        Some(Err(error)) => run.report(Level::Error, "session_failed", error.to_string()),
        None => return report_left_open(&run),
    }
    if state.backends.borrow().is_empty() {
        if given_up {
            report_left_open(&run);
        }
        return;
    }
    let databases = state.databases();
    let closing = PhaseSpec {
        name: "stop after early end".into(),
        action: PhaseAction::Stop {},
        workloads: Vec::new(),
    };
    sampler.close_sample();
    progress.begin_phase(state, state.spec.phases.len() as u32);
    enter_phase(state, progress, &closing);
    let closed = phase::act(state, sampler, &closing.name, &closing.action);
    let closed = unless_stuck(&run, hung_after_ms, Waits::WhileAnswered, closed).await;
    sampler.close_sample();
    if closed.is_none() {
        report_left_open(&run);
    }
    let found = PhaseResult { databases, ..PhaseResult::default() };
    finish_phase(progress, state, &closing, matches!(closed, Some(Ok(_))), found);
}

fn report_left_open(run: &RunContext) {
    let text =
        "an I/O does not return; the databases are left open, and the next run recovers them";
    run.report(Level::Error, "left_open", text.into());
}
