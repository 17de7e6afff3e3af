//! Counting what the host sees, by class of request.

use plimsoll_io::Nanos;
use plimsoll_measure::Histogram;
use serde::Serialize;

use crate::array::Completed;

/// One class of requests.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    latencies: Histogram,
    bytes: u64,
    error_count: u64,
}

/// A class as reported.
#[derive(Clone, Debug, Serialize)]
pub struct ClassReport {
    /// The class.
    pub class: String,
    /// Requests that were answered with their data; the rates and latencies are theirs.
    pub count: u64,
    /// Requests whose data was lost.
    pub error_count: u64,
    /// Requests per second.
    pub per_second: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Mean latency.
    pub latency_ms_mean: f64,
    /// Median.
    pub latency_ms_p50: f64,
    /// 95th percentile.
    pub latency_ms_p95: f64,
    /// 99th percentile.
    pub latency_ms_p99: f64,
    /// The longest.
    pub latency_ms_max: f64,
}

impl Tally {
    /// Counts a request.
    pub fn count(&mut self, completed: &Completed) {
        if completed.is_lost {
            self.error_count += 1;
            return;
        }
        self.latencies.record(completed.completed - completed.submitted);
        self.bytes += u64::from(completed.request.bytes);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The class over an interval.
    pub fn report(&self, class: &str, interval_ns: Nanos) -> ClassReport {
        let seconds = interval_ns as f64 / 1e9;
        let milliseconds = |quantile: f64| self.latencies.quantile_ns(quantile) as f64 / 1e6;
        ClassReport {
            class: class.to_owned(),
            count: self.latencies.count(),
            error_count: self.error_count,
            per_second: self.latencies.count() as f64 / seconds,
            bytes_per_second: self.bytes as f64 / seconds,
            latency_ms_mean: self.latencies.mean_ns() / 1e6,
            latency_ms_p50: milliseconds(0.50),
            latency_ms_p95: milliseconds(0.95),
            latency_ms_p99: milliseconds(0.99),
            latency_ms_max: self.latencies.max_ns() as f64 / 1e6,
        }
    }
}
