//! A run from beginning to end: phase after phase, then a clean stop whatever happened, then the outcome.

use std::rc::Rc;

use plimsoll_io::{
    Clock, CompletedIo, Disk, Executor, Files, NANOS_PER_MILLISECOND, Observer, Recorded, StopSignal,
    ThrottleLimits, Throttled,
};

use crate::RunError;
use crate::error_watch::ErrorWatch;
use crate::events::Level;
use crate::host::HostWatch;
use crate::outcome::{
    Anchor, Ending, ErrorReport, OUTCOME_SCHEMA_VERSION, PhaseOutcome, PhaseResult, RunOutcome,
};
use crate::patience::{Waits, is_stuck, unless_stuck};
use crate::phase;
use crate::processors::Processors;
use crate::recorder::{PhaseFigures, Recorder};
use crate::sampler::Sampler;
use crate::setting::{Output, Setting};
use crate::spec::{PhaseAction, PhaseSpec, RunSpec};
use crate::stage::Stage;
use crate::stalls::{Stall, StallBook};
use crate::storage::{PhaseWatch, Storage};

/// Carries out a run on a disk and returns when it is over. Whatever goes wrong is part of the outcome.
pub fn execute(
    spec: RunSpec,
    clock: Rc<Clock>,
    disk: Rc<dyn Disk>,
    output: Output,
    stop: StopSignal,
) -> RunOutcome {
    let storage = Storage {
        disk,
        watch: None,
        processors: Processors::new(1, 0),
    };
    execute_on(spec, clock, storage, output, stop)
}

/// The same on storage of any kind.
pub fn execute_on(
    spec: RunSpec,
    clock: Rc<Clock>,
    storage: Storage,
    output: Output,
    stop: StopSignal,
) -> RunOutcome {
    let Storage {
        disk,
        watch: array,
        processors,
    } = storage;
    let spec = Rc::new(spec);
    let recorder = Rc::new(Recorder::default());
    let watch = Rc::new(ErrorWatch::new(clock.clone(), recorder.clone(), output.clone()));
    let stalls = Rc::new(StallBook::new(&spec));
    let watchers = Rc::new(Watchers(watch, stalls.clone()));
    let recorded = Rc::new(Recorded::observed(disk.clone(), clock.clone(), watchers));
    let host = (!clock.is_virtual()).then(|| Rc::new(HostWatch::start(&spec)));
    let devices = host.as_ref().map_or(Vec::new(), |host| host.devices(&spec));
    let spared = spare(&spec, recorded.clone(), &clock);
    let executor = Executor::new(clock.clone(), spared.clone());
    let (record, hung_after_ms) = (recorded.clone(), spec.hung_after_ms);
    let setting = Setting {
        files: Files::new(spared.clone()),
        disk: recorded,
        handle: executor.handle(),
        processors: Rc::new(processors),
        recorder,
        stalls,
        output,
        stop,
        phase: None,
    };
    let mut course = Course::new(&clock, array);
    let ended = executor.run(follow_plan(Stage::new(spec, setting), course, host));
    let error;
    (course, error) = match ended {
        Ok((course, result)) => (course, result.err()),
        Err(stalled) => (Course::new(&clock, None), Some(RunError::Stalled(stalled))),
    };
    course.anchors.push(clock.anchor().into());
    // Asked at the end, because a disk learns of fallbacks when files are opened.
    let facts = spared.facts();
    if is_stuck(&record, &clock, hung_after_ms) {
        // Taking a disk down waits for what is under way. This one is left to the end of the process, and its I/O to the kernel.
        std::mem::forget((executor, disk));
    }
    RunOutcome {
        schema_version: OUTCOME_SCHEMA_VERSION,
        ending: match &error {
            None => Ending::Complete,
            Some(RunError::Stopped | RunError::Stuck) => Ending::Interrupted,
            Some(_) => Ending::Failed,
        },
        error: error.as_ref().map(ErrorReport::from),
        debug_build: cfg!(debug_assertions),
        virtual_time: clock.is_virtual(),
        io_method: facts.method,
        io_remarks: facts.remarks,
        io_choices: facts.choices,
        devices,
        anchors: course.anchors,
        phases: course.phases,
        stalls: course.stalls,
        figures: course.figures,
    }
}

