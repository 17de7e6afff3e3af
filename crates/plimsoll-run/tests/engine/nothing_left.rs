//! A run leaves nothing in memory, however it ends: complete, stopped in the middle, or with an I/O
//! that failed.
//!
//! Why it matters: whoever runs plan after plan in one process pays for what each of them leaves,
//! and a listener waits for the end of a channel that is still held. Buffers are counted by the
//! disk that lent them; tasks, files, instances and recorders hold the disk, its clock or the
//! channels. Only a run whose I/O hangs is left to the end of the process on purpose
//! (`real_time/hung_io.rs`). And a run in which an I/O failed never looks as if nothing had
//! happened: it ends as failed, or its events tell of the error.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use plimsoll_io::{
    AfterLook, Disk, DiskErrorKind, Effect, FaultRule, MemoryDisk, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, Nanos,
};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

/// What may end a run before its time.
enum Mishap {
    Nothing,
    /// Somebody asks it to stop at this time.
    Stop(Nanos),
    /// An operation fails, and every one after it if `is_lasting`.
    Failing {
        nth: u64,
        kind: DiskErrorKind,
        is_lasting: bool,
    },
}

/// Operations near each end of a run that the slow form fails one by one.
const ENDS: u64 = 150;

const KINDS: [DiskErrorKind; 3] = [DiskErrorKind::Medium, DiskErrorKind::Full, DiskErrorKind::Gone];

/// A second of measuring on a small database.
fn spec(backend: &str) -> Value {
    let mut spec = crate::support::spec(backend, json!({"sessions": 3, "shared": false}), 1.0);
    spec["instances"][0]["databases"][0]["size_bytes"] = json!(8 * crate::support::MIB);
    spec["instances"][0]["maintenance"] = json!({"throttle_ms": 20, "read_bytes": 262_144});
    spec["instances"][0]["copies_count"] = json!(2);
    spec
}

/// Runs, and judges what is left; answers how it ended and how many operations there were.
fn run(spec: &Value, mishap: &Mishap, label: &str) -> (RunOutcome, u64) {
    let disk = crate::support::constant(200_000);
    let stop = StopSignal::default();
    match mishap {
        Mishap::Nothing => {}
        Mishap::Stop(then) => {
            let stopping = stop.clone();
            disk.look_at_cuts(move |_| {
                stopping.stop();
                AfterLook::GoOn
            });
            disk.power_cut_at(*then);
        }
        Mishap::Failing { nth, kind, is_lasting } => {
            let mut rule = FaultRule::new(Effect::Fail(*kind)).nth(*nth);
            if *is_lasting {
                rule.limit = u64::MAX;
            }
            disk.inject(rule);
        }
    }
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let ((samples, rows), (events, told)) = (channel(), channel());
    let output = Output { samples, events };
    let outcome = execute(spec, disk.clock().clone(), disk.clone(), output, stop);
    let mut errors_told = 0;
    // Before the disk goes on: it may hold operations, but nobody whom a listener waits for.
    assert!(is_closed(&rows, drop), "{label}: somebody still holds the channel of samples");
    assert!(
        is_closed(&told, |event| {
            errors_told += u64::from(["io_error", "io_refused"].contains(&event.kind));
        }),
        "{label}: somebody still holds the channel of events"
    );
    let expected =
        u64::from(matches!(mishap, Mishap::Failing { .. }) && !disk.injected().is_empty());
    assert!(errors_told >= expected, "{label}: nobody was told of the error");
    let operations = disk.events() / 2;
    disk.clear_faults();
    nothing_is_left(&disk, label);
    (outcome, operations)
}

fn nothing_is_left(disk: &Rc<MemoryDisk>, label: &str) {
    while disk.in_flight() > 0 {
        let due = disk.next_event();
        let due = due.unwrap_or_else(|| panic!("{label}: {} operations hang", disk.in_flight()));
        disk.clock().advance_to(due.max(disk.clock().now()));
        disk.reap();
    }
    let held = (Rc::strong_count(disk), Rc::strong_count(disk.clock()));
    assert_eq!(held, (1, 1), "{label}: somebody still holds the disk or its clock");
    assert_eq!(disk.lent_bytes(), 0, "{label}: bytes that were lent have not come back");
}

