//! Streams on an array: warm up, measure, report.

use plimsoll_io::{Nanos, Random};
use serde::{Deserialize, Serialize};

use super::flow::{Closed, ClosedSpec, Open, OpenSpec, Walk, draw_bytes, exponential_ns};
use super::sessions::{FlushSpec, Kind, Sessions, SessionsSpec, Work};
use super::tally::{ClassReport, Tally};
use crate::array::{Array, ArrayReport, Completed, Happening, Request};
use crate::check::SpecErrors;
use crate::spec::ArraySpec;

/// One stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamSpec {
    /// Sessions of a database.
    Sessions(SessionsSpec),
    /// So many requests at once.
    Closed(ClosedSpec),
    /// So many requests per second.
    Open(OpenSpec),
}

/// A whole simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationSpec {
    /// The array.
    pub array: ArraySpec,
    /// What runs on it.
    pub streams: Vec<StreamSpec>,
    /// Decides everything left to chance.
    pub seed: u64,
    /// How long it runs before anything is counted.
    pub warm_up_ns: Nanos,
    /// How long it is counted.
    pub measure_ns: Nanos,
}

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What the host saw, by class.
    pub classes: Vec<ClassReport>,
    /// What the array counted.
    pub array: ArrayReport,
    /// How often sessions waited for their writer.
    pub park_count: u64,
    /// Events and host requests simulated, warm-up included.
    pub event_count: u64,
    /// Host requests simulated, warm-up included.
    pub request_count: u64,
}

enum Stream {
    Sessions(Box<Sessions>),
    Closed(Closed),
    Open(Open),
}

/// A class, with the stream and the kind of request that fall into it.
struct Class {
    name: String,
    tally: Tally,
}

/// Timers: the stream in the upper bits, the actor in the lower ones; this actor is the lazy
/// writer.
const WRITER: u32 = (1 << 20) - 1;

struct Simulation {
    array: Array,
    streams: Vec<Stream>,
    randoms: Vec<Random>,
    classes: Vec<Class>,
    /// Class of each stream and kind.
    class_of: Vec<[usize; 3]>,
    work: Vec<Work>,
    request_count: u64,
}

/// Runs a simulation.
///
/// # Errors
/// When the array cannot be built.
pub fn simulate(spec: &SimulationSpec) -> Result<Outcome, SpecErrors> {
    let random = Random::from_seed(spec.seed);
    let array = Array::new(&spec.array, &random.child("array"))?;
    let mut simulation = Simulation {
        array,
        streams: Vec::new(),
        randoms: Vec::new(),
        classes: Vec::new(),
        class_of: Vec::new(),
        work: Vec::new(),
        request_count: 0,
    };
    for (index, stream) in spec.streams.iter().enumerate() {
        simulation.add(stream, random.child(&format!("stream {index}")));
    }
    simulation.run(spec.warm_up_ns);
    simulation.array.reset_counters();
    simulation.classes.iter_mut().for_each(|class| class.tally.clear());
    simulation.run(spec.warm_up_ns + spec.measure_ns);
    Ok(simulation.outcome(spec.measure_ns))
}

impl Simulation {
    fn add(&mut self, spec: &StreamSpec, mut random: Random) {
        let index = self.streams.len() as u32;
        let (stream, names, actor_count) = match spec {
            StreamSpec::Sessions(spec) => {
                let sessions = Sessions::new(spec.clone(), &mut random);
                if let FlushSpec::EveryNs(period) = spec.flush {
                    self.array.set_timer(random.below(period.max(1)), timer(index, WRITER));
                }
                let names = ["database_read", "database_write", "log_write"];
                (Stream::Sessions(Box::new(sessions)), names, spec.session_count)
            }
            StreamSpec::Closed(spec) => {
                let (start, span) = (spec.start_bytes, spec.span_bytes);
                let walk =
                    Walk::new(spec.volume, start, span, spec.page_bytes, spec.pattern, &mut random);
                let spec = spec.clone();
                let (class, depth) = (spec.class.clone(), spec.depth);
                let stream = Closed { spec, walk, busy_until: 0, batch_done: 0 };
                self.classify([class.as_str(); 3]);
                self.start(index, Stream::Closed(stream), depth, random);
                return;
            }
            StreamSpec::Open(spec) => {
                let (start, span) = (spec.start_bytes, spec.span_bytes);
                let walk =
                    Walk::new(spec.volume, start, span, spec.page_bytes, spec.pattern, &mut random);
                let stream = Open { spec: spec.clone(), walk };
                self.classify([spec.class.as_str(); 3]);
                self.start(index, Stream::Open(stream), 1, random);
                return;
            }
        };
        self.classify(names);
        self.start(index, stream, actor_count, random);
    }

    fn classify(&mut self, names: [&str; 3]) {
        let indices = names.map(|name| {
            self.classes.iter().position(|class| class.name == name).unwrap_or_else(|| {
                self.classes.push(Class { name: name.to_owned(), tally: Tally::default() });
                self.classes.len() - 1
            })
        });
        self.class_of.push(indices);
    }

    /// Actors begin at different moments of the first hundredth of a second.
    fn start(&mut self, index: u32, stream: Stream, actor_count: u32, mut random: Random) {
        for actor in 0..actor_count {
            self.array.set_timer(random.below(10_000_000), timer(index, actor));
        }
        self.streams.push(stream);
        self.randoms.push(random);
    }

