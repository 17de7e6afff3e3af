//! What happened between two marks of the recorder, as those need it who set a rate: how many
//! transactions were done, how much database I/O they made, and how long it took.

use plimsoll_measure::{Histogram, metric_code};

use crate::recorder::{Key, StepFigures};

/// What tells the figures of one workload from those of others.
#[derive(Clone, Debug)]
pub struct StepWorkload {
    /// Position in the plan.
    pub number: usize,
    /// The positions of the instances it works on.
    pub instances: Vec<u32>,
    /// The metrics that count its operations.
    pub operations: Vec<u32>,
}

impl StepWorkload {
    /// Whether a figure is of operations that it has done.
    pub fn is_done(&self, key: &Key) -> bool {
        key.workload as usize == self.number + 1 && self.operations.contains(&key.metric)
    }
}

/// Counts of one workload between two marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Transactions that were completed.
    pub transactions: u64,
    /// Database pages read for transactions.
    pub reads: u64,
    /// Database pages written.
    pub writes: u64,
}

impl StepCounts {
    /// Counts what a workload did on its instances.
    pub fn of(figures: &StepFigures, workload: &StepWorkload) -> StepCounts {
        let transfers = |metric: &str| -> u64 {
            places_of(figures, metric_code(metric), &workload.instances)
                .map(|(_, latencies)| latencies.count())
                .sum()
        };
        StepCounts {
            transactions: figures
                .iter()
                .filter(|(key, _)| workload.is_done(key))
                .map(|(_, latencies)| latencies.count())
                .sum(),
            reads: transfers("database_read"),
            writes: transfers("database_write"),
        }
    }

    /// Database I/O of a transaction; `None` before there was one of each.
    pub fn io_per_transaction(&self) -> Option<f64> {
        let io = self.reads + self.writes;
        (io > 0 && self.transactions > 0).then(|| io as f64 / self.transactions as f64)
    }

    /// Both together.
    pub fn and(self, other: StepCounts) -> StepCounts {
        StepCounts {
            transactions: self.transactions + other.transactions,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
        }
    }
}

/// The distributions of the metric with a code, one for each of its places on these instances.
pub fn places_of<'a>(
    figures: &'a StepFigures,
    code: Option<u32>,
    instances: &'a [u32],
) -> impl Iterator<Item = (&'a Key, &'a Histogram)> {
    figures
        .iter()
        .filter(move |(key, _)| Some(key.metric) == code && instances.contains(&key.instance))
}
