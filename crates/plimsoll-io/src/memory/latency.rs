//! How long a memory disk takes: distributions per kind and purpose, and how many operations it
//! serves at once.
//!
//! A distribution gives service times. With a limited number of servers an operation first waits
//! for a free one, first come, first served, so queueing adds to latency as on a drive. Sampling
//! uses only arithmetic that IEEE 754 fixes to the last bit (no library logarithm), so a seed gives
//! the same times on every machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Context, Nanos, OperationKind, Purpose, Random};

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always the same; zero means "at the next reap".
    Constant(Nanos),
    /// Uniform from the first to the second, both included.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean, on top of a fixed part.
    Exponential { fixed_ns: Nanos, mean_ns: Nanos },
    /// Mostly `usual_ns`, but `rare_ns` once in `one_in` operations: a drive that sometimes
    /// retries.
    Spiky { usual_ns: Nanos, rare_ns: Nanos, one_in: u64 },
}

impl Latency {
    /// One service time.
    pub fn sample(self, random: &mut Random) -> Nanos {
        match self {
            Latency::Constant(latency_ns) => latency_ns,
            Latency::Uniform(least, most) => least + random.below(most.saturating_sub(least) + 1),
            Latency::Exponential { fixed_ns, mean_ns } => {
                fixed_ns + (mean_ns as f64 * random.exponential()) as Nanos
            }
            Latency::Spiky { usual_ns, rare_ns, one_in } => {
                if random.below(one_in.max(1)) == 0 {
                    rare_ns
                } else {
                    usual_ns
                }
            }
        }
    }
}

/// Which latency applies to which operations.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyPlan {
    /// Where no rule matches.
    pub otherwise: Latency,
    /// Tried in order; `None` matches everything.
    pub rules: Vec<LatencyRule>,
    /// How many operations are served at once; `None` means all of them.
    pub servers: Option<usize>,
}

/// One exception in a [`LatencyPlan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyRule {
    /// Only operations of this kind.
    pub kind: Option<OperationKind>,
    /// Only operations with this purpose.
    pub purpose: Option<Purpose>,
    /// Their latency.
    pub latency: Latency,
}

impl LatencyPlan {
    /// Everything takes the same distribution, all at once.
    pub fn of(otherwise: Latency) -> Self {
        Self { otherwise, rules: Vec::new(), servers: None }
    }

    /// Adds an exception for a kind of operation.
    pub fn with_kind(mut self, kind: OperationKind, latency: Latency) -> Self {
        self.rules.push(LatencyRule { kind: Some(kind), purpose: None, latency });
        self
    }

    /// Adds an exception for a purpose.
    pub fn with_purpose(mut self, purpose: Purpose, latency: Latency) -> Self {
        self.rules.push(LatencyRule { kind: None, purpose: Some(purpose), latency });
        self
    }

    /// Limits how many operations are served at once.
    pub fn with_servers(mut self, servers: usize) -> Self {
        self.servers = Some(servers.max(1));
        self
    }

    fn of_operation(&self, kind: OperationKind, context: &Context) -> Latency {
        let matches = |rule: &&LatencyRule| {
            rule.kind.is_none_or(|wanted| wanted == kind)
                && rule.purpose.is_none_or(|wanted| wanted == context.purpose)
        };
        self.rules.iter().find(matches).map_or(self.otherwise, |rule| rule.latency)
    }
}

/// How one operation's service compares with the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Usual,
    Times(u64),
    Plus(Nanos),
    Never,
}

/// The servers of a disk at work.
pub(crate) struct Service {
    plan: LatencyPlan,
    busy_until: BinaryHeap<Reverse<Nanos>>,
}

impl Service {
    pub(crate) fn new(plan: LatencyPlan) -> Self {
        Self { plan, busy_until: BinaryHeap::new() }
    }

    /// When an operation submitted now will be done. One that never is keeps its server for ever.
    pub(crate) fn due(
        &mut self,
        now: Nanos,
        kind: OperationKind,
        context: &Context,
        pace: Pace,
        random: &mut Random,
    ) -> Nanos {
        let usual_ns = self.plan.of_operation(kind, context).sample(random);
        let service_ns = match pace {
            Pace::Usual => usual_ns,
            Pace::Times(factor) => usual_ns.saturating_mul(factor),
            Pace::Plus(delay_ns) => usual_ns.saturating_add(delay_ns),
            Pace::Never => Nanos::MAX,
        };
        let Some(servers) = self.plan.servers else {
            return now.saturating_add(service_ns);
        };
        let start = if self.busy_until.len() < servers {
            now
        } else {
            let Reverse(free) = self.busy_until.pop().expect("at least one server is busy");
            free.max(now)
        };
        let due = start.saturating_add(service_ns);
        self.busy_until.push(Reverse(due));
        due
    }
}
