//! Where the time of a transaction went, and what the machine did beside it: the stamps that a
//! verdict names the guilty by.

#![expect(clippy::disallowed_methods, reason = "a run on real files")]

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, Disk, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Purpose, Random, RealDisk,
    RealDiskOptions, ThrottleLimits, Throttled, Tracking,
};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

const PAGE_BYTES: u64 = 32768;
const MILLISECOND: u64 = 1_000_000;

fn spec(directory: &str, seconds: f64) -> Value {
    let database = json!({
        "file_name": "raw1.dat", "size_bytes": 512 * PAGE_BYTES, "seed": 9, "record_bytes": 2000,
        "compressible_percent": 0, "existing_records": null
    });
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 500, "hung_after_ms": 30000,
            "io_method": "auto", "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": directory}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "raw_files", "unfinished": false,
                "directory": directory, "log_directory": directory,
            "page_bytes": PAGE_BYTES, "databases": [database], "cache_bytes_min": 0,
                "cache_bytes_max": 0,
            "checkpoint_depth_bytes": 0, "circular_log": true, "log_framing": "sector_512",
            "page_images": false, "copies_count": 1, "maintenance": null,
            "log_buffer_bytes": 0, "version_store_bytes_max": 0, "extension_pages": 0,
            "waypoint_generations": 0, "writes_outstanding_max": 0
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "sluggish": 0.0, "load": {"sessions": 1,
                "shared": false},
            "mix": {"insert_percent": 0, "delete_percent": 0, "replace_percent": 0,
                "read_percent": 100,
                    "lazy_commit_percent": 0}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "measure", "action": {"kind": "measure", "duration_s": seconds},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    })
}

fn run_on(clock: &Rc<Clock>, disk: Rc<dyn Disk>, spec: &Value) -> (RunOutcome, Vec<Row>) {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let output = Output { samples, events };
    let outcome = execute(spec, clock.clone(), disk, output, StopSignal::default());
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    (outcome, rows.try_iter().flatten().collect())
}

fn simulated(plan: LatencyPlan) -> (RunOutcome, Vec<Row>) {
    let options =
        MemoryOptions { latency: plan, tracking: Tracking::Nothing, ..MemoryOptions::default() };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data");
    let clock = disk.clock().clone();
    run_on(&clock, disk, &spec("/data", 10.0))
}

fn rows<'a>(rows: &'a [Row], metric: &str) -> Vec<&'a Row> {
    let code = metric_code(metric).expect("a metric");
    rows.iter().filter(|row| row.metric == code && row.phase == 1).collect()
}

/// With page reads of 2 ms and log writes of 7 ms, every transaction takes 9 ms and its stamps must
/// say so exactly: a stall whose parts do not add up would accuse the wrong layer.
#[test]
fn the_stamps_of_a_stall_split_its_time() {
    let plan = LatencyPlan::of(Latency::Constant(2 * MILLISECOND))
        .with_purpose(Purpose::LogWrite, Latency::Constant(7 * MILLISECOND));
    let (outcome, samples) = simulated(plan);
    let stalls: Vec<_> = outcome.stalls.iter().filter(|stall| stall.phase == 1).collect();
    assert_eq!(stalls.len(), 10, "the ten longest, from twenty samples");
    for stall in stalls {
        assert_eq!(stall.commit_begun_ns - stall.begun_ns, 2 * MILLISECOND);
        assert_eq!(stall.finished_ns - stall.commit_begun_ns, 7 * MILLISECOND);
        let page = stall.page_io.expect("the read of its page");
        assert_eq!(
            (page.purpose, page.asked_ns, page.completed_ns),
            ("database_read", stall.begun_ns, stall.commit_begun_ns)
        );
        let log = stall.log_io.expect("the flush of its commit");
        assert_eq!((log.purpose, log.completed_ns), ("log_write", stall.finished_ns));
    }
    let waits = rows(&samples, "log_flush_wait");
    let (count, total) = waits
        .iter()
        .fold((0, 0), |(count, sum), row| (count + row.count, sum + row.latency_ns_sum));
    assert_eq!(total, count * 7 * MILLISECOND);
    assert!(count > 1000, "{count}");
    assert!(outcome.stalls.is_sorted_by_key(|stall| (
        stall.phase,
        std::cmp::Reverse(stall.finished_ns - stall.begun_ns)
    )));
}

/// A simulated run has no machine: rows about one would differ from run to run.
#[test]
fn a_simulated_run_says_nothing_of_the_machine() {
    let (outcome, samples) = simulated(LatencyPlan::of(Latency::Constant(MILLISECOND)));
    assert!(outcome.devices.is_empty());
    for metric in ["cpu_busy", "executor_wait", "pressure_io_some", "device_reads"] {
        assert!(rows(&samples, metric).is_empty(), "{metric}");
    }
    assert!(rows(&samples, "handing_over").iter().all(|row| row.value == 0.0));
}

/// On a real machine every sample carries what the machine did, and what the kernel counts is near
/// what we counted.
#[test]
fn a_real_run_is_sampled_with_its_machine() {
    let place = std::env::temp_dir().join(format!("plimsoll-split-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let directory: PathBuf = place.canonicalize().expect("it exists");
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        caching: plimsoll_io::Caching::AllowBuffered,
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone()).expect("some method works");
    let limits = ThrottleLimits { operations_per_second: Some(200.0), ..ThrottleLimits::default() };
    let slow: Rc<dyn Disk> = Rc::new(Throttled::new(disk, clock.clone(), limits));
    let (outcome, samples) = run_on(&clock, slow, &spec(directory.to_str().expect("plain"), 2.0));
    std::fs::remove_dir_all(&directory).expect("it can be removed");
    let executor = rows(&samples, "executor_busy");
    assert!(executor.len() >= 4);
    assert!(executor.iter().all(|row| row.value < 0.9), "200 operations a second are no work");
    // How late the generator itself may have seen completions is published with every sample.
    let reaped = rows(&samples, "reap_gap");
    assert_eq!(reaped.len(), executor.len());
    assert!(reaped.iter().all(|row| row.count > 0 && row.latency_ns_p99 > 0));
    for metric in ["cpu_busy", "executor_wait", "memory_available"] {
        let found = rows(&samples, metric);
        assert_eq!(found.len(), executor.len(), "{metric}");
        assert!(found.iter().all(|row| row.value.is_finite() && row.value >= 0.0), "{metric}");
    }
    let ours: u64 = rows(&samples, "log_write").iter().map(|row| row.count).sum();
    if outcome.devices[0].databases.is_some() {
        let device: f64 = rows(&samples, "device_writes")
            .iter()
            .filter(|row| row.database == 1)
            .map(|row| row.value)
            .sum();
        assert!(device >= ours as f64 * 0.9, "the device wrote {device} times, we {ours} times");
    }
}