/// Who is shown every completed I/O.
struct Watchers(Rc<ErrorWatch>, Rc<StallBook>);

impl Observer for Watchers {
    fn completed(&self, io: &CompletedIo<'_>) {
        self.0.completed(io);
        self.1.completed(io);
    }
}

/// Time that a spared disk may make up for afterwards.
const SPARED_BURST_NS: u64 = 100 * NANOS_PER_MILLISECOND;

/// The disk behind the ceiling the plan sets, if it sets one. The wait lies above the recorder: disk latency is that of the disk.
fn spare(spec: &RunSpec, recorded: Rc<Recorded<Rc<dyn Disk>>>, clock: &Rc<Clock>) -> Rc<dyn Disk> {
    if spec.max_iops.is_none() && spec.max_mib_per_s.is_none() {
        return recorded;
    }
    let limits = ThrottleLimits {
        operations_per_second: spec.max_iops,
        bytes_per_second: spec.max_mib_per_s.map(|rate| rate * f64::from(1 << 20)),
        burst_ns: SPARED_BURST_NS,
    };
    Rc::new(Throttled::new(recorded, clock.clone(), limits))
}

/// What has happened so far.
struct Course {
    anchors: Vec<Anchor>,
    phases: Vec<PhaseOutcome>,
    stalls: Vec<Stall>,
    figures: Vec<PhaseFigures>,
    array: Option<Rc<dyn PhaseWatch>>,
}

