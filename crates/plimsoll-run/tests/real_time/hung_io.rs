//! An I/O that never returns, in real time: it is reported, and whoever asks the run to stop gets
//! what was measured.
//!
//! Why it matters: a path that hangs is what people test storage for. A program that can then only
//! be killed has lost the run.

use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    OperationKind, Purpose, Random, Tracking,
};
use plimsoll_run::{Ending, Event, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::json;

const HUNG_AFTER_MS: u64 = 300;
/// Prepare, measure, stop.
const MEASURED: [usize; 3] = [0, 2, 3];

/// A run of some phases, a minute of measuring among them, on a disk with these faults; it is asked
/// to stop when an event of kind `stops_at` is told.
fn run_with(
    faults: &[FaultRule],
    stops_at: &'static str,
    phases: &[usize],
) -> (RunOutcome, Vec<Event>, Duration) {
    run_for(60.0, faults, stops_at, phases)
}

/// The same with so many seconds of measuring.
#[expect(
    clippy::disallowed_methods,
    reason = "somebody listens beside the run, which must end in real time"
)]
fn run_for(
    measured_s: f64,
    faults: &[FaultRule],
    stops_at: &'static str,
    phases: &[usize],
) -> (RunOutcome, Vec<Event>, Duration) {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(100_000)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    faults.iter().for_each(|fault| disk.inject(fault.clone()));
    let mut spec =
        crate::support::spec("engine", json!({"sessions": 3, "shared": false}), measured_s);
    spec["hung_after_ms"] = json!(HUNG_AFTER_MS);
    spec["sample_interval_ms"] = json!(100);
    spec["phases"] = phases.iter().map(|phase| spec["phases"][*phase].clone()).collect();
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let ((samples, _rows), (events, told)) = (channel(), channel::<Event>());
    let stop = StopSignal::default();
    let stopping = stop.clone();
    let listener = std::thread::spawn(move || {
        let mut heard: Vec<Event> = Vec::new();
        // A run that was given up may leave its end of the channel open.
        while let Ok(event) = told.recv_timeout(Duration::from_secs(6)) {
            if event.kind == stops_at {
                stopping.stop();
            }
            heard.push(event);
        }
        // Nothing more is told for long: a run that has not ended by itself is stopped, and its
        // ending shows that.
        stopping.stop();
        heard
    });
    let started = Instant::now();
    let outcome = execute(spec, clock, disk, Output { samples, events }, stop);
    (outcome, listener.join().expect("it only listens"), started.elapsed())
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind).collect()
}

/// The log write that every session waits for never returns: it is named, and a stop ends the run
/// all the same.
#[test]
fn a_run_with_a_hung_write_is_reported_and_can_be_stopped() {
    let hung = FaultRule::new(Effect::Hang).with_purpose(Purpose::LogWrite).nth(200);
    let (outcome, events, took) = run_with(&[hung], "hung_io", &MEASURED);
    assert_eq!(outcome.ending, Ending::Interrupted, "{:?}", outcome.error);
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    let told = events.iter().find(|event| event.kind == "hung_io").expect("it is told");
    assert!(told.text.contains("has not completed for more than 0.3 s"), "{}", told.text);
    assert!(kinds(&events).contains(&"left_open"), "{:?}", kinds(&events));
    let measured = outcome.phases.iter().find(|phase| phase.kind == "measure");
    assert!(!measured.expect("its phase is there").complete);
    let inserts = outcome.figures.iter().filter(|figures| figures.metric == "insert");
    assert!(inserts.map(|figures| figures.count).sum::<u64>() > 0, "what was measured is kept");
}

/// Whichever write of a header hangs, while databases are made, opened or closed: closing looks for
/// no stop by itself, and is given up all the same.
#[test]
fn whichever_header_write_hangs_the_run_can_be_stopped() {
    let mut reasons = Vec::new();
    // Each run mostly waits, so several wait at once; the first in which nothing hangs has no more
    // header writes.
    for group in (1..20).step_by(5).map(|first| first..first + 5) {
        let ran = at_once(group.map(|nth| move || with_header_write_hung(nth)).collect());
        for (outcome, events, took) in ran {
            if !kinds(&events).contains(&"hung_io") {
                assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
                let gave_up = |reason: &String| reason.contains("has not returned");
                assert!(reasons.iter().any(gave_up), "{reasons:?}");
                return;
            }
            assert_eq!(outcome.ending, Ending::Interrupted, "{:?}", outcome.error);
            assert!(took < Duration::from_secs(20), "it took {took:?}");
            reasons.push(outcome.error.expect("a reason").text);
        }
    }
    panic!("a run has more header writes than were tried");
}

