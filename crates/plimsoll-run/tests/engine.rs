//! A whole run of the engine on a disk in memory and in virtual time: the main job without a user's disk.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{Clock, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Random, Tracking};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

fn spec() -> Value {
    let database = json!({
        "file_name": "database001.edb", "size_bytes": 24 * MIB, "seed": 5, "record_bytes": 2164,
        "compressible_percent": 0, "existing_records": null
    });
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 500, "hung_after_ms": 30000, "io_method": "auto",
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "engine", "directory": "/data/one", "log_directory": "/data/one",
            "page_bytes": 32768, "databases": [database], "cache_bytes_min": MIB, "cache_bytes_max": 4 * MIB,
            "checkpoint_depth_bytes": 4 * MIB, "circular_log": true, "log_framing": "sector_512", "page_images": false,
            "copies_count": 2, "maintenance": {"throttle_ms": 20, "read_bytes": 262144},
            "log_buffer_bytes": MIB, "version_store_bytes_max": 16 * MIB, "extension_pages": 256,
            "waypoint_generations": 0, "writes_outstanding_max": 32
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "sluggish": 1.0, "load": {"sessions": 3, "shared": false},
            "mix": {"insert_percent": 40, "delete_percent": 20, "replace_percent": 5, "read_percent": 35,
                    "lazy_commit_percent": 70}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 90, "timeout_s": 60.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": 10.0}, "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
            {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536, "reads_in_flight": 8}, "workloads": []}
        ]
    })
}

fn memory() -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(1_000_000)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

fn run_on(disk: &Rc<MemoryDisk>, spec: &Value) -> (RunOutcome, Vec<Row>) {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let output = Output { samples, events };
    let outcome = execute(
        spec,
        disk.clock().clone(),
        disk.clone(),
        output,
        StopSignal::default(),
    );
    (outcome, rows.into_iter().flatten().collect())
}

fn count(rows: &[Row], phase: u32, metric: &str) -> u64 {
    let code = metric_code(metric).expect("a metric");
    let chosen = rows.iter().filter(|row| row.metric == code && row.phase == phase);
    chosen.map(|row| row.count).sum()
}

/// The main job: prepared, warmed, measured, closed, and every page of what is left sound.
#[test]
fn the_main_job_runs_and_leaves_sound_databases() {
    let (outcome, rows) = run_on(&memory(), &spec());
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let operations: Vec<u64> = ["insert", "delete", "replace", "read"]
        .map(|kind| count(&rows, 2, kind))
        .into();
    assert!(operations.iter().all(|count| *count > 20), "{operations:?}");
    assert!(count(&rows, 2, "database_read") > 100);
    assert!(count(&rows, 2, "database_write") > 100);
    // Nearly three commits in ten wait for the log; a flush may carry more than one, and lazy ones fill buffers.
    let total: u64 = operations.iter().sum();
    let updates = total - operations[3];
    let flushes = count(&rows, 2, "log_write");
    assert!(
        (updates / 10..=updates).contains(&flushes),
        "{flushes} log writes for {updates} updates"
    );
    assert!(count(&rows, 2, "maintenance") > 100, "a read each 20 ms or so");
    assert!(
        count(&rows, 2, "log_replication") > 0,
        "the second copy reads the log back"
    );
    let checksum = &outcome.phases[4].result.checksums[0].report;
    assert_eq!(
        (checksum.bad, checksum.correctable, checksum.wrong_page_number),
        (0, 0, 0)
    );
    assert!(checksum.pages_seen > 700);
}

/// Waiting for a full cache is a prerequisite of the published test; a run that cannot fill it must say so and stop.
#[test]
fn a_cache_that_does_not_fill_ends_the_run_with_advice() {
    let mut cold = spec();
    cold["phases"][1]["action"]["timeout_s"] = json!(0.2);
    cold["instances"][0]["cache_bytes_max"] = json!(20 * MIB);
    let (outcome, _) = run_on(&memory(), &cold);
    assert_eq!(outcome.ending, Ending::Failed);
    let text = outcome.error.expect("a reason").text;
    assert!(text.contains("give the warm-up more time"), "{text}");
    assert_eq!(
        outcome.phases.last().expect("a phase").kind,
        "stop",
        "what was open is closed"
    );
    assert!(outcome.phases.last().expect("a phase").complete);
}

/// Databases are used again: the second run must find what the first one wrote, record by record, and go on from there.
#[test]
fn a_second_run_goes_on_where_the_first_one_stopped() {
    let disk = memory();
    let (first, _) = run_on(&disk, &spec());
    let records = first.phases[3].result.databases[0][0].records_ever;
    let mut again = spec();
    again["instances"][0]["databases"][0]["existing_records"] = json!(records);
    again["seed"] = json!(2);
    let (second, rows) = run_on(&disk, &again);
    assert_eq!(second.ending, Ending::Complete, "{:?}", second.error);
    assert!(count(&rows, 0, "prepare") == 0, "nothing is prepared twice");
    assert!(second.phases[3].result.databases[0][0].records_ever > records);
}

/// Content is checked, not only checksums: a database of another seed is sound in itself and still the wrong one.
#[test]
fn records_that_are_not_what_was_written_end_the_run() {
    let disk = memory();
    let mut prepare = spec();
    prepare["phases"] = json!([spec()["phases"][0], spec()["phases"][3]]);
    let (prepared, _) = run_on(&disk, &prepare);
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    let mut other = spec();
    other["instances"][0]["databases"][0]["existing_records"] = json!(records);
    other["instances"][0]["databases"][0]["seed"] = json!(6);
    let (outcome, _) = run_on(&disk, &other);
    assert_eq!(outcome.ending, Ending::Failed);
    let error = outcome.error.expect("a reason");
    assert_eq!(error.family, "corruption", "{}", error.text);
    assert!(error.text.contains("is not what was written"), "{}", error.text);
}

/// A simulated run is a pure function of its plan and seed: without that no failure could be replayed.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (first, second) = (memory(), memory());
    let mut short = spec();
    short["phases"][2]["action"]["duration_s"] = json!(3.0);
    let (_, first_rows) = run_on(&first, &short);
    let (_, second_rows) = run_on(&second, &short);
    assert_eq!(first_rows, second_rows);
    let path = Path::new("/data/one/database001.edb");
    assert!(first.bytes(path) == second.bytes(path), "the databases differ");
}
