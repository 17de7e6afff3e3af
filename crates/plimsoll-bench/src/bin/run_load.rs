//! A whole run as a user makes it, prepared, warmed, measured and closed, on the real disk or on
//! one in memory that answers at once; prints what the measured phase did as one line of JSON.
//!
//! With `per_s` above zero transactions arrive at that rate, otherwise `sessions` sessions go at
//! full speed. Databases are kept, so that the next run on the same directory opens them.
//! Maintenance is off: what is compared is the load.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::processor::{processor_ns, warn_of_debug_build};
use plimsoll_io::{Clock, MemoryDisk, MemoryOptions, Random};
use plimsoll_measure::metric_code;
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute, execute_live};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const MEASURE: u32 = 2;
const SHOWN: [&str; 8] = [
    "database_read",
    "database_write",
    "log_write",
    "insert",
    "read",
    "arrival_lag",
    "pool_wait",
    "reap_gap",
];

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("directory", "."),
        ("disk", "real"),
        ("backend", "engine"),
        ("sessions", "3"),
        ("per_s", "0"),
        ("read_percent", "35"),
        ("database_mib", "1024"),
        ("cache_mib", "64"),
        ("seconds", "5"),
        ("existing_records", "0"),
        ("seed", "1"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let spec = spec(&arguments)?;
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let output = Output { samples, events };
    let began_ns = processor_ns();
    let outcome = match arguments.text("disk") {
        "real" => {
            execute_live(spec, output, StopSignal::default()).map_err(|error| error.to_string())?
        }
        "null" => {
            let clock = Rc::new(Clock::real());
            let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
            disk.create_directory(Path::new(arguments.text("directory")).join("one"));
            execute(spec, clock, disk, output, StopSignal::default())
        }
        other => return Err(format!("disk is {other}; write real or null")),
    };
    let used_ns = processor_ns() - began_ns;
    if outcome.ending != Ending::Complete {
        return Err(outcome.error.map_or("the run did not end".into(), |error| error.text));
    }
    let busy = metric_code("executor_busy");
    let busy: Vec<f64> = rows
        .try_iter()
        .flatten()
        .filter(|row| row.phase == MEASURE && Some(row.metric) == busy)
        .map(|row| row.value)
        .collect();
    let busy = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
    println!("{}", report(&outcome, busy, used_ns));
    Ok(())
}

/// The plan of the 2010 edition with one database; the mix is the edition's unless it only reads.
fn spec(arguments: &Arguments) -> Result<RunSpec, String> {
    let directory = Path::new(arguments.text("directory")).join("one");
    if arguments.text("disk") == "real" {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    let directory = directory.to_string_lossy().into_owned();
    let read_only = arguments.number("read_percent")? == 100;
    let records = arguments.number("existing_records")?;
    let per_s = arguments.decimal("per_s")?;
    let load = if per_s > 0.0 {
        json!({"transactions_per_s": per_s, "spacing": "poisson", "sessions_max": 512})
    } else {
        json!({"sessions": arguments.number("sessions")?, "shared": false})
    };
    let database = json!({
        "file_name": "database001.edb", "size_bytes": arguments.number("database_mib")? * MIB,
            "seed": 5,
        "record_bytes": 2164, "compressible_percent": 0,
        "existing_records": if records > 0 { json!(records) } else { Value::Null }
    });
    let mix = if read_only {
        json!({"insert_percent": 0, "delete_percent": 0, "replace_percent": 0,
            "read_percent": 100, "lazy_commit_percent": 70})
    } else {
        json!({"insert_percent": 40, "delete_percent": 20, "replace_percent": 5,
            "read_percent": 35, "lazy_commit_percent": 70})
    };
    let spec = json!({
        "schema_version": 1, "seed": arguments.number("seed")?, "sample_interval_ms": 1000,
            "hung_after_ms": 30000,
        "io_method": "auto", "destroy_serials": [],
        "hosts": [{"name": "local"}], "targets": [{"name": "disk", "host": "local",
            "path": directory}],
        "instances": [{
            "name": "one", "target": "disk", "backend": arguments.text("backend"),
                "directory": directory,
            "log_directory": directory, "page_bytes": 32768, "databases": [database],
            "cache_bytes_min": MIB, "cache_bytes_max": arguments.number("cache_mib")? * MIB,
            "checkpoint_depth_bytes": 20 * MIB, "circular_log": true, "log_framing": "sector_512",
                "page_images": false,
            "copies_count": 1, "maintenance": null, "log_buffer_bytes": MIB,
                "version_store_bytes_max": 128 * MIB,
            "extension_pages": 256, "waypoint_generations": 0, "writes_outstanding_max": 32,
                "unfinished": false
        }],
        "workloads": [{"name": "mix", "instances": ["one"], "sluggish": 0.0, "load": load,
            "mix": mix}],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm", "action": {"kind": "warm_up", "cache_percent": 90,
                "timeout_s": 600.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure",
                "duration_s": arguments.decimal("seconds")?}, "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    });
    RunSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())
}

fn report(outcome: &RunOutcome, executor_busy: f64, processor_ns: u64) -> Value {
    let phase = &outcome.phases[MEASURE as usize];
    let seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
    let mut found = json!({
        "seconds": seconds, "method": outcome.io_method, "remarks": outcome.io_remarks,
            "executor_busy": executor_busy,
        "processor_s_whole_run": processor_ns as f64 / 1e9,
        "records_ever": outcome.phases[3].result.databases[0][0].records_ever,
    });
    for metric in SHOWN {
        found[metric] = figures(outcome, metric, seconds);
    }
    found
}

fn figures(outcome: &RunOutcome, metric: &str, seconds: f64) -> Value {
    let chosen: Vec<_> = outcome
        .figures
        .iter()
        .filter(|figures| figures.phase == MEASURE && figures.metric == metric)
        .collect();
    let count: u64 = chosen.iter().map(|figures| figures.count).sum();
    let sum_ns: u64 = chosen.iter().map(|figures| figures.latency_ns_sum).sum();
    let bytes: u64 = chosen.iter().map(|figures| figures.bytes).sum();
    let mut buckets: Vec<(u64, u64)> =
        chosen.iter().flat_map(|figures| figures.buckets.iter().copied()).collect();
    buckets.sort_unstable();
    let quantile_us = |share: f64| {
        let mut reached = 0;
        let found = buckets.iter().find(|(_, count_here)| {
            reached += count_here;
            reached as f64 >= share * count as f64
        });
        found.map_or(0.0, |(upper_ns, _)| *upper_ns as f64 / 1e3)
    };
    json!({
        "count": count, "per_s": count as f64 / seconds,
            "bytes_mean": bytes as f64 / count.max(1) as f64,
        "us_mean": sum_ns as f64 / count.max(1) as f64 / 1e3, "us_p50": quantile_us(0.5),
            "us_p99": quantile_us(0.99),
        "us_max": chosen.iter().map(|figures|
            figures.latency_ns_max).max().unwrap_or(0) as f64 / 1e3,
        "outstanding_mean": sum_ns as f64 / 1e9 / seconds
    })
}