fn is_closed<T>(receiver: &Receiver<T>, look: impl FnMut(T)) -> bool {
    receiver.try_iter().for_each(look);
    matches!(receiver.try_recv(), Err(TryRecvError::Disconnected))
}

/// The engine, raw files, and both behind a limit, which holds operations of its own.
fn specs() -> Vec<(String, Value)> {
    let mut specs = Vec::new();
    for backend in ["engine", "raw_files"] {
        specs.push((backend.to_owned(), spec(backend)));
        let mut spared = spec(backend);
        spared["max_iops"] = json!(2_000.0);
        specs.push((format!("{backend} behind a limit"), spared));
    }
    specs
}

#[test]
fn a_complete_run_leaves_nothing() {
    for (name, spec) in specs() {
        let (outcome, operations) = run(&spec, &Mishap::Nothing, &name);
        assert_eq!(outcome.ending, Ending::Complete, "{name}: {:?}", outcome.error);
        assert!(operations > 300, "{name}: {operations} operations show little");
    }
}

#[test]
fn a_stopped_run_leaves_nothing() {
    for (name, spec) in specs() {
        let mut interrupted = 0;
        for tenths in [0, 2, 5, 11] {
            let then = 1 + tenths * NANOS_PER_SECOND / 10 + 7 * NANOS_PER_MILLISECOND;
            let label = format!("{name}, stopped after {then} ns");
            let (outcome, _) = run(&spec, &Mishap::Stop(then), &label);
            interrupted += u64::from(outcome.ending == Ending::Interrupted);
        }
        assert!(interrupted > 1, "{name}: only {interrupted} runs were stopped");
    }
}

#[test]
fn a_run_with_a_failing_io_leaves_nothing() {
    for (name, spec) in specs() {
        let (_, operations) = run(&spec, &Mishap::Nothing, &name);
        let mut failed = 0;
        // Most of what opens and closes is near the ends.
        let places = (1..20).chain((20..operations).step_by(operations as usize / 12));
        for nth in places {
            let is_lasting = nth.is_multiple_of(2);
            let kind = KINDS[nth as usize / 2 % KINDS.len()];
            let label = format!("{name}, operation {nth} failing: {kind:?}");
            let mishap = Mishap::Failing { nth, kind, is_lasting };
            failed += u64::from(run(&spec, &mishap, &label).0.ending == Ending::Failed);
        }
        assert!(failed > 10, "{name}: only {failed} runs failed");
    }
}

/// The operations near both ends, where most of what opens and closes is, and of the many between
/// them as many again, each in one of the six ways; the very first in each.
#[test]
#[ignore = "slow: hundreds of operations fail; `make slow`"]
fn a_run_with_hundreds_of_ios_failing_leaves_nothing_and_tells() {
    let ways: Vec<_> = KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]).collect();
    for (name, spec) in specs() {
        let (_, operations) = run(&spec, &Mishap::Nothing, &name);
        let (mut runs, mut failed) = (0, 0);
        let between = (ENDS..operations - ENDS).step_by((operations / ENDS) as usize);
        for nth in (1..ENDS).chain(between).chain(operations - ENDS..=operations) {
            let every = if nth <= 40 { 1 } else { ways.len() as u64 };
            let chosen = (0..ways.len() as u64).filter(|way| (way + nth).is_multiple_of(every));
            for (kind, is_lasting) in chosen.map(|way| ways[way as usize]) {
                let label =
                    format!("{name}, operation {nth} failing: {kind:?}, lasting {is_lasting}");
                let mishap = Mishap::Failing { nth, kind, is_lasting };
                let (outcome, _) = run(&spec, &mishap, &label);
                failed += u64::from(outcome.ending == Ending::Failed);
                runs += 1;
            }
        }
        println!(
            "{name}: {operations} operations, {runs} runs, {failed} of them failed, all told of \
             the error"
        );
    }
}
