//! A run as Python sees it: started by its construction, then asked for samples, events and at last
//! its outcome.
//!
//! The run has a thread of its own that never touches Python. Every wait here gives the interpreter
//! free, wakes each 50 ms and lets Python look for signals, so Ctrl-C is noticed whatever the disk
//! does.
//!
//! The outcome comes through a channel and the thread is not joined: where an I/O never returns,
//! the kernel holds the thread that asked for it until it does, also after everything that the
//! thread had to say.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::Duration;

use plimsoll_measure::{Row, column_buffers};
use plimsoll_run::{
    Event, Output, RunError, RunOutcome, RunSpec, RunWatch, StopSignal, WriteHold, execute_held,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{PlimsollError, raise};

/// How long a wait goes on before signals are looked for.
pub(crate) const WAKE_EVERY: Duration = Duration::from_millis(50);

/// See the module text.
#[pyclass(frozen)]
pub struct Run {
    stop: StopSignal,
    hold: WriteHold,
    samples: Mutex<Receiver<Vec<Row>>>,
    events: Mutex<Receiver<Event>>,
    state: Mutex<State>,
}

struct State {
    ended: Receiver<Result<RunOutcome, RunError>>,
    watch: RunWatch,
    reported: Vec<Event>,
    result: Option<Result<String, RunError>>,
}

#[pymethods]
impl Run {
    /// Starts the run that `spec_json` describes.
    #[new]
    fn new(spec_json: &str) -> PyResult<Run> {
        let spec = RunSpec::from_json(spec_json).map_err(|error| raise(&error))?;
        let (samples, sample_rows) = channel();
        let (events, event_lines) = channel();
        let stop = StopSignal::default();
        let output = Output { samples, events };
        let hold = WriteHold::default();
        let (signal, held) = (stop.clone(), hold.clone());
        let watch = RunWatch::of(&spec, stop.clone());
        let (ending, ended) = sync_channel(1);
        std::thread::Builder::new()
            .name("plimsoll-run".into())
            .spawn(move || {
                // The receiver is gone when the interpreter has dropped the run.
                let _ = ending.send(execute_held(spec, output, signal, held));
            })
            .map_err(|error| {
                PlimsollError::new_err(format!("no thread could be started for the run: {error}"))
            })?;
        Ok(Run {
            stop,
            hold,
            samples: Mutex::new(sample_rows),
            events: Mutex::new(event_lines),
            state: Mutex::new(State { ended, watch, reported: Vec::new(), result: None }),
        })
    }

    /// One buffer per column for the samples that have closed, waiting at most `timeout_s` for the
    /// first; an empty list when there are none yet, `None` when the run is over and all samples
    /// were taken.
    fn next_samples<'py>(
        &self,
        py: Python<'py>,
        timeout_s: f64,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let mut left = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        loop {
            let slice = left.min(WAKE_EVERY);
            let taken = py.detach(|| self.take_rows(slice));
            py.check_signals()?;
            left = left.saturating_sub(slice);
            match taken {
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(Some(Vec::new())),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(rows) => {
                    let buffers = py.detach(|| column_buffers(&rows));
                    return Ok(Some(
                        buffers.iter().map(|buffer| PyBytes::new(py, buffer)).collect(),
                    ));
                }
            }
        }
    }

    /// What has happened since the last call, each event as JSON; never waits.
    fn next_events(&self) -> PyResult<Vec<String>> {
        let events = self.events.lock().expect("no panic happens under this lock");
        let mut state = self.state.lock().expect("no panic happens under this lock");
        let heard: Vec<Event> = events.try_iter().collect();
        heard.iter().for_each(|event| state.watch.note(event));
        let reported = std::mem::take(&mut state.reported);
        let lines = heard.iter().chain(&reported).map(serde_json::to_string);
        lines.collect::<Result<_, _>>().map_err(|error| PlimsollError::new_err(error.to_string()))
    }

    /// Asks for a clean stop; returns at once.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Holds all writes of a run whose spec says that they can be held, for `longest_s` at most;
    /// returns at once.
    fn hold_writes(&self, longest_s: f64) {
        let longest = Duration::try_from_secs_f64(longest_s.max(0.0)).unwrap_or(Duration::MAX);
        self.hold.hold(longest);
    }

    /// Whether all writes are held now and none is under way.
    fn holds_writes(&self) -> bool {
        self.hold.holds()
    }

    /// Lets the writes go on; whether they were held up to now.
    fn release_writes(&self) -> bool {
        self.hold.release()
    }

    /// How the run ended, as JSON; waits for the end.
    fn outcome(&self, py: Python<'_>) -> PyResult<String> {
        loop {
            let finished = py.detach(|| self.is_over_within(WAKE_EVERY, WAKE_EVERY));
            py.check_signals()?;
            if finished {
                let state = self.state.lock().expect("no panic happens under this lock");
                let result = state.result.as_ref().expect("a finished run has a result");
                return result.clone().map_err(|error| raise(&error));
            }
        }
    }
}

impl Run {
    fn take_rows(&self, wait: Duration) -> Result<Vec<Row>, RecvTimeoutError> {
        let samples = self.samples.lock().expect("no panic happens under this lock");
        let mut rows = match samples.recv_timeout(wait) {
            // A run that was stopped may leave its end of the channel open: its outcome shows that
            // it is over.
            Err(RecvTimeoutError::Timeout) if self.is_over_within(Duration::ZERO, wait) => {
                samples.try_recv().map_err(|_| RecvTimeoutError::Disconnected)?
            }
            received => received?,
        };
        rows.extend(samples.try_iter().flatten());
        Ok(rows)
    }

    /// Whether the run has ended, or was given up; waits that long. `silent` is how long no
    /// heartbeat came meanwhile.
    fn is_over_within(&self, wait: Duration, silent: Duration) -> bool {
        let mut state = self.state.lock().expect("no panic happens under this lock");
        if state.result.is_some() {
            return true;
        }
        let broken = "the run's thread broke down; this is a fault of Plimsoll";
        let ended = match state.ended.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {
                let event = state.watch.wait(silent);
                state.reported.extend(event);
                match state.watch.given_up() {
                    None => return false,
                    Some(outcome) => Ok(outcome),
                }
            }
            Err(RecvTimeoutError::Disconnected) => Err(RunError::Engine(broken.into())),
            Ok(ended) => ended,
        };
        let written = |outcome| {
            serde_json::to_string(&outcome).map_err(|error| RunError::Engine(error.to_string()))
        };
        state.result = Some(ended.and_then(written));
        true
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
