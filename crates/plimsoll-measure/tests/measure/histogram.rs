//! The histogram is the ground under every published latency, so its exact parts are exact and its
//! buckets tight.

use plimsoll_measure::{HISTOGRAM_MAX_NS, Histogram};

#[test]
fn mean_and_maximum_are_exact_and_quantiles_within_one_percent() {
    let mut histogram = Histogram::new();
    for latency_us in 1..=1000u64 {
        histogram.record(latency_us * 1000);
    }
    assert_eq!(histogram.count(), 1000);
    assert_eq!(histogram.mean_ns(), 500_500.0);
    assert_eq!(histogram.max_ns(), 1_000_000);
    assert_eq!(histogram.min_ns(), 1_000);
    let p99_ns = histogram.quantile_ns(0.99) as f64;
    assert!((p99_ns / 990_000.0 - 1.0).abs() < 0.01, "p99 was {p99_ns}");
}

#[test]
fn merging_two_halves_equals_recording_the_whole() {
    let (mut left, mut right, mut whole) = (Histogram::new(), Histogram::new(), Histogram::new());
    for value in 0..5000u64 {
        let latency_ns = value * value * 37;
        if value % 3 == 0 {
            left.record(latency_ns)
        } else {
            right.record(latency_ns)
        }
        whole.record(latency_ns);
    }
    left.merge(&right);
    assert_eq!(left.buckets().collect::<Vec<_>>(), whole.buckets().collect::<Vec<_>>());
    assert_eq!(
        (left.sum_ns(), left.max_ns(), left.count()),
        (whole.sum_ns(), whole.max_ns(), whole.count())
    );
}

#[test]
fn a_latency_over_an_hour_is_counted_and_its_maximum_is_kept() {
    let mut histogram = Histogram::new();
    histogram.record(2 * HISTOGRAM_MAX_NS);
    assert_eq!(histogram.count(), 1);
    assert_eq!(histogram.max_ns(), 2 * HISTOGRAM_MAX_NS);
}

/// Why: a soak lasts days, and a counter that is full keeps silent while every percentile goes
/// wrong.
#[test]
fn ten_days_at_twenty_thousand_a_second_lose_no_count() {
    const FAST_NS: u64 = 100_000;
    const SLOW_NS: u64 = 5_000_000;
    let repeated = |part: &Histogram, times: u32| {
        let mut whole = Histogram::new();
        (0..times).for_each(|_| whole.merge(part));
        whole
    };
    let mut second = Histogram::new();
    for number in 0..20_000 {
        // One in 250 is slow, so p99 is fast and p999 is not.
        second.record(if number % 250 == 0 { SLOW_NS } else { FAST_NS });
    }
    let day = repeated(&repeated(&repeated(&second, 60), 60), 24);
    let days = repeated(&day, 10);
    let operations = 10 * 86_400 * 20_000;
    assert_eq!(days.count(), operations);
    assert_eq!(days.buckets().map(|(_, count)| count).sum::<u64>(), operations);
    assert_eq!(days.buckets().last(), Some((SLOW_NS, operations / 250)));
    assert!(days.quantile_ns(0.99) < 101_000, "{}", days.quantile_ns(0.99));
    assert_eq!(days.quantile_ns(0.999), SLOW_NS);
}

/// Why: a limit of 20 ms was failed by I/O of 19.95 ms, because the bucket reached beyond the
/// longest of them.
#[test]
fn no_percentile_and_no_bucket_exceeds_the_maximum() {
    for latency_ns in [1_003, 10_300, 131_500, 1_000_001, 19_950_000, 20_000_000, 7_000_000_001] {
        let mut histogram = Histogram::new();
        (0..1000).for_each(|_| histogram.record(latency_ns));
        for quantile in [0.5, 0.99, 0.9999, 1.0] {
            assert_eq!(histogram.quantile_ns(quantile), latency_ns);
        }
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(latency_ns, 1000)]);
    }
}

/// Why: the documentation says two significant digits, and fast storage answers in ten
/// microseconds.
#[test]
fn every_latency_from_one_microsecond_on_is_told_within_one_percent() {
    let mut latency_ns = 1_000;
    while latency_ns < HISTOGRAM_MAX_NS {
        let mut histogram = Histogram::new();
        histogram.record(latency_ns);
        // The longest is told exactly, so another must lie above.
        histogram.record(4 * latency_ns);
        let upper_ns = histogram.buckets().next().expect("two were recorded").0;
        let excess = upper_ns as f64 / latency_ns as f64 - 1.0;
        assert!((0.0..0.01).contains(&excess), "{latency_ns} ns was told as {upper_ns} ns");
        latency_ns += 1 + latency_ns / 997;
    }
}
