//! A whole run of the engine on a disk in memory and in virtual time: the main job without a user's
//! disk.

#[path = "../load/support.rs"]
#[expect(dead_code, reason = "each program uses its part of the support")]
mod support;

mod capabilities;
mod figures;
mod invariants;
mod lagged;
mod modelled;
mod node_chains;
mod nodes;
mod nothing_left;
mod other_tests;

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Nanos, Random,
    Tracking,
};
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
        "schema_version": 1, "seed": 1, "sample_interval_ms": 500, "hung_after_ms": 30000,
            "io_method": "auto",
        "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "engine", "directory": "/data/one",
                "log_directory": "/data/one",
            "unfinished": false,
            "page_bytes": 32768, "databases": [database], "cache_bytes_min": MIB,
                "cache_bytes_max": 4 * MIB,
            "checkpoint_depth_bytes": 4 * MIB, "circular_log": true, "log_framing": "sector_512",
                "page_images": false,
            "copies_count": 2, "maintenance": {"throttle_ms": 20, "read_bytes": 262144},
            "log_buffer_bytes": MIB, "version_store_bytes_max": 16 * MIB, "extension_pages": 256,
            "waypoint_generations": 0, "writes_outstanding_max": 32
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "sluggish": 1.0, "load": {"sessions": 3,
                "shared": false},
            "mix": {"insert_percent": 40, "delete_percent": 20, "replace_percent": 5,
                "read_percent": 35,
                    "lazy_commit_percent": 70}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 90,
                "timeout_s": 60.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": 10.0},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
            {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
                "reads_in_flight": 8}, "workloads": []}
        ]
    })
}

fn memory() -> Rc<MemoryDisk> {
    memory_with(1_000_000)
}

fn memory_with(latency_ns: Nanos) -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(latency_ns)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

fn run_on(disk: &Rc<MemoryDisk>, spec: &Value) -> (RunOutcome, Vec<Row>) {
    let (outcome, rows, _) = run_and_hear(disk, spec);
    (outcome, rows)
}

/// The same, with the kinds of all events.
fn run_and_hear(disk: &Rc<MemoryDisk>, spec: &Value) -> (RunOutcome, Vec<Row>, Vec<&'static str>) {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, told) = channel();
    let output = Output { samples, events };
    let outcome = execute(spec, disk.clock().clone(), disk.clone(), output, StopSignal::default());
    // A run that failed may leave its end of the channel open.
    let kinds = told.try_iter().map(|event| event.kind).collect();
    (outcome, rows.try_iter().flatten().collect(), kinds)
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
    let operations: Vec<u64> =
        ["insert", "delete", "replace", "read"].map(|kind| count(&rows, 2, kind)).into();
    assert!(operations.iter().all(|count| *count > 20), "{operations:?}");
    assert!(count(&rows, 2, "database_read") > 100);
    assert!(count(&rows, 2, "database_write") > 100);
    // Nearly three commits in ten wait for the log; a flush may carry more than one, and lazy ones
    // fill buffers.
    let total: u64 = operations.iter().sum();
    let updates = total - operations[3];
    let flushes = count(&rows, 2, "log_write");
    assert!(
        (updates / 10..=updates).contains(&flushes),
        "{flushes} log writes for {updates} updates"
    );
    assert!(count(&rows, 2, "maintenance") > 100, "a read each 20 ms or so");
    assert!(count(&rows, 2, "log_replication") > 0, "the second copy reads the log back");
    let checksum = &outcome.phases[4].result.checksums[0].report;
    assert_eq!((checksum.bad, checksum.correctable, checksum.wrong_page_number), (0, 0, 0));
    assert!(checksum.pages_seen > 700);
}

/// Waiting for a full cache is a prerequisite of the published test; a run that cannot fill it must
/// say so and stop.
#[test]
fn a_cache_that_does_not_fill_ends_the_run_with_advice() {
    let mut cold = spec();
    cold["phases"][1]["action"]["timeout_s"] = json!(0.2);
    cold["instances"][0]["cache_bytes_max"] = json!(20 * MIB);
    let (outcome, _) = run_on(&memory(), &cold);
    assert_eq!(outcome.ending, Ending::Failed);
    let text = outcome.error.expect("a reason").text;
    assert!(text.contains("give the warm-up more time"), "{text}");
    assert_eq!(outcome.phases.last().expect("a phase").kind, "stop", "what was open is closed");
    assert!(outcome.phases.last().expect("a phase").complete);
}

