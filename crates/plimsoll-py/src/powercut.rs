//! Durable work whose acknowledgements Python hands to a witness, the survey of what a power cut
//! left, and its rehearsal.
//!
//! The work has a thread of its own, as a run has; acknowledgements are taken as soon as there are
//! some.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_io::StopSignal;
use plimsoll_powercut::{
    Acknowledged, PowercutError, PowercutOutcome, PowercutSpec, RehearsalSpec, Survey, Witness,
    powercut_live, rehearse as rehearse_run, survey_live,
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::{ConfigError, PlimsollError, raise};
use crate::run::WAKE_EVERY;

/// As many acknowledgements are taken at once.
const TAKEN_MAX: usize = 8192;

/// Kind, lane, sequence, number, started.
type Line = (&'static str, u32, u64, u64, u64);

/// See the module text.
#[pyclass(frozen)]
pub struct Powercut {
    stop: StopSignal,
    confirmed: Arc<AtomicU64>,
    acknowledged: Mutex<Receiver<Acknowledged>>,
    thread: Mutex<Option<JoinHandle<Result<PowercutOutcome, PowercutError>>>>,
}

#[pymethods]
impl Powercut {
    /// Starts the work that `spec_json` describes.
    #[new]
    fn new(spec_json: &str) -> PyResult<Powercut> {
        let spec: PowercutSpec = parsed(spec_json)?;
        spec.check().map_err(|error| raise(&error))?;
        let (sender, acknowledged) = channel();
        let (stop, confirmed) = (StopSignal::default(), Arc::new(AtomicU64::new(0)));
        let witness = Witness { acknowledged: sender, confirmed: confirmed.clone() };
        let signal = stop.clone();
        let thread = std::thread::Builder::new()
            .name("plimsoll-powercut".into())
            .spawn(move || powercut_live(spec, witness, signal))
            .map_err(|error| {
                PlimsollError::new_err(format!("no thread could be started: {error}"))
            })?;
        Ok(Powercut {
            stop,
            confirmed,
            acknowledged: Mutex::new(acknowledged),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What was made durable since the last call, waiting at most `timeout_s` for the first; `None`
    /// when the work is over and all was taken.
    fn next_acknowledged(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Vec<Line>>> {
        let mut left = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        loop {
            let slice = left.min(WAKE_EVERY);
            let taken = py.detach(|| self.take(slice));
            py.check_signals()?;
            left = left.saturating_sub(slice);
            match taken {
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(Some(Vec::new())),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(lines) => return Ok(Some(lines)),
            }
        }
    }

    /// Tells how many acknowledgements the witness has; the work waits when it is too far behind.
    fn confirm(&self, count: u64) {
        self.confirmed.fetch_max(count, Ordering::AcqRel);
    }

    /// Asks for a clean stop; returns at once.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Whether the work has ended.
    fn is_over(&self) -> bool {
        let thread = self.thread.lock().expect("no panic happens under this lock");
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How the work ended, as JSON; waits for the end. To be asked once.
    fn outcome(&self, py: Python<'_>) -> PyResult<String> {
        let taken = self.thread.lock().expect("no panic happens under this lock").take();
        let thread =
            taken.ok_or_else(|| PlimsollError::new_err("the outcome was asked for before"))?;
        json(&joined(py, thread)?.map_err(|error| raise(&error))?)
    }
}

impl Powercut {
    fn take(&self, wait: Duration) -> Result<Vec<Line>, RecvTimeoutError> {
        let acknowledged = self.acknowledged.lock().expect("no panic happens under this lock");
        let first = acknowledged.recv_timeout(wait)?;
        let more = acknowledged.try_iter().take(TAKEN_MAX - 1);
        Ok(std::iter::once(first).chain(more).map(line).collect())
    }
}

impl Drop for Powercut {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Recovers the databases of such work and lists what is there, as JSON. Recovery writes to them.
#[pyfunction]
pub fn survey(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: PowercutSpec = parsed(spec_json)?;
    let thread = std::thread::spawn(move || survey_live(spec));
    let found: Survey = joined(py, thread)?.map_err(|error| raise(&error))?;
    json(&found)
}

/// Works on a disk in memory that keeps or breaks its promises, cuts its power and lists what is
/// left, as JSON. Touches no disk.
#[pyfunction]
pub fn rehearse(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: RehearsalSpec = parsed(spec_json)?;
    let thread = std::thread::spawn(move || rehearse_run(spec));
    json(&joined(py, thread)?.map_err(|error| raise(&error))?)
}

/// Waits for a thread, looking for signals meanwhile.
fn joined<T>(
    py: Python<'_>,
    thread: JoinHandle<Result<T, PowercutError>>,
) -> PyResult<Result<T, PowercutError>> {
    while !thread.is_finished() {
        py.detach(|| std::thread::sleep(WAKE_EVERY));
        py.check_signals()?;
    }
    thread
        .join()
        .map_err(|_| PlimsollError::new_err("the work broke down; this is a fault of Plimsoll"))
}

fn line(acknowledged: Acknowledged) -> Line {
    (
        acknowledged.kind.name(),
        acknowledged.lane,
        acknowledged.sequence,
        acknowledged.number,
        acknowledged.started,
    )
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| ConfigError::new_err(error.to_string()))
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PlimsollError::new_err(error.to_string()))
}
