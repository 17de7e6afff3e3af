//! What a simulated network is like, and what it does to segments between hosts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::{Latency, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Random};

/// What a simulated network is like.
#[derive(Clone, Debug, PartialEq)]
pub struct WireOptions {
    /// Time on the way, one direction.
    pub delay: Latency,
    /// Bandwidth of each direction of each connection; `None` is unlimited.
    pub bytes_per_second: Option<f64>,
    /// Probability that one try of one segment is lost.
    pub loss: f64,
    /// Probability that a segment breaks the connection for both ends.
    pub reset: f64,
    /// Time until the first repeated try; doubles with every further one.
    pub retry_ns: Nanos,
    /// Tries before an end gives up.
    pub tries_max: u32,
    /// The longest segment.
    pub segment_bytes: usize,
    /// A sender waits while this many bytes are handed over and not on the wire.
    pub send_buffer_bytes: usize,
    /// The wire waits while this many bytes have arrived and were not read.
    pub receive_buffer_bytes: usize,
}

impl Default for WireOptions {
    /// A quiet local network: 100 µs, nothing lost.
    fn default() -> Self {
        Self {
            delay: Latency::Constant(NANOS_PER_MILLISECOND / 10),
            bytes_per_second: None,
            loss: 0.0,
            reset: 0.0,
            retry_ns: 200 * NANOS_PER_MILLISECOND,
            tries_max: 8,
            segment_bytes: 64 << 10,
            send_buffer_bytes: 1 << 20,
            receive_buffer_bytes: 1 << 20,
        }
    }
}

impl WireOptions {
    pub(super) fn wire_ns(&self, bytes: usize) -> Nanos {
        let seconds = self.bytes_per_second.map_or(0.0, |rate| bytes as f64 / rate);
        (seconds * NANOS_PER_SECOND as f64) as Nanos
    }
}

/// What happens to segments between hosts.
pub(super) struct Weather {
    pub(super) options: WireOptions,
    random: RefCell<Random>,
    /// Pairs of hosts that cannot reach each other, each pair in alphabetical order.
    parted: RefCell<BTreeSet<(String, String)>>,
    lost: Cell<u64>,
}

impl Weather {
    pub(super) fn new(random: Random, options: WireOptions) -> Self {
        Self {
            options,
            random: RefCell::new(random),
            parted: RefCell::default(),
            lost: Cell::new(0),
        }
    }

    /// No segment passes between two hosts from now on, or all do again.
    pub(super) fn part(&self, left: &str, right: &str, are_parted: bool) {
        let mut parted = self.parted.borrow_mut();
        match are_parted {
            true => parted.insert(pair(left, right)),
            false => parted.remove(&pair(left, right)),
        };
    }

    /// Tries that were lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost.get()
    }

    pub(super) fn delay_ns(&self) -> Nanos {
        self.options.delay.sample(&mut self.random.borrow_mut())
    }

    pub(super) fn loses(&self) -> bool {
        let lost = self.random.borrow_mut().chance(self.options.loss);
        self.lost.set(self.lost.get() + u64::from(lost));
        lost
    }

    pub(super) fn breaks(&self) -> bool {
        self.random.borrow_mut().chance(self.options.reset)
    }

    pub(super) fn is_parted(&self, left: &str, right: &str) -> bool {
        self.parted.borrow().contains(&pair(left, right))
    }
}

fn pair(left: &str, right: &str) -> (String, String) {
    let (first, second) = if left <= right { (left, right) } else { (right, left) };
    (first.to_owned(), second.to_owned())
}
