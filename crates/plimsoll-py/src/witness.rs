//! Both sides of the conversation with a witness, each on a thread of its own: Python keeps the log
//! and counts, and does not speak.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_io::{InboxSender, NANOS_PER_SECOND, Nanos, inbox};
use plimsoll_powercut::{
    Hearing, HearingEvent, HearingSetup, Refused, Telling, TellingSetup, TellingState, hear_live,
    tell_live,
};
use pyo3::exceptions::{PyConnectionError, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use crate::errors::PlimsollError;
use crate::run::WAKE_EVERY;

/// The farewell takes so long at most.
const FAREWELL: Duration = Duration::from_secs(5);

/// Kind, host it is about, text or lines, acknowledgements.
type Event = (&'static str, String, Vec<u8>, u64);

/// A witness that listens; it hears one connection each time it is told to.
#[pyclass(frozen)]
pub struct Witness {
    told: InboxSender<Hearing>,
    /// The witness listens as long as this is kept.
    ending: Mutex<Option<InboxSender<()>>>,
    events: Mutex<Receiver<HearingEvent>>,
    place: String,
}

#[pymethods]
impl Witness {
    /// Listens at `address`. Raises OSError when that cannot be.
    #[new]
    fn new(py: Python<'_>, address: String, silence_s: f64) -> PyResult<Self> {
        let setup = HearingSetup { address, silence_ns: nanos(silence_s) };
        let ((told, inner), (ending, inner_ending)) = (inbox(), inbox());
        let (sender, events) = channel();
        start(move || hear_live(setup, inner, inner_ending, sender))?;
        let events = Mutex::new(events);
        match next(py, &events)? {
            HearingEvent::Listening(Ok(place)) => {
                Ok(Self { told, ending: Mutex::new(Some(ending)), events, place })
            }
            HearingEvent::Listening(Err(error)) => Err(PyOSError::new_err(error.to_string())),
            _ => Err(broken()),
        }
    }

    /// Where it listens, with the port that was found.
    #[getter]
    fn place(&self) -> &str {
        &self.place
    }

    /// Hears one connection; what comes of it is among the events, until it has ended.
    fn hear(&self) {
        self.told.send(Hearing::One);
    }

    /// The next event. "begin": its host and first line, to be noted and answered. "append": lines,
    /// to be appended and answered. "ended": its host, why, and how many acknowledgements lie on
    /// the disk.
    fn next_event(&self, py: Python<'_>) -> PyResult<Event> {
        Ok(match next(py, &self.events)? {
            HearingEvent::Begin { peer, greeting } => ("begin", peer, greeting, 0),
            HearingEvent::Append(lines) => ("append", String::new(), lines, 0),
            HearingEvent::Ended { peer, lines, why } => ("ended", peer, why.into_bytes(), lines),
            HearingEvent::Listening(_) => return Err(broken()),
        })
    }

    /// Answers a beginning or an append: why it failed, and otherwise whether it was one of ours.
    fn logged(&self, failure: Option<String>, is_ours: bool) {
        self.told.send(Hearing::Logged(failure.map_or(Ok(is_ours), Err)));
    }

    /// Listens no more.
    fn close(&self) {
        drop(self.ending.lock().expect("no panic happens under this lock").take());
    }
}

/// The connection of a machine under test to its witness.
#[pyclass(frozen)]
pub struct WitnessLink {
    letters: InboxSender<Telling>,
    state: Arc<TellingState>,
    is_over: Arc<AtomicBool>,
    is_local: bool,
}

#[pymethods]
impl WitnessLink {
    /// Connects and introduces a run by its first line. Raises TimeoutError when nobody answers,
    /// ConnectionError when nobody can be reached, ValueError with the answer when it is no free
    /// witness's.
    #[new]
    fn new(py: Python<'_>, address: String, greeting: String, patience_s: f64) -> PyResult<Self> {
        let setup = TellingSetup { address, greeting, patience_ns: nanos(patience_s) };
        let (letters, inner) = inbox();
        let (state, is_over) = (Arc::<TellingState>::default(), Arc::new(AtomicBool::new(false)));
        let (telling, over) = (state.clone(), is_over.clone());
        let (sender, answers) = channel();
        start(move || {
            tell_live(setup, inner, telling, sender);
            over.store(true, Ordering::Release);
        })?;
        match next(py, &Mutex::new(answers))? {
            Ok(is_local) => Ok(Self { letters, state, is_over, is_local }),
            Err(refused @ Refused::Silent(_)) => Err(PyTimeoutError::new_err(refused.to_string())),
            Err(refused @ Refused::Unreachable(_)) => {
                Err(PyConnectionError::new_err(refused.to_string()))
            }
            Err(Refused::Answered(_, answer)) => Err(PyValueError::new_err(answer)),
        }
    }

    /// Whether the witness is on this machine.
    #[getter]
    fn is_local(&self) -> bool {
        self.is_local
    }

    /// How many acknowledgements lie on the witness's disk.
    #[getter]
    fn confirmed(&self) -> u64 {
        self.state.confirmed()
    }

    /// Why the witness is gone, or None.
    #[getter]
    fn lost(&self) -> Option<String> {
        self.state.lost()
    }

    /// Sends whole lines; returns at once.
    fn tell(&self, lines: &str) {
        self.letters.send(Telling::Lines(lines.as_bytes().to_vec()));
    }

    /// Leaves of its own will; returns when the witness knows, or a few seconds later.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.letters.send(Telling::End);
        let deadline = Instant::now() + FAREWELL;
        while !self.is_over.load(Ordering::Acquire) && Instant::now() < deadline {
            py.detach(|| std::thread::sleep(WAKE_EVERY / 10));
            py.check_signals()?;
        }
        Ok(())
    }
}

fn nanos(seconds: f64) -> Nanos {
    (seconds.max(0.0) * NANOS_PER_SECOND as f64) as Nanos
}

fn broken() -> PyErr {
    PlimsollError::new_err("the network's thread broke down; this is a fault of Plimsoll")
}

fn start(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let thread = std::thread::Builder::new().name("plimsoll-witness".into());
    match thread.spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(PlimsollError::new_err(format!("no thread could be started: {error}"))),
    }
}

/// The next thing a thread says; looks for signals meanwhile.
fn next<T: Send>(py: Python<'_>, said: &Mutex<Receiver<T>>) -> PyResult<T> {
    loop {
        let taken = py.detach(|| {
            let said = said.lock().expect("no panic happens under this lock");
            said.recv_timeout(WAKE_EVERY)
        });
        py.check_signals()?;
        match taken {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(broken()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
