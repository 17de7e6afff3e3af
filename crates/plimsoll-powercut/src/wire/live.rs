//! Both sides on the network of this machine, each on a thread of its own, for a caller that is no
//! task.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use plimsoll_io::{
    Clock, Executor, Handle, Inbox, Listener, NANOS_PER_SECOND, Nanos, Network, RealDisk,
    RealDiskOptions, RealNetwork, RealNetworkOptions, StreamError, either, within,
};

use super::hearing::{LogFuture, WitnessLog, hear, host_of};
use super::telling::{Refused, Teller};

/// After the farewell the witness has so long to write the rest down.
const FAREWELL_NS: Nanos = 2 * NANOS_PER_SECOND;

/// An executor of this thread and the network its tasks use. No file is opened: the disk is what it
/// sleeps in.
fn machine(connect_timeout_ns: Nanos) -> Result<(Executor, RealNetwork), StreamError> {
    let clock = Rc::new(Clock::real());
    let disk = RealDisk::open(RealDiskOptions::default(), clock.clone()).map_err(|error| {
        StreamError::Other {
            doing: "setting up",
            address: "the network".to_owned(),
            reason: error.to_string(),
        }
    })?;
    let executor = Executor::new(clock, disk.clone());
    let options = RealNetworkOptions { connect_timeout_ns, ..RealNetworkOptions::default() };
    let network = RealNetwork::open(&executor.handle(), Some(&disk), options)?;
    Ok((executor, network))
}

/// How a witness listens.
#[derive(Clone, Debug)]
pub struct HearingSetup {
    /// Where, `host:port`.
    pub address: String,
    /// A connection that says nothing for so long is ended.
    pub silence_ns: Nanos,
}

/// What a witness is told by its caller.
#[derive(Debug)]
pub enum Hearing {
    /// Wait for one connection and hear it to its end.
    One,
    /// What became of the step of the log that was asked for; for a beginning also whether it was
    /// one.
    Logged(Result<bool, String>),
}

/// What a witness tells its caller.
#[derive(Debug)]
pub enum HearingEvent {
    /// It listens there, or why it cannot.
    Listening(Result<String, StreamError>),
    /// A run says that it begins: to be noted, and answered.
    Begin {
        /// The host it comes from.
        peer: String,
        /// Its first line.
        greeting: Vec<u8>,
    },
    /// Lines to be appended, and answered.
    Append(Vec<u8>),
    /// A connection has ended.
    Ended {
        /// The host it came from.
        peer: String,
        /// Acknowledgements that lie on the disk.
        lines: u64,
        /// Why it ended.
        why: String,
    },
}

/// Listens until `ending` has no sender any more; blocks the calling thread.
pub fn hear_live(
    setup: HearingSetup,
    told: Inbox<Hearing>,
    ending: Inbox<()>,
    events: Sender<HearingEvent>,
) {
    let (executor, network) = match machine(NANOS_PER_SECOND) {
        Ok(machine) => machine,
        Err(error) => return drop(events.send(HearingEvent::Listening(Err(error)))),
    };
    let handle = executor.handle();
    let story = async move {
        let log = LogElsewhere { told, events, handle: handle.clone() };
        let until = async {
            ending.receive(&handle).await;
        };
        either(listen(&network, &handle, &setup, &log), until).await;
    };
    executor.run(story).expect("the ending is always awaited");
}

async fn listen(network: &RealNetwork, handle: &Handle, setup: &HearingSetup, log: &LogElsewhere) {
    let listener = match network.listen(&setup.address).await {
        Ok(listener) => listener,
        Err(error) => return log.say(HearingEvent::Listening(Err(error))),
    };
    log.say(HearingEvent::Listening(Ok(listener.address().to_owned())));
    while let Some(Hearing::One) = log.told.receive(handle).await {
        let ended = hear_one(&*listener, handle, setup, log).await;
        log.say(ended);
    }
}

