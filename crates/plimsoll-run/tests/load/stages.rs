//! Loads whose rate goes through stages.

use plimsoll_io::{MemoryDisk, NANOS_PER_MILLISECOND, NANOS_PER_SECOND};
use plimsoll_measure::metric_code;
use plimsoll_run::RunSpec;
use serde_json::{Value, json};

use crate::support::*;

const OPERATIONS: [&str; 4] = ["insert", "delete", "replace", "read"];

fn staged(mut load: Value, stages: &[(f64, f64)]) -> Value {
    let stages =
        stages.iter().map(|(percent, seconds)| json!({"rate_percent": percent, "for_s": seconds}));
    load["stages"] = stages.collect();
    load
}

fn ran(load: Value, seconds: f64) -> Ran {
    let disk: std::rc::Rc<MemoryDisk> = constant(NANOS_PER_MILLISECOND);
    let ran = run(&disk.clock().clone(), disk, &spec("raw_files", load, seconds));
    assert!(ran.outcome.error.is_none(), "{:?}", ran.outcome.error);
    ran
}

/// Operations that completed between two moments of the run.
fn completed(ran: &Ran, from_ns: u64, until_ns: u64) -> f64 {
    let codes = OPERATIONS.map(|name| metric_code(name).unwrap());
    let within = |end_ns: u64| from_ns < end_ns && end_ns <= until_ns;
    let rows = ran.rows.iter().filter(|row| codes.contains(&row.metric) && within(row.end_ns));
    rows.map(|row| row.count as f64).sum()
}

/// The stages follow one another and begin anew, and what arrives is what each of them says.
#[test]
fn a_load_goes_through_its_stages_and_begins_anew() {
    let ran = ran(staged(rate(100.0, 64), &[(50.0, 20.0), (200.0, 10.0)]), 45.0);
    let phase = &ran.outcome.phases[MEASURE as usize];
    let stages: Vec<_> = phase.result.stages.iter().collect();
    let seen: Vec<_> = stages.iter().map(|stage| (stage.stage, stage.rate_percent)).collect();
    assert_eq!(seen, [(1, 50.0), (2, 200.0), (1, 50.0)]);
    assert_eq!(stages[0].start_ns, phase.start_ns);
    assert_eq!(stages[2].end_ns, phase.end_ns);
    let lengths: Vec<_> =
        stages.iter().map(|stage| (stage.end_ns - stage.start_ns) / NANOS_PER_SECOND).collect();
    assert_eq!(lengths, [20, 10, 15]);
    for (stage, expected) in stages.iter().zip([1_000.0_f64, 2_000.0, 750.0]) {
        let count = completed(&ran, stage.start_ns, stage.end_ns);
        let apart = (count - expected).abs();
        assert!(apart < 4.0 * expected.sqrt(), "{count} of {expected} in stage {}", stage.stage);
    }
    assert_eq!(ran.told("stage_began").len(), 3);
    assert!(
        ran.told("stage_began")[1].contains("stage 2 of 2, 200 % of its rate, 200 operations/s")
    );
}

/// A target in database I/O is measured first, at all of it; the stages are shares of that.
#[test]
fn stages_of_a_target_are_shares_of_what_was_measured() {
    let ran = ran(staged(target(200.0), &[(25.0, 30.0), (100.0, 30.0)]), 60.0);
    let stages = &ran.outcome.phases[MEASURE as usize].result.stages;
    let calibrated = ran.outcome.phases[1].result.calibrations[0].transactions_per_s;
    let rates: Vec<_> = stages.iter().map(|stage| stage.transactions_per_s).collect();
    assert_eq!(rates, [0.25 * calibrated, calibrated]);
}

#[test]
fn impossible_stages_are_refused() {
    for stage in [(0.0, 10.0), (50.0, 0.0), (-1.0, 5.0)] {
        let spec = spec("raw_files", staged(rate(10.0, 8), &[stage]), 5.0);
        let text = RunSpec::from_json(&spec.to_string()).unwrap_err().to_string();
        assert!(text.contains("of a stage"), "{text}");
    }
}

/// Users do not go away at the full hour: what a busy stage leaves undone is done in the next, and
/// its response times say how long it waited.
#[test]
fn what_a_stage_leaves_undone_is_done_in_the_next() {
    // One at a time, 20 ms each: 50 a second.
    let disk = constant(20 * NANOS_PER_MILLISECOND);
    let load = staged(rate(100.0, 1), &[(10.0, 10.0), (100.0, 10.0), (10.0, 40.0)]);
    let ran = run(&disk.clock().clone(), disk, &spec("raw_files", load, 60.0));
    assert!(ran.outcome.error.is_none(), "{:?}", ran.outcome.error);
    let stages = &ran.outcome.phases[MEASURE as usize].result.stages;
    let counts: Vec<_> =
        stages.iter().map(|stage| completed(&ran, stage.start_ns, stage.end_ns)).collect();
    let [calm, busy, after] = counts[..] else { panic!("{counts:?}") };
    assert!(calm < 140.0 && busy < 700.0 && after > 700.0, "{counts:?}");
    let all = calm + busy + after;
    assert!((all - 1_500.0).abs() < 4.0 * 1_500.0_f64.sqrt(), "{counts:?}");
}

/// An hour in which nearly nothing arrives must not carry its silence into the busy ones behind it.
#[test]
fn a_calm_stage_does_not_swallow_the_next() {
    let stages = [(100.0, 20.0), (0.1, 5.0), (0.1, 5.0), (100.0, 20.0), (0.1, 5.0), (100.0, 20.0)];
    let ran = ran(staged(rate(10.0, 8), &stages), 75.0);
    for stage in &ran.outcome.phases[MEASURE as usize].result.stages {
        let expected = stage.rate_percent / 100.0 * 200.0;
        let count = completed(&ran, stage.start_ns, stage.end_ns);
        let chance = 4.0 * expected.sqrt().max(1.0);
        assert!((count - expected).abs() <= chance, "{count} of {expected}: {stage:?}");
    }
}

/// Whatever ends a phase, what it went through is known.
#[test]
fn the_stages_of_a_phase_that_failed_are_known() {
    let disk = constant(NANOS_PER_MILLISECOND);
    let mut failing =
        plimsoll_io::FaultRule::new(plimsoll_io::Effect::Fail(plimsoll_io::DiskErrorKind::Medium));
    failing.from_ns = 60 * NANOS_PER_SECOND;
    disk.inject(failing);
    let load = staged(rate(50.0, 8), &[(50.0, 20.0), (100.0, 500.0)]);
    let ran = run(&disk.clock().clone(), disk, &spec("raw_files", load, 500.0));
    assert!(ran.outcome.error.is_some());
    let phase = &ran.outcome.phases[MEASURE as usize];
    let stages: Vec<_> = phase.result.stages.iter().map(|stage| stage.stage).collect();
    assert_eq!(stages, [1, 2]);
    assert!(phase.result.stages[1].end_ns <= phase.end_ns);
}