fn with_header_write_hung(nth: u64) -> (RunOutcome, Vec<Event>, Duration) {
    let hung = FaultRule::new(Effect::Hang)
        .with_kind(OperationKind::Write)
        .with_purpose(Purpose::Header)
        .nth(nth);
    run_with(&[hung], "hung_io", &[0, 3])
}

/// Runs things that wait for real time, each on a thread of its own.
#[expect(clippy::disallowed_methods, reason = "real runs, each with a thread of its own anyway")]
fn at_once<T: Send>(works: Vec<impl FnOnce() -> T + Send>) -> Vec<T> {
    std::thread::scope(|scope| {
        let start = |work| std::thread::Builder::new().spawn_scoped(scope, work).expect("a thread");
        let threads: Vec<_> = works.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("the run ends")).collect()
    })
}

/// Another I/O fails while one hangs: nobody asks for a stop, and the run must not wait for ever to
/// close what cannot be closed.
#[test]
fn a_run_that_failed_does_not_wait_for_what_hangs() {
    let hung = FaultRule::new(Effect::Hang).with_purpose(Purpose::DatabaseWrite).nth(5);
    let fails = FaultRule {
        skip: 150,
        ..FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::LogWrite)
    };
    let (outcome, events, took) = run_with(&[hung, fails], "nothing", &MEASURED);
    assert_eq!(outcome.ending, Ending::Failed, "{:?}", outcome.error);
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    assert!(kinds(&events).contains(&"left_open"), "{:?}", kinds(&events));
}

/// Why: a run with a hung I/O stood at "100 %, 0 s left" for ever. It ends by itself some time
/// after its time, and has failed.
#[test]
fn a_run_with_a_hung_io_ends_by_itself_and_has_failed() {
    for purpose in [Purpose::LogWrite, Purpose::DatabaseRead, Purpose::DatabaseWrite] {
        let hung = FaultRule::new(Effect::Hang).with_purpose(purpose).nth(20);
        let (outcome, events, took) = run_for(1.0, &[hung], "nothing", &MEASURED);
        assert_eq!(outcome.ending, Ending::Failed, "{purpose:?}: {:?}", outcome.error);
        let error = outcome.error.expect("a reason");
        assert_eq!(error.family, "disk", "{purpose:?}: {}", error.text);
        assert!(error.text.contains("hung"), "{purpose:?}: {}", error.text);
        assert!(took < Duration::from_secs(20), "{purpose:?} took {took:?}");
        let hung = outcome.figures.iter().filter(|figures| figures.metric == "hung");
        assert_eq!(hung.map(|figures| figures.count).sum::<u64>(), 1, "{purpose:?}");
        let measured = outcome.phases.iter().find(|phase| phase.kind == "measure");
        assert!(measured.expect("its phase is there").complete, "its time was over");
        assert!(kinds(&events).contains(&"left_open"), "{:?}", kinds(&events));
    }
}

/// Why: a stop after the measured time, while sessions wait for what hangs, ended in a panic and
/// without an outcome.
#[test]
fn a_stop_after_the_time_of_a_phase_is_no_panic() {
    let hung = FaultRule::new(Effect::Hang).with_purpose(Purpose::LogWrite).nth(20);
    let (outcome, events, took) = run_for(0.2, &[hung], "hung_io", &MEASURED);
    assert_eq!(outcome.ending, Ending::Interrupted, "{:?}", outcome.error);
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    assert!(kinds(&events).contains(&"left_open"), "{:?}", kinds(&events));
}

/// An operation that began exactly when a look's deadline was is hung once. The first operations of
/// a run begin at its very start.
#[test]
fn whatever_hangs_is_counted_once() {
    let hung = FaultRule::new(Effect::Hang).with_purpose(Purpose::DatabaseRead).nth(3);
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(100_000_000)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk.inject(hung);
    let mut spec = crate::support::spec("raw_files", json!({"sessions": 3, "shared": false}), 10.0);
    spec["hung_after_ms"] = json!(HUNG_AFTER_MS);
    spec["sample_interval_ms"] = json!(100);
    let ran = crate::support::run_on(&disk, &spec);
    assert_eq!(ran.told("hung_io").len(), 1, "{:?}", ran.told("hung_io"));
}
