//! What an edition does beside and between its transactions, at run level and with figures that
//! follow from the plan.

use plimsoll_run::Ending;
use serde_json::json;

use crate::support::{MIB, Ran, constant, run_on, spec};

const SECONDS: f64 = 60.0;

fn sessions(count: u32) -> serde_json::Value {
    json!({"sessions": count, "shared": false})
}

fn complete(ran: Ran) -> Ran {
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    ran
}

/// The published duty of a session is 1 / (1 + sluggish): full speed in 2003, a third in 2007, a
/// half in 2010 and 2013.
#[test]
fn think_time_follows_the_edition() {
    let transactions = |sluggish: f64| {
        let mut plan = spec("raw_files", sessions(3), SECONDS);
        plan["workloads"][0]["sluggish"] = json!(sluggish);
        complete(run_on(&constant(1_000_000), &plan)).transactions() as f64
    };
    let full_speed = transactions(0.0);
    for sluggish in [1.0, 2.0] {
        let share = transactions(sluggish) / full_speed;
        let wanted = 1.0 / (1.0 + sluggish);
        assert!((share - wanted).abs() < 0.02 * wanted, "sluggish {sluggish}: {share}");
    }
}

/// Maintenance reads 256 KiB, then pauses: its period is the pause and one read, so its rate
/// follows the storage's latency and is no fixed number of bytes. 100 ms and 8 ms are the published
/// 2013 case of about 2.3 MB/s; 2010 pauses for 20 ms.
#[test]
fn maintenance_keeps_the_period_of_its_edition() {
    for (throttle_ms, latency_ms) in [(100, 8), (20, 12), (20, 1)] {
        let mut plan = spec("engine", sessions(1), SECONDS);
        plan["instances"][0]["maintenance"] =
            json!({"throttle_ms": throttle_ms, "read_bytes": 262_144});
        let ran = complete(run_on(&constant(latency_ms * 1_000_000), &plan));
        let reads_per_s = ran.count("maintenance") as f64 / SECONDS;
        let wanted = 1000.0 / (throttle_ms + latency_ms) as f64;
        assert!(
            (reads_per_s - wanted).abs() < 0.03 * wanted,
            "pause {throttle_ms} ms, read {latency_ms} ms: {reads_per_s} instead of {wanted}"
        );
        let figures = ran.figures("maintenance")[0];
        let bytes_mean = figures.bytes as f64 / figures.count as f64;
        assert!(bytes_mean > 0.95 * 262_144.0, "{bytes_mean}");
    }
}

/// Each copy beyond the first reads the log back once: no replication without copies, and twice as
/// much for three as for two.
#[test]
fn each_further_copy_reads_the_log_back() {
    let replicated = |copies: u32| {
        let mut plan = spec("engine", sessions(3), SECONDS / 3.0);
        plan["instances"][0]["copies_count"] = json!(copies);
        let ran = complete(run_on(&constant(1_000_000), &plan));
        let bytes = |metric: &str| -> f64 {
            let figures = ran.figures(metric);
            figures.iter().map(|figures| figures.bytes).sum::<u64>() as f64
        };
        bytes("log_replication") / bytes("log_write")
    };
    assert_eq!(replicated(1), 0.0);
    let (two, three) = (replicated(2), replicated(3));
    assert!((0.85..1.05).contains(&two), "{two}");
    assert!((three - 2.0 * two).abs() < 0.1, "{two} {three}");
}

/// Collection starts when the cache is nine tenths full and not before, and the start is in the
/// log.
#[test]
fn jst_11_collection_waits_for_the_cache() {
    let mut plan = spec("engine", sessions(1), SECONDS);
    plan["instances"][0]["cache_bytes_max"] = json!(16 * MIB);
    plan["sample_interval_ms"] = json!(100);
    let ran = complete(run_on(&constant(1_000_000), &plan));
    let told = ran.told("cache_warm");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("90 %"), "{}", told[0]);
    let used = plimsoll_measure::metric_code("cache_used").expect("a metric");
    let limit = plimsoll_measure::metric_code("cache_limit").expect("a metric");
    let values = |metric: u32, phase: u32| {
        let rows = ran.rows.iter();
        rows.filter(move |row| row.metric == metric && row.phase == phase)
            .map(|row| row.value)
            .collect::<Vec<f64>>()
    };
    let limit = values(limit, 2)[0];
    assert!(values(used, 2).iter().all(|used| *used >= 0.9 * limit));
    assert!(values(used, 1).iter().any(|used| *used < 0.9 * limit), "it was cold before");
}

/// The number of samples follows from duration and interval to one in a hundred, so that a
/// published count can be compared.
#[test]
fn jst_12_samples_are_as_many_as_the_interval_says() {
    let ran = complete(run_on(&constant(1_000_000), &spec("raw_files", sessions(3), 200.0)));
    let mut ends: Vec<u64> =
        ran.rows.iter().filter(|row| row.phase == 2).map(|row| row.end_ns).collect();
    ends.sort_unstable();
    ends.dedup();
    // Two of them are cut short by the boundaries of the phase.
    assert!((199..=202).contains(&ends.len()), "{} samples of 1 s in 200 s", ends.len());
}
