//! What a search for the highest rate found: every rate tried, and where it ended.

use serde::Serialize;

use plimsoll_io::{NANOS_PER_MILLISECOND, Nanos};
use plimsoll_measure::Histogram;

use crate::spec::SearchGoal;

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The bracket is as narrow as was wanted.
    Narrow,
    /// Its time was over.
    TimeOver,
    /// No rate passed.
    NothingPasses,
    /// The most sessions that may be tried passed.
    MostTried,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct SearchResult {
    /// The workload whose rate or sessions were looked for.
    pub workload: String,
    /// Which of both.
    pub search: SearchGoal,
    /// Why it ended.
    pub end: SearchEnd,
    /// The highest rate that passed, in transactions per second; that of the most sessions that
    /// passed where sessions were looked for.
    pub passed_per_s: Option<f64>,
    /// The most sessions that passed, where they were looked for.
    pub passed_sessions: Option<u32>,
    /// The database IOPS at that rate.
    pub passed_iops: Option<f64>,
    /// Whether that rate passed again when it was tried for twice as long.
    pub confirmed: bool,
    /// The lowest rate that failed; that of the fewest sessions that failed where sessions were
    /// looked for.
    pub failed_per_s: Option<f64>,
    /// The fewest sessions that failed, where they were looked for.
    pub failed_sessions: Option<u32>,
    /// What was exceeded at that rate.
    pub limited_by: Option<String>,
    /// None is stated: each rate is looked at until it is decided, and so many looks at 95 % hold
    /// less than that together.
    pub confidence_percent: Option<u32>,
    /// How narrow the bracket was to become.
    pub tolerance_percent: f64,
    /// Every rate tried, in order.
    pub steps: Vec<SearchStep>,
}

/// How a rate did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Every criterion holds.
    Passed,
    /// One does not.
    Failed,
    /// The figures are too near to a limit to tell.
    Unsure,
}

/// A criterion at one place.
#[derive(Clone, Debug, Serialize)]
pub struct SearchFigure {
    /// Name of the criterion.
    pub criterion: String,
    /// Position of the instance.
    pub instance: u32,
    /// Database of the instance, 0 for the log.
    pub database: u32,
    /// The mean in milliseconds, the share of operations above a limit of the 99th percentile, or
    /// events per second.
    pub measured: f64,
    /// It is hardly below this.
    pub low: Option<f64>,
    /// It is hardly above this.
    pub high: Option<f64>,
    /// The most it may be.
    pub limit: f64,
    /// How it was decided.
    pub decision: Decision,
}

/// One rate tried, as a point of the knee chart.
#[derive(Clone, Debug, Serialize)]
pub struct SearchStep {
    /// The sessions that were tried, where these were looked for.
    pub sessions: Option<u32>,
    /// Transactions that arrived per second; those that sessions completed.
    pub transactions_per_s: f64,
    /// Transactions that were completed per second.
    pub done_per_s: f64,
    /// When the figures begin.
    pub start_ns: Nanos,
    /// When they end.
    pub end_ns: Nanos,
    /// How long was measured.
    pub seconds: f64,
    /// In how many batches.
    pub batches_count: usize,
    /// Database reads and writes per second.
    pub database_iops: f64,
    /// Database reads per second.
    pub database_reads_per_s: f64,
    /// Database writes per second.
    pub database_writes_per_s: f64,
    /// Log writes per second.
    pub log_writes_per_s: f64,
    /// Mean and 99th percentile of database reads.
    pub database_read_ms: Latency,
    /// The same of log writes.
    pub log_write_ms: Latency,
    /// The same of response times from the intended start.
    pub response_ms: Latency,
    /// Share of the time the generator's thread was at work.
    pub executor_busy: f64,
    /// 99th percentile of the generator's own delay.
    pub arrival_lag_ms_p99: f64,
    /// Arrivals that found every session busy.
    pub pool_waits_count: u64,
    /// Whether the generator may be what was slow.
    pub generator_limited: bool,
    /// How the rate did.
    pub decision: Decision,
    /// What was exceeded first: a criterion, "sessions_max", "throughput" or "generator".
    pub limited_by: Option<String>,
    /// The criteria one by one.
    pub figures: Vec<SearchFigure>,
}

/// Two figures of a distribution.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Weighted by operations.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Latency {
    /// Those of a distribution.
    pub fn of(latencies: &Histogram) -> Latency {
        let milliseconds = |ns: f64| ns / NANOS_PER_MILLISECOND as f64;
        Latency {
            mean: milliseconds(latencies.mean_ns()),
            p99: milliseconds(latencies.quantile_ns(0.99) as f64),
        }
    }
}
