//! The search must find a knee that was planted, say what the limit was, and leave the load at a
//! rate that passes.

use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, ThrottleLimits, Throttled};
use plimsoll_run::{Decision, Ending, SearchEnd, SearchResult};
use serde_json::{Value, json};

use crate::support::{MIB, Ran, constant, run, spec};

const READ_MEAN: &str = "database_read_latency_mean";

fn searching(backend: &str, budget_s: f64) -> Value {
    let load = json!({
        "search": "max", "sessions": 3, "shared": false, "spacing": "poisson", "sessions_max": 512,
        "step_s": 20.0, "settle_s": 5.0, "tolerance_percent": 1.0,
        "criteria": [
            {"name": READ_MEAN, "metric": "database_read", "statistic": "mean", "limit": 20.0},
            {"name": "log_write_latency_mean", "metric": "log_write", "statistic": "mean",
                "limit": 10.0}
        ]
    });
    let mut plan = spec(backend, load, 60.0);
    let search = json!({"name": "search", "action": {"kind": "search", "duration_s": budget_s},
        "workloads": ["mix"]});
    plan["phases"].as_array_mut().unwrap().insert(2, search);
    plan
}

fn throttled(plan: &Value, iops: f64, latency_ns: u64) -> Ran {
    let disk = constant(latency_ns);
    let limits = ThrottleLimits { operations_per_second: Some(iops), ..ThrottleLimits::default() };
    let clock = disk.clock().clone();
    run(&clock.clone(), Rc::new(Throttled::new(disk, clock, limits)), plan)
}

fn result(ran: &Ran) -> &SearchResult {
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let phase = ran.outcome.phases.iter().find(|phase| phase.kind == "search");
    let found = phase.expect("a search").result.search.as_ref();
    found.expect("a result")
}

/// JST-04, STU-15. A purchase hangs on this number: at two thousand transfers a second the queue
/// explodes within a per cent or two of the limit, so that is where the search must end, and from
/// below.
#[test]
fn a_planted_knee_is_found_within_three_per_cent() {
    for iops in [1000.0, 3000.0] {
        let mut plan = searching("raw_files", 3600.0);
        // Of reads alone, whose mean wait in a queue of service time s and load r is s r / 2 (1 -
        // r) (Pollaczek and Khinchine).
        let service_ms = 1000.0 / iops;
        let wait_ms = 20.0 - 0.2;
        let knee = iops * wait_ms / (wait_ms + service_ms / 2.0);
        plan["workloads"][0]["load"]["criteria"].as_array_mut().unwrap().pop();
        let ran = throttled(&plan, iops, 200_000);
        let found = result(&ran);
        assert_eq!(found.end, SearchEnd::Narrow);
        let passed = found.passed_per_s.expect("a rate passes");
        let step = found
            .steps
            .iter()
            .find(|step| step.transactions_per_s == passed)
            .expect("it was tried");
        assert_eq!(step.decision, Decision::Passed);
        assert!(found.confirmed);
        let last = found.steps.last().expect("there are steps");
        assert_eq!(last.transactions_per_s, passed, "what was found is tried once more");
        assert!(last.seconds >= 40.0, "for twice as long: {}", last.seconds);
        let transfers = step.database_iops + step.log_writes_per_s;
        assert!(
            (0.97..=1.01).contains(&(transfers / knee)),
            "{transfers} of {knee} transfers/s at {passed}/s"
        );
        let failed = found.failed_per_s.expect("a rate fails");
        assert!(failed <= passed * 1.0101, "{passed} {failed}");
    }
}

/// What is measured after the search is the rate that passed: a rate that fails would fail the test
/// by its own search.
fn check_the_load_stays_at_the_rate_that_passed(ran: &Ran) {
    let passed = result(ran).passed_per_s.expect("a rate passes");
    let code = plimsoll_measure::metric_code("offered_rate").expect("a metric");
    let measured = ran.rows.iter().filter(|row| row.metric == code && row.phase == 3);
    let rates: Vec<f64> = measured.map(|row| row.value).collect();
    assert!(rates.len() >= 60 && rates.iter().all(|rate| *rate == passed), "{rates:?}");
}

/// The first limit is what one buys against, so it must be named: here reads share a slow path and
/// log writes do not.
#[test]
fn the_first_limit_is_named() {
    let ran = throttled(&searching("engine", 3600.0), 300.0, 500_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::Narrow, "{:?}", ran.told("search_step"));
    // One queue for both kinds: the stricter limit, of log writes, is met first.
    assert_eq!(found.limited_by.as_deref(), Some("log_write_latency_mean"));
    assert!(found.passed_per_s.is_some());
}

/// Page faults that find no free buffer fail a test, so a rate that makes more than one a second
/// must not count as carried: here the storage is quick enough for any rate, and the smallest cache
/// is not.
#[test]
fn stalls_of_the_cache_limit_a_search_too() {
    let mut plan = searching("engine", 600.0);
    let load = &mut plan["workloads"][0]["load"];
    load["criteria"] = json!([{"name": "page_fault_stalls", "metric": "page_fault_stall",
        "statistic": "per_s", "limit": 1.0}]);
    load["step_s"] = json!(4.0);
    load["settle_s"] = json!(1.0);
    load["tolerance_percent"] = json!(20.0);
    plan["instances"][0]["cache_bytes_max"] = json!(MIB);
    let ran = throttled(&plan, 1_000_000.0, 5_000_000);
    let found = result(&ran);
    assert_eq!(
        found.limited_by.as_deref(),
        Some("page_fault_stalls"),
        "{:?}",
        ran.told("search_step")
    );
    let passed = found.passed_per_s.expect("a rate passes");
    let step = found.steps.iter().find(|step| step.transactions_per_s == passed);
    let figures = &step.expect("it was tried").figures;
    assert!(figures.len() == 1 && figures[0].measured <= 1.0, "{figures:?}");
}

