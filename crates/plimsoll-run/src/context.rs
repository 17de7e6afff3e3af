//! What every part of a run is handed: the files, the clock, where results and events go, and
//! whether to stop.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};

use plimsoll_io::{
    Clock, Disk, Files, Handle, NANOS_PER_MILLISECOND, Nanos, Network, RealDisk, RealNetwork,
    RealNetworkOptions, Recorded, StopSignal,
};
use plimsoll_measure::Row;

use crate::RunError;
use crate::events::{Event, Level};
use crate::nodes::Nodes;
use crate::recorder::Recorder;
use crate::shards::Shard;
use crate::stalls::StallLog;

/// How often a waiting phase looks whether it should stop.
const LOOK_EVERY_NS: Nanos = 50 * NANOS_PER_MILLISECOND;
/// How often a shard looks at first whether the others have come.
const MEET_EVERY_NS_MIN: Nanos = NANOS_PER_MILLISECOND / 10;

/// Where a run sends what it sees. Without a receiver the run goes on.
#[derive(Clone, Debug)]
pub struct Output {
    /// Rows of closed samples.
    pub samples: Sender<Vec<Row>>,
    /// What happened.
    pub events: Sender<Event>,
}

/// See the module text.
#[derive(Clone)]
pub struct RunContext {
    /// The disk under test, recorded.
    pub files: Files,
    /// The same disk, to ask what it did and what is in flight.
    pub disk: Rc<Recorded<Rc<dyn Disk>>>,
    /// Tasks, timers, time.
    pub handle: Handle,
    /// The way to servers.
    pub network: Rc<RunNetwork>,
    /// The nodes that instances live on, and what a modelled host charges for transactions.
    pub nodes: Rc<Nodes>,
    /// Where figures go.
    pub recorder: Rc<Recorder>,
    /// Where long transactions are kept.
    pub stalls: Rc<StallLog>,
    /// Where rows and events go.
    pub output: Output,
    /// Whether to stop.
    pub stop: StopSignal,
    /// The phase that is running.
    pub phase: Option<String>,
    /// Which part of the run this is.
    pub shard: Shard,
}

/// The network of a run, made when the first server is spoken to: most runs speak to none.
pub struct RunNetwork {
    ring: Option<Rc<RealDisk>>,
    open: RefCell<Option<Rc<dyn Network>>>,
}

impl RunNetwork {
    /// A network whose sockets the ring of the disk watches, where there is one; otherwise a thread
    /// does.
    pub fn new(ring: Option<Rc<RealDisk>>) -> RunNetwork {
        RunNetwork { ring, open: RefCell::new(None) }
    }

    /// The network.
    ///
    /// # Errors
    /// In virtual time, where no server lives, and where the system gives no thread.
    pub fn open(&self, handle: &Handle) -> Result<Rc<dyn Network>, RunError> {
        if let Some(open) = &*self.open.borrow() {
            return Ok(open.clone());
        }
        let made = RealNetwork::open(handle, self.ring.as_deref(), RealNetworkOptions::default());
        let made: Rc<dyn Network> =
            Rc::new(made.map_err(|error| RunError::Spec(error.to_string()))?);
        *self.open.borrow_mut() = Some(made.clone());
        Ok(made)
    }
}

impl RunContext {
    /// The clock.
    pub fn clock(&self) -> &Clock {
        self.handle.clock()
    }

    /// The same context inside a phase.
    pub fn in_phase(&self, name: &str) -> RunContext {
        RunContext { phase: Some(name.to_owned()), ..self.clone() }
    }

    /// The same context, whose events nobody hears.
    pub fn without_events(&self) -> RunContext {
        let output = Output { events: channel().0, ..self.output.clone() };
        RunContext { output, ..self.clone() }
    }

    /// Sends an event.
    pub fn report(&self, level: Level, kind: &'static str, text: String) {
        let event = Event::now(self.clock(), level, kind, self.phase.clone(), text);
        // A caller that no longer listens has its reasons; the outcome is still returned to it.
        drop(self.output.events.send(event));
    }

    /// Sends an event that all shards come to, once.
    pub fn report_once(&self, level: Level, kind: &'static str, text: String) {
        if self.shard.is_first() {
            self.report(level, kind, text);
        }
    }

    /// Lays down a value and waits until every shard has laid down its own: all of them, in the
    /// order of the shards. Every shard must come to the same meetings one after the other.
    ///
    /// # Errors
    /// [`RunError::Stopped`] when another shard has failed, or the run should stop.
    pub async fn gather<T: Clone + Send + Sync + 'static>(
        &self,
        own: T,
    ) -> Result<Vec<T>, RunError> {
        let Some(board) = self.shard.board() else {
            return Ok(vec![own]);
        };
        let round = board.arrive(self.shard.number(), own);
        let begun = self.handle.now();
        loop {
            if let Some(all) = board.laid_down(round) {
                return Ok(all);
            }
            self.check_stop()?;
            // Those who have waited long may wait a little longer.
            let waited_ns = self.handle.now() - begun;
            self.handle.sleep((waited_ns / 16).clamp(MEET_EVERY_NS_MIN, LOOK_EVERY_NS / 2)).await;
        }
    }

    /// The time now, the same for all shards.
    ///
    /// # Errors
    /// As [`RunContext::gather`].
    pub async fn now_together(&self) -> Result<Nanos, RunError> {
        let all = self.gather(self.handle.now()).await?;
        Ok(all.into_iter().max().unwrap_or_default())
    }

    /// Fails when the run should stop.
    ///
    /// # Errors
    /// [`RunError::Stopped`].
    pub fn check_stop(&self) -> Result<(), RunError> {
        if self.stop.is_wanted() { Err(RunError::Stopped) } else { Ok(()) }
    }

    /// Sleeps until `deadline`, looking for a stop now and then.
    ///
    /// # Errors
    /// [`RunError::Stopped`].
    pub async fn sleep_until(&self, deadline: Nanos) -> Result<(), RunError> {
        loop {
            self.check_stop()?;
            let now = self.handle.now();
            if now >= deadline {
                return Ok(());
            }
            self.handle.sleep_until(deadline.min(now + LOOK_EVERY_NS)).await;
        }
    }
}
