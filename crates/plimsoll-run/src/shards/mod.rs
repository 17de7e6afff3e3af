//! A run on several threads. Each *shard* is a thread with its own executor, ring, recorder and
//! part of the load; all of them carry out the same plan, each for the instances that are its own.
//! An instance lives on exactly one shard.
//!
//! Shards share a small board and nothing else. They meet where a phase begins and ends and where a
//! search or a calibration needs the figures of all; what follows from these figures each works out
//! for itself and comes to the same. The thread that starts them only puts their samples together
//! and passes a wish to stop on. Virtual time has one executor and never comes here.

mod board;
mod message;
mod outcomes;
mod samples;
mod shard;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_io::{Clock, StopSignal, allowed_processors, pin_this_thread};

use crate::RunError;
use crate::context::Output;
use crate::events::{Event, Level};
use crate::family::Families;
use crate::outcome::{RunOutcome, ThreadOutcome};
use crate::run::execute_shard;
use crate::spec::RunSpec;
use crate::storage::Storage;

use board::Board;
pub use message::Message;
use samples::SampleMerge;
pub use samples::SamplePart;
pub use shard::Shard;

/// How often it is looked whether all shards go on.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What opens the storage of a shard, on its thread.
pub trait OpenStorage:
    Fn(usize, Rc<Clock>) -> Result<Storage, RunError> + Clone + Send + 'static
{
}

impl<T> OpenStorage for T where
    T: Fn(usize, Rc<Clock>) -> Result<Storage, RunError> + Clone + Send + 'static
{
}

/// Carries out a run in real time on as many threads as its spec wants; blocks the calling thread
/// until it is over.
///
/// # Errors
/// When a thread cannot be started, or a disk cannot be opened. All later errors are part of the
/// outcome.
pub fn execute_on_threads(
    families: fn() -> Families,
    spec: RunSpec,
    open: impl OpenStorage,
    output: Output,
    stop: &StopSignal,
) -> Result<RunOutcome, RunError> {
    let count = spec.threads_count();
    let board = Arc::new(Board::new(count));
    let (messages, received) = channel();
    let mut threads = threads_of(&spec, count);
    let origin = Clock::real()
        .origin()
        .ok_or_else(|| RunError::Engine("a real clock has no zero".into()))?;
    let mut running = Vec::new();
    for (number, thread) in threads.iter_mut().enumerate() {
        let seat = Seat {
            number,
            origin,
            processor: thread.processor,
            board: board.clone(),
            messages: messages.clone(),
        };
        let started = seat.start(families, spec.clone(), open.clone(), output.clone());
        running.push(started.map_err(|error| {
            board.stop_all();
            RunError::Engine(format!("thread {} could not be started: {error}", number + 1))
        })?);
    }
    drop(messages);
    let together = Together {
        board: &board,
        output,
        stop,
        merge: SampleMerge::new(count),
        outcomes: (0..count).map(|_| None).collect(),
        heartbeats: vec![0; count],
    };
    let outcomes = together.wait(&received, &running);
    let mut merged = outcomes::merged(outcomes, board.failure().as_ref()).ok_or_else(|| {
        let failure = board.failure();
        failure
            .unwrap_or_else(|| RunError::Engine("no thread of the run has come to an end".into()))
    })?;
    merged.threads = threads;
    Ok(merged)
}

/// What each thread carries, and where.
fn threads_of(spec: &RunSpec, count: usize) -> Vec<ThreadOutcome> {
    let shards = spec.threads_of_instances();
    let processors = match spec.pin {
        Some(true) => allowed_processors(),
        _ => Vec::new(),
    };
    let carried = |thread: usize| {
        let named = shards.iter().zip(&spec.instances);
        let own = named.filter(move |(shard, _)| **shard == thread);
        own.map(|(_, instance)| instance.name.clone()).collect()
    };
    let thread = |number: usize| ThreadOutcome {
        thread: number as u32 + 1,
        instances: carried(number),
        processor: (!processors.is_empty()).then(|| processors[number % processors.len()] as u32),
    };
    (0..count).map(thread).collect()
}

/// What a thread is told when it starts.
struct Seat {
    number: usize,
    origin: Instant,
    processor: Option<u32>,
    board: Arc<Board>,
    messages: Sender<Message>,
}

