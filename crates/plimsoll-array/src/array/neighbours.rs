//! Other hosts on the same array: streams of requests on volumes of their own, from the beginning
//! to the end.
//!
//! They share drives, cache and controllers with the host whose figures are wanted, and its links
//! where they are said to. Times between requests are exponential, whatever the array makes of
//! them; but a neighbour with all its requests on their way makes no more, as an application with
//! so many threads, and what it left out is counted. Nothing of a neighbour comes out as a
//! happening: whoever drives the array hears only of the host's requests.
//!
//! Limits: one rate, one size and one pattern each, from beginning to end; a neighbour spreads its
//! requests over all of its volume. A provider's cap and the host's own limits do not concern it.

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};

// Circle: methods of the array, in a file of their own.
use super::{Array, Completed, IoCounters, Request};
use crate::agenda::Event;
use crate::spec::{ArraySpec, NeighbourPattern, NeighbourSpec, Tenant};

/// A neighbour at work.
pub(super) struct Neighbour {
    pub(super) spec: NeighbourSpec,
    random: Random,
    /// Where a sequential one goes on.
    cursor: u64,
    on_way_count: u32,
    pub(super) left_out_count: u64,
    pub(super) counters: IoCounters,
}

impl Neighbour {
    /// All neighbours of an array.
    pub(super) fn all(spec: &ArraySpec, random: &Random) -> Vec<Self> {
        let numbered = spec.neighbours.iter().enumerate();
        numbered
            .map(|(number, spec)| Self {
                spec: spec.clone(),
                random: random.child(&format!("neighbour {number}")),
                cursor: 0,
                on_way_count: 0,
                left_out_count: 0,
                counters: IoCounters::default(),
            })
            .collect()
    }

    /// Forgets what was counted.
    pub(super) fn reset_counters(&mut self) {
        (self.counters, self.left_out_count) = (IoCounters::default(), 0);
    }

    fn pause_ns(&mut self) -> Nanos {
        let pause_s = self.random.exponential() / self.spec.per_second;
        (pause_s * NANOS_PER_SECOND as f64) as Nanos
    }

    fn next_request(&mut self, number: u32, capacity_bytes: u64) -> Request {
        let bytes = self.spec.request_bytes;
        let block_count = capacity_bytes / bytes;
        let block = match self.spec.pattern {
            NeighbourPattern::Random => self.random.below(block_count),
            NeighbourPattern::Sequential => {
                let block = self.cursor % block_count;
                self.cursor = block + 1;
                block
            }
        };
        Request {
            volume: self.spec.volume,
            offset: block * bytes,
            bytes: bytes as u32,
            is_write: !self.random.chance(self.spec.read_share),
            is_durable: false,
            token: u64::from(number),
        }
    }
}

impl Array {
    /// Lets every neighbour begin.
    pub(super) fn start_neighbours(&mut self) {
        for (number, neighbour) in self.neighbours.iter_mut().enumerate() {
            self.agenda.at(neighbour.pause_ns(), Event::Neighbour(number as u32));
        }
    }

    /// A neighbour's next request is due.
    pub(super) fn neighbour_due(&mut self, number: u32) {
        let neighbour = &mut self.neighbours[number as usize];
        let pause_ns = neighbour.pause_ns();
        self.agenda.at(self.now + pause_ns, Event::Neighbour(number));
        if neighbour.on_way_count == neighbour.spec.outstanding_max {
            neighbour.left_out_count += 1;
            return;
        }
        neighbour.on_way_count += 1;
        let capacity_bytes = self.volumes[neighbour.spec.volume as usize].capacity_bytes;
        let request = neighbour.next_request(number, capacity_bytes);
        self.submit(self.now, request);
    }

    /// A neighbour has its answer.
    pub(super) fn neighbour_answered(&mut self, completed: &Completed) {
        let neighbour = &mut self.neighbours[completed.request.token as usize];
        neighbour.on_way_count -= 1;
        neighbour.counters.count(completed);
    }

    /// Whether a volume is another host's.
    pub(super) fn is_neighbours(&self, volume: u32) -> bool {
        self.volumes[volume as usize].tenant != Tenant::Host
    }

    /// Whether a request comes over links of its own, which never limit.
    pub(super) fn has_own_links(&self, request: &Request) -> bool {
        self.is_neighbours(request.volume)
            && !self.neighbours[request.token as usize].spec.shares_links
    }
}