/// A storage on which nothing passes gives an answer too, and the run goes on at the lowest rate
/// tried.
#[test]
fn a_hopeless_storage_is_said_to_be_one() {
    let ran = throttled(&searching("raw_files", 3600.0), 1_000_000.0, 30_000_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::NothingPasses);
    assert_eq!(found.passed_per_s, None);
    assert!(found.limited_by.is_some());
}

/// The published way: sessions of which each does one thing after the other, more and more of them
/// until a limit is met. A queue that serves a thousand transfers a second keeps each of N sessions
/// waiting for N milliseconds, so 20 ms are met by 20.
#[test]
fn the_most_sessions_that_keep_the_limits_are_found() {
    let mut plan = searching("raw_files", 3600.0);
    plan["workloads"][0]["load"]["search"] = json!("max_sessions");
    plan["workloads"][0]["load"]["criteria"].as_array_mut().unwrap().pop();
    let ran = throttled(&plan, 1000.0, 200_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::Narrow);
    let (passed, failed) = (found.passed_sessions.unwrap(), found.failed_sessions.unwrap());
    assert!((19..=20).contains(&passed) && failed == passed + 1, "{passed} {failed}");
    assert_eq!(found.limited_by.as_deref(), Some(READ_MEAN));
    assert!(found.confirmed);
    let last = found.steps.last().expect("there are steps");
    assert_eq!((last.sessions, last.decision), (Some(passed), Decision::Passed));
    assert_eq!(found.passed_per_s, Some(last.done_per_s));
    let transfers = last.database_iops + last.log_writes_per_s;
    assert!((950.0..=1001.0).contains(&transfers), "{transfers}");
    assert!(found.steps.iter().all(|step| step.sessions.is_some()));
    let code = plimsoll_measure::metric_code("sessions").expect("a metric");
    let measured = ran.rows.iter().filter(|row| row.metric == code && row.phase == 3);
    let levels: Vec<f64> = measured.map(|row| row.value).collect();
    let stays = levels.iter().all(|level| *level == f64::from(passed));
    assert!(levels.len() >= 60 && stays, "the load stays at what passed: {levels:?}");
}

/// Where no limit is met, the answer says so, and where one session is too many, that.
#[test]
fn sessions_may_end_at_the_most_and_at_none() {
    let mut plan = searching("raw_files", 3600.0);
    plan["workloads"][0]["load"]["search"] = json!("max_sessions");
    plan["workloads"][0]["load"]["sessions_max"] = json!(10);
    let ran = throttled(&plan, 1000.0, 200_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::MostTried);
    assert_eq!((found.passed_sessions, found.failed_sessions), (Some(10), None));
    assert_eq!(found.limited_by, None);
    let ran = throttled(&plan, 1_000_000.0, 30_000_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::NothingPasses);
    assert_eq!((found.passed_sessions, found.failed_sessions), (None, Some(1)));
    // Three times its limit, where reads are at one and a half times theirs.
    assert_eq!(found.limited_by.as_deref(), Some("log_write_latency_mean"));
}

/// Whoever has fifteen minutes gets the best answer of fifteen minutes, and is told that it is not
/// the last word.
#[test]
fn a_search_ends_with_its_time() {
    let ran = throttled(&searching("raw_files", 100.0), 2000.0, 200_000);
    let found = result(&ran);
    assert_eq!(found.end, SearchEnd::TimeOver);
    assert!(found.steps.len() <= 4);
    let phase = ran.outcome.phases.iter().find(|phase| phase.kind == "search");
    let phase = phase.expect("a search");
    assert!((phase.end_ns - phase.start_ns) <= 200 * NANOS_PER_SECOND);
}

/// The chart is drawn from the steps: load rises, latency with it, and each has its bounds. What is
/// measured after them goes on at the rate that passed.
#[test]
fn every_step_is_a_point_of_the_knee_chart() {
    let ran = throttled(&searching("raw_files", 3600.0), 2000.0, 200_000);
    check_the_load_stays_at_the_rate_that_passed(&ran);
    let mut steps: Vec<_> = result(&ran).steps.iter().collect();
    assert!(result(&ran).confirmed);
    // A rate that was found is tried again for longer: the later word counts.
    steps.reverse();
    steps.sort_by(|left, right| left.transactions_per_s.total_cmp(&right.transactions_per_s));
    steps.dedup_by(|later, kept| later.transactions_per_s == kept.transactions_per_s);
    let passed = steps.iter().take_while(|step| step.decision == Decision::Passed).count();
    assert!(steps[passed..].iter().all(|step| step.decision != Decision::Passed));
    assert!(steps[0].database_read_ms.mean < steps[steps.len() - 1].database_read_ms.mean);
    for step in &steps {
        let figure = step.figures.iter().find(|figure| figure.criterion == READ_MEAN);
        let figure = figure.expect("reads were judged");
        assert!(figure.low < Some(figure.measured) && Some(figure.measured) < figure.high);
        assert!((figure.measured - step.database_read_ms.mean).abs() < 1e-6);
    }
}
