//! The histogram is the ground under every published latency, so its exact parts are exact and its buckets tight.

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
    assert_eq!(
        left.buckets().collect::<Vec<_>>(),
        whole.buckets().collect::<Vec<_>>()
    );
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
