//! When the arrivals of an open load are due, whatever becomes of the ones before.
//!
//! The schedule knows nothing of the storage. An arrival that cannot be served at once waits and
//! its response time runs from the time it was due, so a stall is felt by all that came during it.
//! Times are kept with the fraction of a nanosecond, so the rate is exact in the long run. Poisson
//! arrivals are what many independent users make; regular ones show a queue that does not come from
//! the users.

use std::collections::VecDeque;

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Independent of each other: exponential gaps.
    Poisson,
    /// All gaps alike.
    Regular,
}

/// See the module text.
#[derive(Debug)]
pub struct Schedule {
    gaps: Random,
    spacing: Spacing,
    gap_ns_mean: f64,
    last_due_ns: f64,
    /// Rates to come: from when, and the mean gap.
    changes: VecDeque<(f64, f64)>,
}

impl Schedule {
    /// A schedule that begins now at a rate above zero.
    pub fn new(gaps: Random, spacing: Spacing, per_s: f64, now: Nanos) -> Self {
        let mut schedule =
            Self { gaps, spacing, gap_ns_mean: 0.0, last_due_ns: 0.0, changes: VecDeque::new() };
        schedule.set_rate(per_s, now);
        schedule
    }

    /// Another rate from now on. Arrivals that were due and not yet handed out are forgotten, and
    /// rates to come as well: they belong to the old rate.
    pub fn set_rate(&mut self, per_s: f64, now: Nanos) {
        self.gap_ns_mean = gap_ns_mean(per_s);
        self.last_due_ns = now as f64;
        self.changes.clear();
    }

    /// Another rate from a moment on, at which no other is to begin later. What is due before it
    /// stays due, handed out or not.
    pub fn set_rate_at(&mut self, per_s: f64, at: Nanos) {
        self.changes.push_back((at as f64, gap_ns_mean(per_s)));
    }

    /// Arrivals per second.
    pub fn rate_per_s(&self) -> f64 {
        NANOS_PER_SECOND as f64 / self.gap_ns_mean
    }

    /// When the next arrival is due.
    pub fn next_due(&mut self) -> Nanos {
        let mut gap = match self.spacing {
            Spacing::Poisson => self.gaps.exponential(),
            Spacing::Regular => 1.0,
        };
        // What is left of a gap when the rate changes passes at the new rate.
        while let Some(&(at, gap_ns_mean)) = self.changes.front()
            && at < self.last_due_ns + gap * self.gap_ns_mean
        {
            if at > self.last_due_ns {
                gap -= (at - self.last_due_ns) / self.gap_ns_mean;
                self.last_due_ns = at;
            }
            self.gap_ns_mean = gap_ns_mean;
            self.changes.pop_front();
        }
        self.last_due_ns += gap * self.gap_ns_mean;
        self.last_due_ns as Nanos
    }
}

fn gap_ns_mean(per_s: f64) -> f64 {
    assert!(per_s > 0.0, "a load without arrivals is stopped, not slowed");
    NANOS_PER_SECOND as f64 / per_s
}
