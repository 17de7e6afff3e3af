//! Passive copies with a lag: the log that they need stays, what is older goes, and the space that
//! it takes is in the samples.

use plimsoll_io::{DiskErrorKind, Effect, FaultRule, MemoryDisk, NANOS_PER_SECOND, OperationKind};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::Ending;
use serde_json::{Value, json};

use super::{MIB, memory, run_and_hear, run_on, spec};

/// Position of the measured phase in [`spec`].
const MEASURE: u32 = 2;

/// The main job for so long, with such copies.
fn with_copies(seconds: f64, copies: Value) -> Value {
    let mut spec = spec();
    spec["phases"][2]["action"]["duration_s"] = json!(seconds);
    spec["instances"][0]["copies_count"] = json!(1);
    spec["instances"][0]["lagged_copies"] = copies;
    spec
}

fn levels(rows: &[Row], metric: &str) -> Vec<f64> {
    let code = metric_code(metric).expect("a metric");
    let chosen = rows.iter().filter(|row| row.metric == code && row.phase == MEASURE);
    chosen.map(|row| row.value / MIB as f64).collect()
}

/// Generations in the directory of logs, the current one included.
fn generations_on(disk: &MemoryDisk) -> usize {
    let is_generation = |name: &str| name.starts_with("E00") && name.ends_with(".log");
    let files = disk.list_files();
    let names = files.iter().map(|(path, _)| path.file_name().expect("a name").to_string_lossy());
    names.filter(|name| is_generation(name) && name != "E00tmp.log").count()
}

/// ENG-23: a lag in logs keeps so many closed generations, however much is written, and the copy
/// with the longest lag decides.
#[test]
fn the_most_lagged_copy_decides_what_is_kept() {
    let copies = json!([{"name": "near", "lag_logs": 3}, {"name": "far", "lag_logs": 20}]);
    let (outcome, rows, told) = run_and_hear(&memory(), &with_copies(60.0, copies));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    assert_eq!(told.iter().filter(|kind| **kind == "lagged_copy_ended").count(), 2);
    let (space, lagged) = (levels(&rows, "log_space"), levels(&rows, "log_lagged"));
    let generations = levels(&rows, "log_generation");
    let written = (generations[generations.len() - 1] - generations[0]) * MIB as f64;
    assert!(written > 40.0, "{written} generations were written");
    // The current one, twenty closed ones, and what was written since the last look.
    let most = lagged.iter().copied().fold(0.0, f64::max);
    assert!((21.0..24.0).contains(&most), "{most} MiB are needed");
    let most = space.iter().copied().fold(0.0, f64::max);
    assert!((21.0..28.0).contains(&most), "{most} MiB are kept");
    assert!(space.iter().zip(&lagged).all(|(space, lagged)| space >= lagged), "{space:?}");
}

/// A lag in time keeps what was written in it: log grows until the lag has passed, and no further.
#[test]
fn a_lag_in_time_keeps_what_was_written_in_it() {
    let copies = json!([{"name": "far", "lag_s": 20.0}]);
    let (outcome, rows) = run_on(&memory(), &with_copies(80.0, copies));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let (space, lagged) = (levels(&rows, "log_space"), levels(&rows, "log_lagged"));
    let generations = levels(&rows, "log_generation");
    let last = generations.len() - 1;
    // A sample each half second: what was written in the last twenty seconds.
    let in_lag = (generations[last] - generations[last - 40]) * MIB as f64;
    assert!(in_lag > 10.0, "{in_lag} generations in the lag");
    let needed = lagged[last];
    assert!((in_lag..=in_lag + 3.0).contains(&needed), "{needed} MiB for a lag of {in_lag}");
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (early, middle, late) = (most(&space[..20]), most(&space[60..100]), most(&space[100..]));
    assert!(early < 0.8 * middle, "{early} MiB after ten seconds, {middle} MiB when full");
    assert!((0.8..1.25).contains(&(late / middle)), "{middle} MiB, and then {late} MiB");
}

/// Nobody needs log for a copy that was only there for the run; and without copies the log is as
/// short as before.
#[test]
fn a_clean_stop_lets_the_log_go() {
    let disk = memory();
    let mut plan = with_copies(40.0, json!([{"name": "far", "lag_logs": 1000}]));
    let (first, _) = run_on(&disk, &plan);
    let kept = generations_on(&disk);
    assert!(kept > 25, "{kept} generations are kept for a lag longer than the run");
    let records = first.phases[3].result.databases[0][0].records_ever;
    plan["instances"][0]["databases"][0]["existing_records"] = json!(records);
    plan["instances"][0]["lagged_copies"] = Value::Null;
    plan["phases"][2]["action"]["duration_s"] = json!(5.0);
    let (second, rows) = run_on(&disk, &plan);
    assert_eq!(second.ending, Ending::Complete, "{:?}", second.error);
    assert!(levels(&rows, "log_lagged").is_empty());
    let left = generations_on(&disk);
    assert!(left < 16, "{left} generations are left");
}

/// A copy is another machine: that the active one was killed is no reason to lose its log. The next
/// run that has the copy goes on with it.
#[test]
fn a_killed_run_keeps_the_log_of_its_copies() {
    let disk = memory();
    let mut plan = with_copies(5.0, json!([{"name": "far", "lag_logs": 1000}]));
    let (first, _) = run_on(&disk, &plan);
    let records = first.phases[3].result.databases[0][0].records_ever;
    plan["instances"][0]["databases"][0]["existing_records"] = json!(records);
    plan["phases"][2]["action"]["duration_s"] = json!(40.0);
    let gone_from = disk.clock().now() + 25 * NANOS_PER_SECOND;
    let refused = FaultRule::new(Effect::Fail(DiskErrorKind::Gone)).with_kind(OperationKind::Write);
    disk.inject(refused.between(gone_from, u64::MAX));
    assert_eq!(run_on(&disk, &plan).0.ending, Ending::Failed);
    disk.clear_faults();
    let killed = generations_on(&disk);
    assert!(killed > 15, "{killed} generations are there after the kill");
    plan["phases"][2]["action"]["duration_s"] = json!(5.0);
    let (third, rows) = run_on(&disk, &plan);
    assert_eq!(third.ending, Ending::Complete, "{:?}", third.error);
    let lagged = levels(&rows, "log_lagged");
    // The copy began with the run that was killed, a few generations after the first one there is.
    let least = lagged.iter().copied().fold(f64::MAX, f64::min);
    assert!(least > killed as f64 - 10.0, "{least} MiB of {killed} are still held");
}

/// What cannot be waited for is refused before anything is opened, in one sentence.
#[test]
fn lags_that_say_nothing_are_refused() {
    for (copies, expected) in [
        (json!([{"name": "a"}]), "give one of them, above zero"),
        (json!([{"name": "a", "lag_s": 0.0}]), "give one of them, above zero"),
        (json!([{"name": "a", "lag_s": 9.0, "lag_logs": 9}]), "give one of them, above zero"),
        (
            json!([{"name": "a", "lag_s": 9.0}, {"name": "a", "lag_logs": 9}]),
            "two lagged copies are called a; rename one",
        ),
    ] {
        let (outcome, _) = run_on(&memory(), &with_copies(1.0, copies));
        let text = outcome.error.expect("a reason").text;
        assert!(text.contains(expected), "{text}");
    }
}