impl Seat {
    #[expect(
        clippy::disallowed_methods,
        reason = "each thread has an executor of its own; nothing runs beside it that a simulated \
         run would have to know"
    )]
    fn start(
        self,
        families: fn() -> Families,
        spec: RunSpec,
        open: impl OpenStorage,
        output: Output,
    ) -> std::io::Result<JoinHandle<()>> {
        let name = format!("plimsoll-{}", self.number + 1);
        let body = move || self.work(&families(), spec, open, output);
        std::thread::Builder::new().name(name).spawn(body)
    }

    fn work(self, families: &Families, spec: RunSpec, open: impl OpenStorage, output: Output) {
        let clock = Rc::new(Clock::real_since(self.origin));
        if let Some(processor) = self.processor
            && let Err(error) = pin_this_thread(processor as usize)
        {
            let text = format!("thread {} runs on any processor: {error}", self.number + 1);
            // A caller that no longer listens has its reasons; the outcome is still returned to it.
            drop(output.events.send(Event::now(&clock, Level::Warning, "not_pinned", None, text)));
        }
        let storage = match open(self.number, clock.clone()) {
            Ok(storage) => storage,
            Err(error) => {
                self.board.fail(&error);
                return;
            }
        };
        let signal = self.board.signal(self.number).clone();
        let places = spec.threads_of_instances();
        let count = spec.threads_count();
        let shard = Shard::one_of(&places, self.number, self.board, self.messages.clone(), count);
        let outcome =
            execute_shard(families.clone(), Rc::new(spec), clock, storage, (output, signal), shard);
        // The thread that waits for this one may have given up; nobody is left to hear.
        drop(self.messages.send(Message::Ended(self.number, Box::new(outcome))));
    }
}

/// The thread that puts the shards together.
struct Together<'a> {
    board: &'a Board,
    output: Output,
    stop: &'a StopSignal,
    merge: SampleMerge,
    outcomes: Vec<Option<RunOutcome>>,
    heartbeats: Vec<u64>,
}

impl Together<'_> {
    /// Waits for all shards; the outcome of each, as far as it came to one.
    fn wait(
        mut self,
        received: &Receiver<Message>,
        running: &[JoinHandle<()>],
    ) -> Vec<Option<RunOutcome>> {
        loop {
            // Asked before what they have said: the last words of a thread that has finished are
            // not overheard.
            let finished: Vec<bool> = running.iter().map(JoinHandle::is_finished).collect();
            match received.recv_timeout(LOOK_EVERY) {
                Ok(Message::Sample(part)) => self.merge.add(part),
                Ok(Message::Ended(shard, outcome)) => {
                    self.merge.end(shard);
                    self.outcomes[shard] = Some(*outcome);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.miss(&finished);
                    // One that was given up may leave its end of the channel open.
                    if finished.iter().all(|finished| *finished) {
                        break;
                    }
                }
                // Every shard has let go of its end.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            for rows in self.merge.take() {
                // A caller that no longer listens has its reasons; the outcome is still returned to
                // it.
                drop(self.output.samples.send(rows));
            }
            self.look(running);
        }
        self.miss(&vec![true; running.len()]);
        for rows in self.merge.take().into_iter().chain(self.merge.rest()) {
            drop(self.output.samples.send(rows));
        }
        self.outcomes
    }

    /// Ends the run when a thread has finished without an outcome, and expects no samples of it.
    fn miss(&mut self, finished: &[bool]) {
        for shard in (0..finished.len()).filter(|shard| finished[*shard]) {
            self.merge.end(shard);
            if self.outcomes[shard].is_none() && self.board.failure().is_none() {
                let text = format!("thread {} broke down; this is a fault of Plimsoll", shard + 1);
                self.board.fail(&RunError::Engine(text));
            }
        }
    }

    /// Passes a wish to stop on, and a heartbeat back when every shard goes on.
    fn look(&mut self, running: &[JoinHandle<()>]) {
        if self.stop.was_asked() {
            self.board.stop_all();
        }
        let mut all_go_on = true;
        for (shard, thread) in running.iter().enumerate() {
            if thread.is_finished() {
                continue;
            }
            all_go_on &= self.board.signal(shard).heartbeat_count() != self.heartbeats[shard];
        }
        if all_go_on {
            for (shard, seen) in self.heartbeats.iter_mut().enumerate() {
                *seen = self.board.signal(shard).heartbeat_count();
            }
            // The question is the heartbeat.
            self.stop.is_wanted();
        }
    }
}
