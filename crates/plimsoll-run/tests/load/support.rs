//! A run over raw files or the engine on a disk in memory, its plan changed test by test.

use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{Clock, Disk, Latency, LatencyPlan, MemoryDisk, MemoryOptions, Random, Tracking};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Event, Output, PhaseFigures, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

pub const MIB: u64 = 1 << 20;
pub const MEASURE: u32 = 2;

/// Prepare, warm up, measure, stop.
pub fn spec(backend: &str, load: Value, seconds: f64) -> Value {
    let database = json!({
        "file_name": "database001.edb", "size_bytes": 24 * MIB, "seed": 5, "record_bytes": 2164,
        "compressible_percent": 0, "existing_records": null
    });
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 1000, "hung_after_ms": 30000,
            "io_method": "auto", "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": backend, "unfinished": false,
                "directory": "/data/one", "log_directory": "/data/one",
            "page_bytes": if backend == "engine" { 32768 } else { 4096 }, "databases": [database],
                "cache_bytes_min": MIB, "cache_bytes_max": 4 * MIB,
            "checkpoint_depth_bytes": 4 * MIB, "circular_log": true, "log_framing": "sector_512",
                "page_images": false,
            "copies_count": 1, "maintenance": null,
            "log_buffer_bytes": MIB, "version_store_bytes_max": 16 * MIB, "extension_pages": 256,
            "waypoint_generations": 0, "writes_outstanding_max": 32
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "sluggish": 0.0, "load": load,
            "mix": {"insert_percent": 40, "delete_percent": 20, "replace_percent": 5,
                "read_percent": 35,
                    "lazy_commit_percent": 70}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 90,
                "timeout_s": 600.0}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": seconds},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    })
}

pub fn rate(per_s: f64, sessions_max: u32) -> Value {
    json!({"transactions_per_s": per_s, "spacing": "poisson", "sessions_max": sessions_max})
}

pub fn target(iops: f64) -> Value {
    json!({"target_iops": iops, "spacing": "poisson", "sessions_max": 256,
        "io_per_transaction_assumed": 1.0,
           "calibrate_s": 20.0})
}

pub struct Ran {
    pub outcome: RunOutcome,
    pub rows: Vec<Row>,
    pub events: Vec<Event>,
}

impl Ran {
    /// The distribution of a metric in the measured phase, over all places.
    pub fn figures(&self, metric: &str) -> Vec<&PhaseFigures> {
        let figures = self.outcome.figures.iter();
        figures.filter(|figures| figures.phase == MEASURE && figures.metric == metric).collect()
    }

    pub fn count(&self, metric: &str) -> u64 {
        self.figures(metric).iter().map(|figures| figures.count).sum()
    }

    pub fn transactions(&self) -> u64 {
        ["insert", "delete", "replace", "read"].map(|kind| self.count(kind)).iter().sum()
    }

    pub fn mean_ns(&self, metric: &str) -> f64 {
        let sum: u64 = self.figures(metric).iter().map(|figures| figures.latency_ns_sum).sum();
        sum as f64 / self.count(metric) as f64
    }

    /// The upper bound of the bucket in which a quantile of several metrics together lies.
    pub fn quantile_ns(&self, metrics: &[&str], quantile: f64) -> u64 {
        let mut buckets: Vec<(u64, u64)> = metrics
            .iter()
            .flat_map(|metric| self.figures(metric))
            .flat_map(|figures| figures.buckets.iter().copied())
            .collect();
        buckets.sort_unstable();
        let total: u64 = buckets.iter().map(|(_, count)| count).sum();
        let mut reached = 0;
        for (upper_ns, count) in buckets {
            reached += count;
            if reached as f64 >= quantile * total as f64 {
                return upper_ns;
            }
        }
        0
    }

    pub fn highest_level(&self, metric: &str) -> f64 {
        let code = metric_code(metric).expect("a metric");
        let rows = self.rows.iter().filter(|row| row.metric == code && row.phase == MEASURE);
        rows.map(|row| row.value).fold(0.0, f64::max)
    }

    pub fn told(&self, kind: &str) -> Vec<&str> {
        let events = self.events.iter().filter(|event| event.kind == kind);
        events.map(|event| event.text.as_str()).collect()
    }
}

/// A disk on which everything takes the same time, any number at once.
pub fn constant(latency_ns: u64) -> Rc<MemoryDisk> {
    memory(LatencyPlan::of(Latency::Constant(latency_ns)))
}

pub fn memory(latency: LatencyPlan) -> Rc<MemoryDisk> {
    let options =
        MemoryOptions { latency, tracking: Tracking::Nothing, ..MemoryOptions::default() };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

pub fn run(clock: &Rc<Clock>, disk: Rc<dyn Disk>, spec: &Value) -> Ran {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, told) = channel();
    let output = Output { samples, events };
    let outcome = execute(spec, clock.clone(), disk, output, StopSignal::default());
    Ran { outcome, rows: rows.try_iter().flatten().collect(), events: told.try_iter().collect() }
}

pub fn run_on(disk: &Rc<MemoryDisk>, spec: &Value) -> Ran {
    run(disk.clock(), disk.clone(), spec)
}