/// Databases are used again: the second run must find what the first one wrote, record by record,
/// and go on from there.
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

/// Why: a database that was used before killed every later run with "a row with this key exists
/// already". Numbers of new records are handed out before their transactions are due, and some are
/// never used: those in the data are not counted but looked at.
#[test]
fn databases_are_used_again_after_arrivals_that_were_dropped() {
    let disk = memory_with(20_000_000);
    let mut again = spec();
    again["phases"][1]["action"]["cache_percent"] = json!(1);
    again["phases"][2]["action"]["duration_s"] = json!(3.0);
    // A target calibrates: its rate changes while it runs, and an arrival that was drawn before is
    // not served after.
    again["workloads"][0]["load"] = json!({
        "target_iops": 150.0, "spacing": "poisson", "sessions_max": 30,
            "io_per_transaction_assumed": 1.0, "calibrate_s": 5.0
    });
    for run in 0..6 {
        again["seed"] = json!(run + 1);
        let (outcome, rows) = run_on(&disk, &again);
        assert_eq!(outcome.ending, Ending::Complete, "run {run}: {:?}", outcome.error);
        assert!(count(&rows, 2, "insert") > 20, "run {run} inserts something");
        let records = outcome.phases[3].result.databases[0][0].records_ever;
        again["instances"][0]["databases"][0]["existing_records"] = json!(records);
    }
    // A marker of version 0.1 counted inserts, and says less than there is.
    let records = again["instances"][0]["databases"][0]["existing_records"].as_u64();
    again["instances"][0]["databases"][0]["existing_records"] =
        json!(records.map(|records| records - 100));
    let (outcome, _) = run_on(&disk, &again);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    assert!(Some(outcome.phases[3].result.databases[0][0].records_ever) > records);
}

/// Content is checked, not only checksums: the database is sound in itself, and what it holds is
/// not what was asked for.
#[test]
fn records_that_are_not_what_was_written_end_the_run() {
    let disk = memory();
    let mut prepare = spec();
    prepare["phases"] = json!([spec()["phases"][0], spec()["phases"][3]]);
    let (prepared, _) = run_on(&disk, &prepare);
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    // The header of the one that is wanted, the pages of another.
    let path = Path::new("/data/one/database001.edb");
    let elsewhere = memory();
    prepare["instances"][0]["databases"][0]["seed"] = json!(6);
    run_on(&elsewhere, &prepare);
    let mut mixed = elsewhere.bytes(path).expect("it is there");
    mixed[..2 * 32768].copy_from_slice(&disk.bytes(path).expect("it is there")[..2 * 32768]);
    disk.load(path, &mixed);
    let mut other = spec();
    other["instances"][0]["databases"][0]["existing_records"] = json!(records);
    let (outcome, _) = run_on(&disk, &other);
    assert_eq!(outcome.ending, Ending::Failed);
    let error = outcome.error.expect("a reason");
    assert_eq!(error.family, "corruption", "{}", error.text);
    assert!(error.text.contains("is not what was written"), "{}", error.text);
}

/// A database of another seed, page size or owner must not be changed by a single byte before that
/// is known.
#[test]
fn another_database_is_refused_untouched() {
    let disk = memory();
    let mut prepare = spec();
    prepare["phases"] = json!([spec()["phases"][0], spec()["phases"][3]]);
    let (prepared, _) = run_on(&disk, &prepare);
    let records = prepared.phases[1].result.databases[0][0].records_ever;
    let path = Path::new("/data/one/database001.edb");
    let before = disk.bytes(path);
    for (place, key, value, phrase) in [
        ("database", "seed", json!(6), "another seed"),
        ("instance", "page_bytes", json!(8192), "pages have"),
    ] {
        for unfinished in [false, true] {
            let mut other = spec();
            let instance = &mut other["instances"][0];
            instance["unfinished"] = json!(unfinished);
            if !unfinished {
                instance["databases"][0]["existing_records"] = json!(records);
            }
            match place {
                "database" => instance["databases"][0][key] = value.clone(),
                _ => instance[key] = value.clone(),
            }
            let (outcome, _) = run_on(&disk, &other);
            let error = outcome.error.expect("a reason");
            assert_eq!(error.family, "config", "{}", error.text);
            assert!(error.text.contains(phrase), "{}", error.text);
            assert!(error.text.contains("plimsoll clean"), "{}", error.text);
        }
    }
    assert!(disk.bytes(path) == before, "the other database was changed");
}

