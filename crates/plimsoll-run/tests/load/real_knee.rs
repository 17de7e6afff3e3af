//! The search on a real disk behind a throttle, in real time: the same planted knee as in
//! `search.rs`, which runs in virtual time.
//!
//! Reads behind a throttle of so many transfers a second wait as in a queue with one server and
//! constant service (Pollaczek and Khinchine); what the disk itself takes is measured at the lowest
//! rate tried and taken off the limit. It hardly matters: a millisecond moves the knee by a
//! thousandth.

use std::path::Path;
use std::rc::Rc;

use plimsoll_io::{Clock, RealDisk, RealDiskOptions, ThrottleLimits, Throttled};
use plimsoll_run::{Ending, SearchEnd};
use serde_json::json;

use crate::support::{run, spec};

const IOPS: f64 = 1000.0;
const LIMIT_MS: f64 = 20.0;

/// JST-04. Ten minutes of real time; prints what it has found, which `docs/loads.md` quotes.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the directory of the test is made and removed beside the run"
)]
#[ignore = "takes ten minutes of real time on the disk under target/"]
fn a_knee_planted_on_a_real_disk_is_found_within_three_per_cent() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-knee");
    drop(std::fs::remove_dir_all(&home));
    std::fs::create_dir_all(home.join("one")).expect("a directory of ours");
    let load = json!({
        "search": "max", "sessions": 3, "shared": false, "spacing": "poisson", "sessions_max": 512,
        "step_s": 20.0, "settle_s": 5.0, "tolerance_percent": 1.0,
        "criteria": [{"name": "database_read_latency_mean", "metric": "database_read",
            "statistic": "mean", "limit": LIMIT_MS}]
    });
    let mut plan = spec("raw_files", load, 5.0);
    let search = json!({"name": "search", "action": {"kind": "search", "duration_s": 1800.0},
        "workloads": ["mix"]});
    plan["phases"].as_array_mut().unwrap().insert(2, search);
    let text = plan.to_string().replace("/data", home.to_str().expect("a name in UTF-8"));
    let clock = Rc::new(Clock::real());
    let disk =
        RealDisk::open(RealDiskOptions::default(), clock.clone()).expect("some method works");
    let limits = ThrottleLimits { operations_per_second: Some(IOPS), ..ThrottleLimits::default() };
    let throttled = Rc::new(Throttled::new(disk, clock.clone(), limits));
    let ran = run(&clock, throttled, &serde_json::from_str(&text).expect("it was JSON"));
    std::fs::remove_dir_all(&home).expect("it is ours");
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let phase = ran.outcome.phases.iter().find(|phase| phase.kind == "search");
    let found = phase.and_then(|phase| phase.result.search.as_ref()).expect("a search");
    let quickest = found.steps.iter().map(|step| step.database_read_ms.mean);
    let disk_ms = quickest.fold(f64::INFINITY, f64::min);
    let wait_ms = LIMIT_MS - disk_ms;
    let knee = IOPS * wait_ms / (wait_ms + 1000.0 / IOPS / 2.0);
    let passed = found.passed_per_s.expect("a rate passes");
    let step = found.steps.iter().find(|step| step.transactions_per_s == passed);
    let step = step.expect("it was tried");
    let transfers = step.database_iops + step.log_writes_per_s;
    let seconds = (phase.map_or(0, |phase| phase.end_ns - phase.start_ns)) as f64 / 1e9;
    println!(
        "throttle {IOPS:.0}/s: knee at {knee:.1} transfers/s, found {transfers:.1} ({:+.2} %) in \
         {} steps and {seconds:.0} s; \
         {:?}, quickest step {disk_ms:.2} ms",
        100.0 * (transfers / knee - 1.0),
        found.steps.len(),
        found.end
    );
    assert_eq!(found.end, SearchEnd::Narrow);
    assert!((0.97..=1.03).contains(&(transfers / knee)), "{transfers} of {knee}");
}