    fn run(&mut self, until: Nanos) {
        while let Some(happening) = self.array.next(until) {
            match happening {
                Happening::Completed(completed) => self.completed(&completed),
                Happening::Timer(token) => self.due(token >> 20, token & WRITER),
            }
        }
    }

    fn submit(&mut self, stream: u32, kind: Kind, actor: u32, request: Request) {
        let token = u64::from(stream) << 32 | (kind as u64) << 24 | u64::from(actor);
        let request = Request { token, ..request };
        self.request_count += 1;
        self.array.submit(self.array.now(), request);
    }

    fn submit_work(&mut self, stream: u32) {
        let mut work = std::mem::take(&mut self.work);
        for Work { kind, actor, request } in work.drain(..) {
            self.submit(stream, kind, actor, request);
        }
        self.work = work;
    }

    /// An actor's time has come.
    fn due(&mut self, index: u32, actor: u32) {
        let written = self.log_written(index);
        let random = &mut self.randoms[index as usize];
        match &mut self.streams[index as usize] {
            Stream::Sessions(sessions) if sessions.is_stopped => {}
            Stream::Sessions(sessions) => {
                if actor == WRITER {
                    sessions.burst(&mut self.work, random);
                    if let FlushSpec::EveryNs(period) = sessions.spec.flush {
                        self.array.set_timer(self.array.now() + period, timer(index, WRITER));
                    }
                } else if let Some(work) = sessions.read(actor, random) {
                    self.work.push(work);
                }
                self.submit_work(index);
            }
            Stream::Closed(closed) => {
                let bytes =
                    draw_bytes(closed.spec.request_bytes_mean, closed.spec.page_bytes, random);
                let is_write = random.chance(closed.spec.write_share);
                let request = Request {
                    is_durable: is_write && closed.spec.is_durable,
                    ..closed.walk.request(bytes, is_write, written, random)
                };
                self.submit(index, Kind::Read, actor, request);
            }
            Stream::Open(open) => {
                let is_write = random.chance(open.spec.write_share);
                let request = open.walk.request(open.spec.request_bytes, is_write, written, random);
                let wait_ns = exponential_ns(open.spec.per_second, random);
                self.array.set_timer(self.array.now() + wait_ns, timer(index, actor));
                if open.spec.pattern != super::Pattern::Behind || written >= open.spec.request_bytes
                {
                    self.submit(index, Kind::Read, actor, request);
                }
            }
        }
    }

    /// How far the log has come that a stream reads behind: that of the sessions on the same
    /// volume.
    fn log_written(&self, index: u32) -> u64 {
        let volume = match &self.streams[index as usize] {
            Stream::Open(open) if open.spec.pattern == super::Pattern::Behind => open.spec.volume,
            _ => return 0,
        };
        let logs = self.streams.iter().filter_map(|stream| match stream {
            Stream::Sessions(sessions) if sessions.spec.log_volume == volume => {
                Some(sessions.log_written)
            }
            _ => None,
        });
        logs.max().unwrap_or(0)
    }

    fn completed(&mut self, completed: &Completed) {
        let token = completed.request.token;
        let (index, actor) = ((token >> 32) as u32, token as u32 & WRITER);
        let kind = [Kind::Read, Kind::Write, Kind::Log][(token >> 24) as usize & 3];
        let class = self.class_of[index as usize][kind as usize];
        self.classes[class].tally.count(completed);
        let now = completed.completed;
        let random = &mut self.randoms[index as usize];
        match &mut self.streams[index as usize] {
            // A database that meets an error is stopped, and whoever waits for an answer that is
            // none goes no further.
            Stream::Sessions(sessions) if completed.is_lost => sessions.stop(),
            Stream::Closed(_) if completed.is_lost => {}
            Stream::Sessions(sessions) if sessions.is_stopped => {}
            Stream::Sessions(sessions) => {
                match kind {
                    Kind::Read => {
                        let away_ns = sessions.away_ns(now - completed.submitted);
                        self.array.set_timer(now + away_ns, timer(index, actor));
                        sessions.dirty(&mut self.work, random);
                    }
                    Kind::Write => {
                        for session in sessions.wrote(&mut self.work, random) {
                            self.array.set_timer(now, timer(index, session));
                        }
                    }
                    Kind::Log => sessions.logged(now - completed.submitted, &mut self.work, random),
                }
                self.submit_work(index);
            }
            Stream::Closed(closed) => {
                let (at, count) = closed.next_at(now);
                for _ in 0..count {
                    self.array.set_timer(at, timer(index, actor));
                }
            }
            Stream::Open(_) => {}
        }
    }

    fn outcome(&self, interval_ns: Nanos) -> Outcome {
        let parks = self.streams.iter().map(|stream| match stream {
            Stream::Sessions(sessions) => sessions.park_count,
            _ => 0,
        });
        let classes = self.classes.iter();
        Outcome {
            classes: classes.map(|class| class.tally.report(&class.name, interval_ns)).collect(),
            array: self.array.report(),
            park_count: parks.sum(),
            event_count: self.array.event_count(),
            request_count: self.request_count,
        }
    }
}

fn timer(stream: u32, actor: u32) -> u32 {
    (stream << 20) | actor
}