/// Preparing a terabyte may be interrupted; what it began is ours, is no database yet, and is made
/// anew without complaint.
#[test]
fn a_begun_database_is_made_anew_and_a_whole_one_is_used() {
    let mut prepare = spec();
    prepare["phases"] = json!([spec()["phases"][0], spec()["phases"][3]]);
    let path = Path::new("/data/one/database001.edb");
    let disk = memory();
    disk.load(path, &vec![0; MIB as usize]);
    let (refused, _) = run_on(&disk, &prepare);
    assert_eq!(refused.ending, Ending::Failed, "nobody said that it may be there");
    prepare["instances"][0]["unfinished"] = json!(true);
    let (anew, rows) = run_on(&disk, &prepare);
    assert_eq!(anew.ending, Ending::Complete, "{:?}", anew.error);
    assert!(count(&rows, 0, "prepare") > 0);
    let (again, rows) = run_on(&disk, &prepare);
    assert_eq!(again.ending, Ending::Complete, "{:?}", again.error);
    assert_eq!(count(&rows, 0, "prepare"), 0, "it is whole and must be used");
    let records = |outcome: &RunOutcome| outcome.phases[1].result.databases[0][0].records_ever;
    assert_eq!(records(&again), records(&anew));
    // A database whose headers are damaged is a finding, not something to overwrite.
    let mut bytes = disk.bytes(path).expect("it is there");
    bytes[..64 * 1024].fill(0xA5);
    disk.load(path, &bytes);
    let (damaged, _) = run_on(&disk, &prepare);
    assert_eq!(damaged.error.expect("a reason").family, "corruption");
    assert!(disk.bytes(path) == Some(bytes), "evidence was destroyed");
}

/// A crash in the middle of measuring costs nobody the hours that preparing took: the next run
/// recovers and goes on.
#[test]
fn a_crashed_run_is_recovered_by_the_next() {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(1_000_000)),
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    // Preparing takes less than a second of this disk's time, measuring ten. What is written then
    // is at risk.
    disk.remove_at(6 * NANOS_PER_SECOND);
    let (cut, rows) = run_on(&disk, &spec());
    assert_eq!(cut.ending, Ending::Failed, "the disk went away");
    assert!(count(&rows, 2, "database_write") > 0, "it was cut too early to matter");
    // Writes are lost but not torn: a torn page would need page images.
    let lost = Loss::Chance { survival: 0.5, tearing: 0.0 };
    let after = disk.crash_image(lost, &mut Random::from_seed(3));
    let mut next = spec();
    next["instances"][0]["unfinished"] = json!(true);
    let (samples, _rows) = channel();
    let (events, told) = channel();
    let output = Output { samples, events };
    let next = RunSpec::from_json(&next.to_string()).expect("the spec is right");
    let recovered =
        execute(next, after.clock().clone(), after.clone(), output, StopSignal::default());
    assert_eq!(recovered.ending, Ending::Complete, "{:?}", recovered.error);
    assert!(told.try_iter().any(|event| event.kind == "recovered"));
    let checksum = &recovered.phases[4].result.checksums[0].report;
    assert_eq!((checksum.bad, checksum.wrong_page_number), (0, 0));
}

/// On an array that others use, a ceiling bounds what the test takes; the time spent waiting for it
/// is not the disk's.
#[test]
fn a_ceiling_bounds_the_load_and_not_the_latency() {
    let mut spared = spec();
    spared["max_iops"] = json!(200.0);
    spared["phases"][1]["action"]["cache_percent"] = json!(10);
    let (outcome, rows) = run_on(&memory(), &spared);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    assert!(outcome.io_remarks.iter().any(|remark| remark.contains("throttled on purpose")));
    let transfers = [
        "database_read",
        "database_write",
        "log_write",
        "log_format",
        "log_replication",
        "maintenance",
    ];
    let total: u64 = transfers.iter().map(|metric| count(&rows, 2, metric)).sum();
    assert!((1000..=2050).contains(&total), "{total} transfers in ten seconds");
    let code = metric_code("database_read").expect("a metric");
    let reads = rows.iter().filter(|row| row.metric == code && row.phase == 2 && row.count > 0);
    let longest_ns = reads.map(|row| row.latency_ns_max).max().expect("there were reads");
    assert_eq!(
        longest_ns, 1_000_000,
        "the disk answers after a millisecond, however long it was spared"
    );
}

/// A simulated run is a pure function of its plan and seed: without that no failure could be
/// replayed.
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