impl Course {
    fn new(clock: &Clock, array: Option<Rc<dyn PhaseWatch>>) -> Course {
        Course {
            array,
            anchors: vec![clock.anchor().into()],
            phases: Vec::new(),
            stalls: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// Takes the figures of the phase before; from now on they belong to `phase`.
    fn begin_phase(&mut self, stage: &Stage, phase: u32) {
        self.figures.extend(stage.setting.recorder.begin_phase(phase));
        self.stalls.extend(stage.setting.stalls.begin_phase(phase));
    }
}

async fn follow_plan(
    mut stage: Stage,
    mut course: Course,
    host: Option<Rc<HostWatch>>,
) -> (Course, Result<(), RunError>) {
    stage.expect_rows();
    let sampler = Rc::new(Sampler::new(
        stage.spec.clone(),
        stage.setting.clone(),
        stage.backends.clone(),
        host,
    ));
    // The sampler has no end of its own; it goes with the executor.
    drop(stage.setting.handle.spawn(sampler.clone().beat()));
    let spec = stage.spec.clone();
    let mut ended = Ok(());
    for (number, phase) in spec.phases.iter().enumerate() {
        ended = follow_phase(&mut stage, &sampler, &mut course, number, phase).await;
        if ended.is_err() {
            break;
        }
    }
    if let Err(error) = &ended {
        let level = if matches!(error, RunError::Stopped) {
            Level::Warning
        } else {
            Level::Error
        };
        stage.setting.tell(level, "run_ended_early", error.to_string());
        close_after_failure(&mut stage, &sampler, &mut course).await;
    }
    let last = spec.phases.len() as u32;
    course.begin_phase(&stage, last);
    (course, ended)
}

async fn follow_phase(
    stage: &mut Stage,
    sampler: &Sampler,
    course: &mut Course,
    number: usize,
    phase: &PhaseSpec,
) -> Result<(), RunError> {
    let outside = stage.setting.clone();
    let kind = phase.action.name();
    let hung_after_ms = stage.spec.hung_after_ms;
    let acting = async {
        // Sessions that this phase does not want finish in the phase before, where they belong.
        stage.set_load(&phase.name, &stay(stage, phase)).await?;
        enter_phase(stage, sampler, course, number, phase);
        stage.note_idle_loads();
        stage.set_load(&phase.name, &phase.workloads).await?;
        phase::act(stage, sampler, &phase.name, phase.action).await
    };
    let acted = unless_stuck(&outside, hung_after_ms, Waits::UntilStopped, acting).await;
    let result = acted.unwrap_or(Err(RunError::Stuck));
    sampler.close_sample();
    let complete = result.is_ok();
    let (found, ended) = match result {
        Ok(found) => (found, Ok(())),
        Err(error) => (PhaseResult::default(), Err(error)),
    };
    finish_phase(course, stage, phase, complete, found);
    stage
        .setting
        .tell(Level::Info, "phase_ended", format!("{kind} ended"));
    stage.setting = outside;
    ended
}

/// The workloads that run now and that the next phase wants too.
fn stay(stage: &Stage, phase: &PhaseSpec) -> Vec<String> {
    let running = stage
        .loads
        .iter()
        .map(|load| stage.spec.workloads[load.workload].name.clone());
    running.filter(|name| phase.workloads.contains(name)).collect()
}

fn enter_phase(stage: &mut Stage, sampler: &Sampler, course: &mut Course, number: usize, phase: &PhaseSpec) {
    sampler.close_sample();
    course.begin_phase(stage, number as u32);
    if let Some(array) = &course.array {
        array.begin(&phase.action);
    }
    let anchor: Anchor = stage.setting.clock().anchor().into();
    course.anchors.push(anchor);
    course.phases.push(PhaseOutcome {
        name: phase.name.clone(),
        kind: phase.action.name(),
        start_ns: anchor.monotonic_ns,
        end_ns: anchor.monotonic_ns,
        complete: false,
        result: PhaseResult::default(),
    });
    stage.setting = stage.setting.in_phase(&phase.name);
    stage.setting.tell(
        Level::Info,
        "phase_started",
        format!("{} started", phase.action.name()),
    );
}

fn finish_phase(course: &mut Course, stage: &Stage, phase: &PhaseSpec, complete: bool, found: PhaseResult) {
    if let Some(outcome) = course
        .phases
        .last_mut()
        .filter(|outcome| outcome.name == phase.name)
    {
        outcome.end_ns = stage.setting.handle.now();
        outcome.complete = complete;
        outcome.result = found;
        outcome.result.array = course.array.as_ref().map(|array| array.report());
    }
}

/// Sends the sessions home and closes what is open, as far as the disk lets us; the first error stays the one reported.
async fn close_after_failure(stage: &mut Stage, sampler: &Sampler, course: &mut Course) {
    let (setting, hung_after_ms) = (stage.setting.clone(), stage.spec.hung_after_ms);
    let leaving = stage.set_load("stop", &[]);
    match unless_stuck(&setting, hung_after_ms, Waits::WhileAnswered, leaving).await {
        Some(Ok(())) => {}
        Some(Err(error)) => setting.tell(Level::Error, "session_failed", error.to_string()),
        None => return tell_left_open(&setting),
    }
    if stage.backends.borrow().is_empty() {
        return;
    }
    let databases = stage.databases();
    let closing = PhaseSpec {
        name: "stop after early end".into(),
        action: PhaseAction::Stop {},
        workloads: Vec::new(),
    };
    let number = stage.spec.phases.len();
    enter_phase(stage, sampler, course, number, &closing);
    let closed = phase::act(stage, sampler, &closing.name, closing.action);
    let closed = unless_stuck(&setting, hung_after_ms, Waits::WhileAnswered, closed).await;
    sampler.close_sample();
    if closed.is_none() {
        tell_left_open(&setting);
    }
    let found = PhaseResult {
        databases,
        ..PhaseResult::default()
    };
    finish_phase(course, stage, &closing, matches!(closed, Some(Ok(_))), found);
}

fn tell_left_open(setting: &Setting) {
    let text = "an I/O does not return; the databases are left open, and the next run recovers them";
    setting.tell(Level::Error, "left_open", text.into());
}
