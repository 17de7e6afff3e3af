//! A whole run over raw files, on a disk in memory and in virtual time: what a user gets, without a
//! user's disk.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, channel};

use plimsoll_io::{
    Clock, Disk, Effect, FaultRule, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Purpose,
    Random, Tracking,
};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Event, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

const PAGE_BYTES: u64 = 32768;

fn spec() -> Value {
    let database = json!({
        "file_name": "raw1.dat", "size_bytes": 512 * PAGE_BYTES, "seed": 9, "record_bytes": 2000,
        "compressible_percent": 0, "existing_records": null
    });
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 1000, "hung_after_ms": 30000,
            "io_method": "auto",
        "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "raw_files", "directory": "/data/one",
                "log_directory": "/data/one",
            "unfinished": false,
            "page_bytes": PAGE_BYTES, "databases": [database], "cache_bytes_min": 0,
                "cache_bytes_max": 0,
            "checkpoint_depth_bytes": 0, "circular_log": true, "log_framing": "sector_512",
            "page_images": false, "copies_count": 1, "maintenance": null,
            "log_buffer_bytes": 0, "version_store_bytes_max": 0, "extension_pages": 0,
            "waypoint_generations": 0, "writes_outstanding_max": 0
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "sluggish": 0.0, "load": {"sessions": 3,
                "shared": false},
            "mix": {"insert_percent": 40, "delete_percent": 20, "replace_percent": 5,
                "read_percent": 35,
                    "lazy_commit_percent": 70}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 90,
                "timeout_s": 5.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": 10.0},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
            {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
                "reads_in_flight": 8}, "workloads": []}
        ]
    })
}

struct Ran {
    outcome: RunOutcome,
    rows: Vec<Row>,
    events: Vec<Event>,
}

fn run_on(disk: &Rc<MemoryDisk>, spec: &Value, stop: &StopSignal) -> Ran {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, told) = channel();
    let output = Output { samples, events };
    let outcome = execute(spec, disk.clock().clone(), disk.clone(), output, stop.clone());
    Ran { outcome, rows: rows.try_iter().flatten().collect(), events: told.try_iter().collect() }
}

fn disk_of(latency_ns: u64) -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(latency_ns)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

fn total(rows: &[Row], phase: u32, metric: &str) -> (u64, u64) {
    let code = metric_code(metric).expect("a metric");
    let chosen = rows.iter().filter(|row| row.metric == code && row.phase == phase);
    chosen.fold((0, 0), |(count, sum), row| (count + row.count, sum + row.latency_ns_sum))
}

/// The figures must be the disk's own: with every I/O at exactly 1 ms, counts and latencies can be
/// computed by hand.
#[test]
fn a_run_measures_what_the_disk_does() {
    let ran = run_on(&disk_of(1_000_000), &spec(), &StopSignal::default());
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let kinds: Vec<&str> = ran.outcome.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, ["prepare", "warm_up", "measure", "stop", "checksum"]);

    let (reads, read_ns) = total(&ran.rows, 2, "database_read");
    let (writes, _) = total(&ran.rows, 2, "database_write");
    let (flushes, flush_ns) = total(&ran.rows, 2, "log_write");
    assert_eq!(read_ns, reads * 1_000_000);
    assert_eq!(flush_ns, flushes * 1_000_000);
    // Three sessions that never rest keep three I/Os in flight: 30000 in ten seconds, less what
    // boundaries cost.
    assert!((29_900..=30_010).contains(&(reads + writes + flushes)), "{reads} {writes} {flushes}");
    let operations: u64 = ["insert", "delete", "replace", "read"]
        .iter()
        .map(|kind| total(&ran.rows, 2, kind).0)
        .sum();
    let non_inserts = operations - total(&ran.rows, 2, "insert").0;
    assert!(
        reads.abs_diff(non_inserts) <= 4,
        "every operation but an insert reads once: {reads} {non_inserts}"
    );
    let share = flushes as f64 / operations as f64;
    assert!((share - 0.3).abs() < 0.02, "three commits in ten are durable: {share}");
}

