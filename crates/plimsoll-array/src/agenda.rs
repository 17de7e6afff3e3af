//! What happens when: the one queue of events of a modelled array.
//!
//! Events of one moment come out in the order they were put in, so a run is a pure function of what
//! was submitted. An event is packed into eight bytes beside its time, because moving entries
//! through the heap is the dearest part of a simulation step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_io::Nanos;

/// What can happen inside an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request reaches its controller.
    Arrived(u32),
    /// The controller has looked at a request and knows what to do.
    Accepted(u32),
    /// The last byte of a request's answer is at the host.
    Answered(u32),
    /// The host is told that a request which went through its queue is done.
    Told(u32),
    /// Somebody is to look whether the host's queue is worked off.
    Queue,
    /// A drive asked to be woken, with a word to itself.
    Drive(u32, u32),
    /// The next piece of a rebuild may start on a set: the set, and which of its rebuilds.
    Rebuild(u32, u32),
    /// Something breaks or is mended: an index into the list of faults.
    Fault(u32),
    /// Whoever drives the array asked to be told.
    Timer(u32),
    /// A neighbour's next request is due: an index into the list of neighbours.
    Neighbour(u32),
}

const HIGH_BITS: u32 = 24;

impl Event {
    fn pack(self) -> u64 {
        let (kind, low, high) = match self {
            Event::Arrived(request) => (0, request, 0),
            Event::Accepted(request) => (1, request, 0),
            Event::Answered(request) => (2, request, 0),
            Event::Drive(drive, word) => (3, word, drive),
            Event::Rebuild(set, attempt) => (4, set, attempt),
            Event::Fault(fault) => (5, fault, 0),
            Event::Timer(token) => (6, token, 0),
            Event::Neighbour(neighbour) => (7, neighbour, 0),
            Event::Told(request) => (8, request, 0),
            Event::Queue => (9, 0, 0),
        };
        debug_assert!(
            high < 1 << HIGH_BITS,
            "no array has that many drives, no set that many rebuilds"
        );
        (kind << 56) | (u64::from(high) << 32) | u64::from(low)
    }

    fn unpack(packed: u64) -> Self {
        let low = packed as u32;
        let high = (packed >> 32) as u32 & ((1 << HIGH_BITS) - 1);
        match packed >> 56 {
            0 => Event::Arrived(low),
            1 => Event::Accepted(low),
            2 => Event::Answered(low),
            3 => Event::Drive(high, low),
            4 => Event::Rebuild(low, high),
            5 => Event::Fault(low),
            6 => Event::Timer(low),
            7 => Event::Neighbour(low),
            8 => Event::Told(low),
            _ => Event::Queue,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: u128,
    packed: u64,
}

impl Entry {
    fn time(self) -> Nanos {
        (self.key >> 64) as Nanos
    }
}

/// Events to come, earliest first.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Time and order of entry in one number, so that one comparison decides.
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

impl Agenda {
    /// Notes an event for a moment.
    pub(crate) fn at(&mut self, time: Nanos, event: Event) {
        self.sequence += 1;
        let key = (u128::from(time) << 64) | u128::from(self.sequence);
        let packed = event.pack();
        self.heap.push(Reverse(Entry { key, packed }));
    }

    /// When the next event is due.
    pub(crate) fn next_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(entry)| entry.time())
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(Nanos, Event)> {
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.time(), Event::unpack(entry.packed)))
    }
}