async fn hear_one(
    listener: &dyn Listener,
    handle: &Handle,
    setup: &HearingSetup,
    log: &LogElsewhere,
) -> HearingEvent {
    match listener.accept().await {
        Err(error) => HearingEvent::Ended {
            peer: listener.address().to_owned(),
            lines: 0,
            why: error.to_string(),
        },
        Ok(stream) => {
            let peer = host_of(stream.peer()).to_owned();
            let heard = hear(stream, handle, log, setup.silence_ns).await;
            HearingEvent::Ended { peer, lines: heard.lines, why: heard.why }
        }
    }
}

/// A log that the caller keeps: each step is told, and its answer awaited.
struct LogElsewhere {
    told: Inbox<Hearing>,
    events: Sender<HearingEvent>,
    handle: Handle,
}

impl LogElsewhere {
    /// A caller that is gone hears nothing more; the ending comes at once.
    fn say(&self, event: HearingEvent) {
        let _ = self.events.send(event);
    }

    async fn logged(&self) -> Result<bool, String> {
        match self.told.receive(&self.handle).await {
            Some(Hearing::Logged(result)) => result,
            Some(Hearing::One) | None => Err("the witness was stopped".to_owned()),
        }
    }
}

impl WitnessLog for LogElsewhere {
    fn begin(&self, peer: &str, greeting: Vec<u8>) -> LogFuture<'_, bool> {
        self.say(HearingEvent::Begin { peer: peer.to_owned(), greeting });
        Box::pin(self.logged())
    }

    fn append(&self, lines: Vec<u8>) -> LogFuture<'_, ()> {
        self.say(HearingEvent::Append(lines));
        Box::pin(async { self.logged().await.map(drop) })
    }
}

/// Whom the machine under test tells, and how it introduces itself.
#[derive(Clone, Debug)]
pub struct TellingSetup {
    /// Where the witness listens, `host:port`.
    pub address: String,
    /// The first line, with its end.
    pub greeting: String,
    /// A witness that says nothing for so long is gone.
    pub patience_ns: Nanos,
}

/// What the machine under test tells its witness.
#[derive(Debug)]
pub enum Telling {
    /// Whole lines.
    Lines(Vec<u8>),
    /// Farewell; nothing comes after it.
    End,
}

/// How far the witness is.
#[derive(Debug, Default)]
pub struct TellingState {
    confirmed: AtomicU64,
    lost: Mutex<Option<String>>,
}

impl TellingState {
    /// How many acknowledgements lie on the witness's disk.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }

    /// Why the witness is gone, if it is.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().expect("no panic happens under this lock").clone()
    }

    /// The first reason is kept: the others follow from it.
    fn lose(&self, why: String) {
        let mut lost = self.lost.lock().expect("no panic happens under this lock");
        lost.get_or_insert(why);
    }
}

/// Tells a witness what comes until the farewell or until nobody can tell any more; blocks the
/// calling thread. `started` hears whether the witness is there, and on this very machine.
pub fn tell_live(
    setup: TellingSetup,
    letters: Inbox<Telling>,
    state: Arc<TellingState>,
    started: Sender<Result<bool, Refused>>,
) {
    let (executor, network) = match machine(setup.patience_ns) {
        Ok(machine) => machine,
        Err(error) => return drop(started.send(Err(Refused::Unreachable(error)))),
    };
    let handle = executor.handle();
    let story = async move {
        let TellingSetup { address, greeting, patience_ns } = &setup;
        let introduced =
            Teller::introduce(&network, &handle, address, greeting, *patience_ns).await;
        let (mut teller, mut answers) = match introduced {
            Ok(introduced) => introduced,
            Err(refused) => return drop(started.send(Err(refused))),
        };
        let _ = started.send(Ok(teller.is_local()));
        let heard = state.clone();
        let listening = handle.spawn(async move {
            loop {
                match answers.next().await {
                    Ok(count) => heard.confirmed.fetch_max(count, Ordering::AcqRel),
                    Err(why) => return heard.lose(why),
                };
            }
        });
        while let Some(letter) = letters.receive(&handle).await {
            match letter {
                Telling::Lines(lines) => {
                    if let Err(error) = teller.tell(&lines).await {
                        return state.lose(error.to_string());
                    }
                }
                Telling::End => {
                    teller.end().await;
                    within(&handle, FAREWELL_NS, listening).await;
                    return;
                }
            }
        }
    };
    executor.run(story).expect("witness or caller are always awaited");
}