/// Samples are judged; what they add up to must be what the distributions of the phase say.
#[test]
fn samples_and_distributions_agree() {
    let ran = run_on(&disk_of(700_000), &spec(), &StopSignal::default());
    for figures in ran.outcome.figures.iter().filter(|figures| figures.count > 0) {
        let code = metric_code(figures.metric).expect("a metric");
        let rows = ran.rows.iter().filter(|row| {
            (row.phase, row.instance, row.database, row.workload, row.metric)
                == (figures.phase, figures.instance, figures.database, figures.workload, code)
        });
        let (count, sum) =
            rows.fold((0, 0), |(count, sum), row| (count + row.count, sum + row.latency_ns_sum));
        assert_eq!(
            (count, sum),
            (figures.count, figures.latency_ns_sum),
            "{} in phase {}",
            figures.metric,
            figures.phase
        );
        assert_eq!(
            figures.buckets.iter().map(|(_, count)| count).sum::<u64>(),
            figures.count,
            "{}",
            figures.metric
        );
    }
    assert!(
        ran.outcome
            .figures
            .iter()
            .any(|figures| figures.metric == "log_write" && figures.phase == 2)
    );
}

/// A fault can only be replayed if the same seed gives the same run, sample by sample.
#[test]
fn the_same_seed_gives_the_same_run() {
    let first = run_on(&disk_of(900_000), &spec(), &StopSignal::default());
    let again = run_on(&disk_of(900_000), &spec(), &StopSignal::default());
    assert_eq!(first.rows, again.rows);
    let mut other = spec();
    other["seed"] = json!(2);
    let other = run_on(&disk_of(900_000), &other, &StopSignal::default());
    assert_ne!(first.rows, other.rows);
}

/// An old page has a right checksum: only who knows what was written last sees that a write was
/// lost.
#[test]
fn a_lost_write_is_seen_when_its_page_is_read() {
    let disk = disk_of(100_000);
    let lost = FaultRule::new(Effect::LoseWrite).with_purpose(Purpose::DatabaseWrite);
    disk.inject(lost.with_probability(0.05));
    let ran = run_on(&disk, &spec(), &StopSignal::default());
    let error = ran.outcome.error.expect("the run ends with what it found");
    let error = format!("{error:?}");
    assert!(error.contains("/data/one/raw1.dat") && error.contains("was acknowledged"), "{error}");
}

/// A load that only writes reads nothing back, and an old page has a right checksum.
#[test]
fn a_lost_write_that_nothing_read_is_found_by_the_checksum_phase() {
    let disk = disk_of(100_000);
    let lost = FaultRule::new(Effect::LoseWrite).with_purpose(Purpose::DatabaseWrite);
    disk.inject(lost.with_probability(0.05));
    let mut writes = spec();
    writes["workloads"][0]["mix"] = json!({"insert_percent": 100, "delete_percent": 0,
        "replace_percent": 0, "read_percent": 0, "lazy_commit_percent": 70});
    let ran = run_on(&disk, &writes, &StopSignal::default());
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let found = &ran.outcome.phases[4].result.checksums[0].report;
    assert!((1..=100).contains(&found.bad), "{} pages", found.bad);
    assert!(found.reasons[0].contains("a lost or stale write"), "{:?}", found.reasons);
}

