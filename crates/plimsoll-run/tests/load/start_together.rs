//! Several hosts measure at the same time only if each of them waits for the same moment, under
//! load, so that caches stay warm.

use serde_json::{Value, json};

use crate::support::{Ran, constant, run_on, spec};

/// Where virtual wall clocks begin: 2020-01-01.
const VIRTUAL_START_S: f64 = 1_577_836_800.0;

fn waiting_until(moment_s: f64) -> Value {
    let mut plan = spec("raw_files", json!({"sessions": 2, "shared": true}), 10.0);
    let wait = json!({
        "name": "start together", "workloads": ["mix"],
        "action": {"kind": "soak", "duration_s": 0.0, "until_utc_s": moment_s}
    });
    plan["phases"].as_array_mut().unwrap().insert(2, wait);
    plan
}

fn bounds_s(ran: &Ran, kind: &str) -> (f64, f64) {
    let phase = ran.outcome.phases.iter().find(|phase| phase.kind == kind);
    let phase = phase.expect("the phase took place");
    (phase.start_ns as f64 / 1e9, phase.end_ns as f64 / 1e9)
}

/// JST-20. Whatever preparing and warming up took, the measured time begins at the moment, and the
/// load runs until then.
#[test]
fn what_is_measured_begins_at_the_moment() {
    let ran = run_on(&constant(2_000_000), &waiting_until(VIRTUAL_START_S + 100.0));
    let (begun, _) = bounds_s(&ran, "measure");
    assert!((100.0..100.01).contains(&begun), "{begun}");
    let code = plimsoll_measure::metric_code("database_read").expect("a metric");
    let waited = ran.rows.iter().filter(|row| row.metric == code && row.phase == 2);
    let (from, until) = bounds_s(&ran, "soak");
    assert!(waited.map(|row| row.count).sum::<u64>() as f64 > 100.0 * (until - from));
    assert!(ran.told("started_late").is_empty());
}

/// A host that comes too late measures all the same, and says so where whoever adds up the hosts
/// reads it.
#[test]
fn who_is_late_says_so() {
    let ran = run_on(&constant(2_000_000), &waiting_until(VIRTUAL_START_S + 0.001));
    let (_, ended) = bounds_s(&ran, "warm_up");
    let (begun, over) = bounds_s(&ran, "measure");
    assert!(begun - ended < 0.01, "no time was lost: {ended} {begun}");
    assert!((over - begun - 10.0).abs() < 0.1);
    assert!(ran.told("started_late")[0].contains("s ago"), "{:?}", ran.told("started_late"));
}
