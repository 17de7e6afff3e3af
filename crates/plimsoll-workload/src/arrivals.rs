//! Transactions that arrive by a schedule of their own, whatever becomes of the ones before: an open load.
//!
//! The schedule knows nothing of the storage. An arrival that cannot be served at once waits and its response time runs
//! from the time it was due, so a stall is felt by everybody who came during it. Times are kept with the fraction of a
//! nanosecond, so the rate is exact in the long run. Poisson arrivals are what many independent users make; regular ones
//! show a queue that is not the users' doing.

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};

use crate::choice::Choice;
use crate::{Habits, Population, Previous, Result, Step};

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
pub struct Arrivals {
    random: Random,
    gaps: Random,
    choice: Choice,
    spacing: Spacing,
    gap_ns_mean: f64,
    last_due_ns: f64,
}

impl Arrivals {
    /// A schedule that begins now at a rate above zero.
    pub fn new(random: &Random, habits: impl Into<Habits>, spacing: Spacing, per_s: f64, now: Nanos) -> Self {
        let mut arrivals = Self {
            random: random.child("operations"),
            gaps: random.child("gaps"),
            choice: Choice::new(habits.into()),
            spacing,
            gap_ns_mean: 0.0,
            last_due_ns: 0.0,
        };
        arrivals.set_rate(per_s, now);
        arrivals
    }

    /// Another rate from now on. Arrivals that were due and not yet handed out are forgotten: they belong to the old rate.
    pub fn set_rate(&mut self, per_s: f64, now: Nanos) {
        assert!(per_s > 0.0, "a load without arrivals is stopped, not slowed");
        self.gap_ns_mean = NANOS_PER_SECOND as f64 / per_s;
        self.last_due_ns = now as f64;
    }

    /// Arrivals per second.
    pub fn rate_per_s(&self) -> f64 {
        NANOS_PER_SECOND as f64 / self.gap_ns_mean
    }

    /// The next arrival, or, given an operation that came to nothing, the same kind again on another record, still counted
    /// from the time the arrival was due.
    pub fn next(&mut self, population: &mut Population, previous: Option<Previous>) -> Step {
        let repeated = previous.filter(|previous| previous.result != Result::Done);
        let intended = match repeated {
            Some(previous) => previous.intended,
            None => self.next_due(),
        };
        Step {
            intended,
            operation: self.choice.next(&mut self.random, population, repeated),
        }
    }

    fn next_due(&mut self) -> Nanos {
        let gap = match self.spacing {
            Spacing::Poisson => self.gaps.exponential(),
            Spacing::Regular => 1.0,
        };
        self.last_due_ns += gap * self.gap_ns_mean;
        self.last_due_ns as Nanos
    }
}