/// Damage after a clean stop must be found by the checksum phase of a later run, not only by luck
/// of a read.
#[test]
fn the_checksum_phase_finds_damage() {
    let disk = disk_of(100_000);
    let mut prepare = spec();
    prepare["phases"] = json!([
        {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
        {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
    ]);
    assert_eq!(run_on(&disk, &prepare, &StopSignal::default()).outcome.ending, Ending::Complete);

    let mut bytes = disk.bytes("/data/one/raw1.dat").expect("the file was prepared");
    let page = PAGE_BYTES as usize;
    bytes[100 * page + 5000] ^= 1;
    let (seventh, eighth) = (7 * page..8 * page, 8 * page..9 * page);
    bytes.copy_within(seventh, eighth.start);
    bytes[eighth.end..eighth.end + page].fill(0);
    disk.load(Path::new("/data/one/raw1.dat"), &bytes);

    let mut check = spec();
    check["phases"] = json!([spec()["phases"][4]]);
    let ran = run_on(&disk, &check, &StopSignal::default());
    assert_eq!(
        ran.outcome.ending,
        Ending::Complete,
        "damage is a finding, not an error of the run"
    );
    let found = &ran.outcome.phases[0].result.checksums[0].report;
    assert_eq!(
        (found.pages_seen, found.bad, found.wrong_page_number, found.uninitialized),
        (512, 1, 1, 1)
    );
    assert!(ran.events.iter().any(|event| event.kind == "bad_pages"));
}

/// Ctrl-C must leave closed files and a partial result, not a torn one and none.
#[test]
fn a_stop_ends_the_run_cleanly() {
    let stop = StopSignal::default();
    stop.stop();
    let ran = run_on(&disk_of(1_000_000), &spec(), &stop);
    assert_eq!(ran.outcome.ending, Ending::Interrupted);
    assert!(!ran.outcome.phases[0].complete);
    assert_eq!(ran.outcome.error.expect("a reason").family, "stopped");
}

/// Who collects a run's samples waits until the last sender is gone. What the run leaves on the
/// disk's queue when it ends, files closed because their tasks were dropped among it, must not hold
/// the senders: the collector would wait for ever.
#[test]
fn a_stopped_run_lets_go_of_its_channels_while_the_disk_goes_on() {
    let (stop, disk) = (StopSignal::default(), disk_of(1_000_000));
    stop.stop();
    let spec = RunSpec::from_json(&spec().to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, told) = channel();
    execute(spec, disk.clock().clone(), disk.clone(), Output { samples, events }, stop);
    assert!(
        disk.in_flight() > 0,
        "the stop left a file to be closed: without it this proves nothing"
    );
    let patience = std::time::Duration::from_secs(5);
    let ended = |error| assert_eq!(error, RecvTimeoutError::Disconnected);
    std::iter::repeat_with(|| rows.recv_timeout(patience)).find_map(Result::err).map(ended);
    std::iter::repeat_with(|| told.recv_timeout(patience)).find_map(Result::err).map(ended);
}

/// A disk that is full in the middle must end the run with its error, and everything else must
/// still be closed; it did nothing wrong.
#[test]
fn a_full_disk_ends_the_run_and_is_not_accused() {
    let options = MemoryOptions { capacity_bytes: Some(4 << 20), ..MemoryOptions::default() };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    let ran = run_on(&disk, &spec(), &StopSignal::default());
    assert_eq!(ran.outcome.ending, Ending::Failed);
    let error = ran.outcome.error.expect("a reason");
    assert_eq!(error.family, "config");
    assert!(error.text.contains("no space left"), "{}", error.text);
    assert!(ran.events.iter().any(|event| event.kind == "run_ended_early"));
    let kinds: Vec<&str> = ran.events.iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&"io_refused") && !kinds.contains(&"io_error"), "{kinds:?}");
    let errors: u64 = ran.rows.iter().map(|row| row.errors).sum();
    assert_eq!(
        errors, 0,
        "neither want of room nor files that were looked for in vain are errors of the storage"
    );
}

/// A plan of a later version must not run as something else.
#[test]
fn unknown_keys_and_impossible_values_are_refused() {
    let mut unknown = spec();
    unknown["surprise"] = json!(1);
    let mut mix = spec();
    mix["workloads"][0]["mix"]["read_percent"] = json!(36);
    let mut page = spec();
    page["instances"][0]["page_bytes"] = json!(5000);
    let mut version = spec();
    version["schema_version"] = json!(2);
    for (broken, word) in
        [(unknown, "surprise"), (mix, "101"), (page, "5000"), (version, "schema_version")]
    {
        let error = RunSpec::from_json(&broken.to_string()).expect_err("it is wrong");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.family(), "config");
    }
}

/// An I/O that hangs must be in the log before it completes, once, and in the figures.
#[test]
fn hanging_io_is_reported_before_it_completes() {
    let minute = Latency::Constant(60_000_000_000);
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(1000)).with_purpose(Purpose::LogWrite, minute),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    let mut short = spec();
    short["sample_interval_ms"] = json!(5000);
    let ran = run_on(&disk, &short, &StopSignal::default());
    let hung: Vec<_> = ran.events.iter().filter(|event| event.kind == "hung_io").collect();
    assert_eq!(hung.len(), 3, "each of three sessions hangs in its first durable commit");
    assert!(hung[0].text.contains("/data/one/raw.log"), "{}", hung[0].text);
    assert!(hung.iter().all(|event| (30..45).contains(&(event.time_ns / 1_000_000_000))));
    // They are found while sessions finish after the time of the measured phase, which has rows of
    // its own.
    let counted: u64 = (0..=6).map(|phase| total(&ran.rows, phase, "hung").0).sum();
    assert_eq!(counted, 3);
}
