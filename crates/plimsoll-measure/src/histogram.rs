//! The one latency histogram.
//!
//! Every latency in Plimsoll is a `u64` of nanoseconds and goes into a high-dynamic-range histogram
//! with the same bounds and precision, so any two can be added. Values above one hour are counted
//! as one hour: an I/O that takes longer is reported as hung long before. Counts have 64 bits, so
//! that a soak of weeks fills none; what a histogram has not yet met costs no memory, because
//! buckets are added as longer latencies come.

use hdrhistogram::Histogram as Hdr;

/// The largest value told apart: one hour.
pub const HISTOGRAM_MAX_NS: u64 = 3_600 * 1_000_000_000;
/// Buckets are this wide up to two microseconds, and less than a hundredth of their value from a
/// microsecond on.
const RESOLUTION_NS: u64 = 8;
const SIGNIFICANT_DIGITS: u8 = 2;

/// A mergeable latency histogram, in nanoseconds from 1 µs to 1 h at two significant digits.
///
/// Mean and maximum are kept exactly beside the buckets, and no bucket is told to reach beyond the
/// maximum.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Hdr<u64>,
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
        let mut buckets =
            Hdr::new_with_bounds(RESOLUTION_NS, 2 * RESOLUTION_NS, SIGNIFICANT_DIGITS)
                .expect("the bounds are constants that the library accepts");
        buckets.auto(true);
        Self { buckets, sum_ns: 0, max_ns: 0, min_ns: u64::MAX, count: 0 }
    }

    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.buckets
            .record(latency_ns.min(HISTOGRAM_MAX_NS))
            .expect("the buckets grow up to an hour");
        self.sum_ns += u128::from(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.count += 1;
    }

    /// Adds everything counted in `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.add(&other.buckets).expect("all histograms share one configuration and grow");
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
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The exact maximum, zero when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The exact minimum, zero when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// The smallest recorded bucket value that at least `quantile` (0 to 1) of the latencies do not
    /// exceed.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count == 0 { 0 } else { self.buckets.value_at_quantile(quantile).min(self.max_ns) }
    }

    /// Every non-empty bucket as (upper bound in ns, count), in rising order. The bound of the last
    /// is the maximum, unless that is longer than an hour.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter_recorded().map(|step| {
            let upper_ns = step.value_iterated_to().min(self.max_ns);
            (upper_ns, step.count_at_value())
        })
    }
}
