//! The one latency histogram.
//!
//! Every latency in Plimsoll is a `u64` of nanoseconds and goes into a high-dynamic-range histogram with the same
//! bounds and precision, so any two can be added. Values above one hour are counted as one hour: an I/O that takes
//! longer is reported as hung long before.

use hdrhistogram::Histogram as Hdr;

/// The largest value told apart: one hour.
pub const HISTOGRAM_MAX_NS: u64 = 3_600 * 1_000_000_000;
/// Values below a microsecond share a bucket.
const RESOLUTION_NS: u64 = 1_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// A mergeable latency histogram, in nanoseconds from 1 µs to 1 h at two significant digits.
///
/// Mean and maximum are kept exactly beside the buckets.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Hdr<u32>,
    sum_ns: u128,
    max_ns: u64,
    min_ns: u64,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let buckets = Hdr::new_with_bounds(RESOLUTION_NS, HISTOGRAM_MAX_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that the library accepts");
        Self {
            buckets,
            sum_ns: 0,
            max_ns: 0,
            min_ns: u64::MAX,
            count: 0,
        }
    }

    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.buckets.saturating_record(latency_ns.min(HISTOGRAM_MAX_NS));
        self.sum_ns += u128::from(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.count += 1;
    }

    /// Adds everything counted in `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets
            .add(&other.buckets)
            .expect("all histograms share one configuration");
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.count += other.count;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.buckets.reset();
        self.sum_ns = 0;
        self.max_ns = 0;
        self.min_ns = u64::MAX;
        self.count = 0;
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of all latencies.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The exact mean, zero when empty.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count as f64
        }
    }

    /// The exact maximum, zero when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The exact minimum, zero when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// The smallest recorded bucket value that at least `quantile` (0 to 1) of the latencies do not exceed.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count == 0 {
            0
        } else {
            self.buckets.value_at_quantile(quantile).min(self.max_ns)
        }
    }

    /// Every non-empty bucket as (upper bound in ns, count), in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), u64::from(step.count_at_value())))
    }
}
