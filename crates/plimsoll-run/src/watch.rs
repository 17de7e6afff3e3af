//! A run watched from outside, because its own thread may be held by the kernel. Some ways of doing
//! I/O wait for the storage while they hand a request over (libaio on a file system that is
//! frozen); then the run can neither report the I/O nor notice that it should stop.
//!
//! The caller keeps the progress of the run from its events. When the heartbeat is missing for long
//! enough, that is reported; when a stop was asked for, this progress stands in for the outcome:
//! what was measured is in the samples, distributions are lost with the thread.

use std::time::Duration;

use plimsoll_io::{Clock, StopSignal};

use crate::RunError;
use crate::events::{Event, Level};
use crate::outcome::{
    Anchor, Ending, ErrorReport, OUTCOME_SCHEMA_VERSION, PhaseOutcome, PhaseResult, RunOutcome,
};
use crate::spec::RunSpec;

/// After a request to stop, a heartbeat is waited for this long at most.
const STOPPING_TIMEOUT: Duration = Duration::from_secs(15);

/// See the module text.
pub struct RunWatch {
    clock: Clock,
    stop: StopSignal,
    kinds: Vec<(String, &'static str)>,
    io_method: String,
    hung_after: Duration,
    is_virtual: bool,
    anchors: Vec<Anchor>,
    phases: Vec<PhaseOutcome>,
    heartbeats: u64,
    silent: Duration,
    is_reported: bool,
}

impl RunWatch {
    /// Begins to follow a run.
    pub fn of(spec: &RunSpec, stop: StopSignal) -> RunWatch {
        let clock = Clock::real();
        let kinds = spec.phases.iter().map(|phase| (phase.name.clone(), phase.action.name()));
        RunWatch {
            kinds: kinds.collect(),
            io_method: spec.io_method.clone(),
            hung_after: Duration::from_millis(spec.hung_after_ms),
            is_virtual: spec.modelled.is_some(),
            anchors: vec![clock.anchor().into()],
            phases: Vec::new(),
            heartbeats: stop.heartbeat_count(),
            silent: Duration::ZERO,
            is_reported: false,
            clock,
            stop,
        }
    }

    /// Takes in an event of the run.
    pub fn note(&mut self, event: &Event) {
        let name = event.phase.as_deref().unwrap_or_default();
        if event.kind == "phase_started" {
            let known = self.kinds.iter().find(|(known, _)| known == name);
            // A phase that the plan does not have closes what an early end left open.
            let is_planned = known.is_some();
            if let Some(before) = self.phases.last_mut() {
                before.complete = is_planned;
            }
            self.anchors.push(Anchor {
                monotonic_ns: event.time_ns,
                utc_ns: event.utc_ns,
                host_offset_ns: 0,
            });
            self.phases.push(PhaseOutcome {
                name: name.to_owned(),
                kind: known.map_or("stop", |(_, kind)| kind),
                start_ns: event.time_ns,
                end_ns: event.time_ns,
                complete: false,
                result: PhaseResult::default(),
            });
        } else if let Some(phase) = self.phases.last_mut() {
            phase.end_ns = phase.end_ns.max(event.time_ns);
        }
    }

    /// Counts a time in which nothing came; what there is to report, once. Time is counted by the
    /// caller, so that a process that is stopped as a whole is not taken for one that hangs.
    pub fn wait(&mut self, waited: Duration) -> Option<Event> {
        let heartbeats = self.stop.heartbeat_count();
        if self.is_virtual || heartbeats != self.heartbeats {
            (self.heartbeats, self.silent, self.is_reported) = (heartbeats, Duration::ZERO, false);
            return None;
        }
        self.silent += waited;
        if self.silent < self.hung_after || self.is_reported || self.phases.is_empty() {
            return None;
        }
        self.is_reported = true;
        let text = format!(
            "the run itself has not gone on for more than {} ms: an I/O does not return, and \
             neither does the call that asks for it",
            self.hung_after.as_millis()
        );
        let phase = self.phases.last().map(|phase| phase.name.clone());
        Some(Event::now(&self.clock, Level::Error, "hung_io", phase, text))
    }

    /// What stands in for the outcome of a run that was asked to stop and does not notice; `None`
    /// while it may still notice.
    pub fn given_up(&mut self) -> Option<RunOutcome> {
        let timeout = STOPPING_TIMEOUT.min(self.hung_after);
        if !self.stop.was_asked() || self.silent < timeout || self.phases.is_empty() {
            return None;
        }
        let now: Anchor = self.clock.anchor().into();
        self.anchors.push(now);
        if let Some(phase) = self.phases.last_mut() {
            phase.end_ns = now.monotonic_ns;
        }
        Some(RunOutcome {
            schema_version: OUTCOME_SCHEMA_VERSION,
            ending: Ending::Interrupted,
            error: Some(ErrorReport::from(&RunError::Stuck)),
            debug_build: cfg!(debug_assertions),
            virtual_time: false,
            io_method: self.io_method.clone(),
            io_remarks: vec![
                "the thread of the run is held by the kernel; its distributions and what it chose \
                 are lost"
                    .into(),
            ],
            io_choices: Vec::new(),
            anchors: self.anchors.clone(),
            devices: Vec::new(),
            threads: Vec::new(),
            phases: self.phases.clone(),
            stalls: Vec::new(),
            figures: Vec::new(),
        })
    }
}
