//! The main job in virtual time on generated databases of any size, and the ratios that published
//! reports let one compute.
//!
//! The databases exist as a rule (nothing is stored but what the engine changes), reads take a
//! constant time, so a few hundred batches give the ratios of a long run: they are ratios of counts
//! and bytes, not of times.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, Disk, Latency, LatencyPlan, Loss, MemoryDisk, MemoryOptions, OperationKind, Purpose,
    Random, Recorded, Tracking,
};
use plimsoll_prepare::PreparedContent;
use plimsoll_run::{
    DatabaseState, Ending, Output, RunOutcome, RunSpec, StopSignal, execute, prepared_database,
};
use serde_json::{Value, json};

pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
const MILLISECOND: u64 = 1_000_000;
/// Operations of what the published reports count as one batch.
pub const BATCH_OPERATIONS: f64 = 32.0;

/// What varies between runs.
#[derive(Clone, Debug)]
pub struct Case {
    pub page_bytes: u32,
    pub record_bytes: u32,
    pub database_bytes: u64,
    pub databases: usize,
    pub cache_bytes: u64,
    /// Insert, delete, replace, read, lazy.
    pub mix: [u32; 5],
    pub sessions: u32,
    pub shared: bool,
    pub sluggish: f64,
    pub framing: &'static str,
    pub throttle_ms: u64,
    pub maintenance: bool,
    pub copies: u32,
    pub checkpoint_mib: u64,
    pub hold_checkpoint: bool,
    pub read_ms: u64,
    pub settle_s: f64,
    pub measure_s: f64,
    pub folder_records: u64,
    pub replies: bool,
    pub batch_operations: u32,
    pub vacancy_percent: u32,
    pub seed: u64,
}

impl Case {
    /// The performance run of the EMC report, with database and cache scaled down together.
    pub fn edition_2010() -> Case {
        Case {
            page_bytes: 32768,
            record_bytes: 2040,
            database_bytes: 100 * GIB,
            databases: 2,
            // 512 MiB for 1,944 GiB.
            cache_bytes: 27 * MIB,
            mix: [40, 20, 5, 35, 70],
            sessions: 3,
            shared: false,
            sluggish: 1.0,
            framing: "sector_512",
            throttle_ms: 20,
            maintenance: true,
            copies: 2,
            checkpoint_mib: 20,
            hold_checkpoint: false,
            read_ms: 12,
            settle_s: 20.0,
            measure_s: 60.0,
            folder_records: 975,
            replies: true,
            batch_operations: 16,
            vacancy_percent: 62,
            seed: 1,
        }
    }
}

fn instance(case: &Case, number: usize) -> Value {
    let directory = format!("/data/{number}");
    let maintenance = if case.maintenance {
        json!({"throttle_ms": case.throttle_ms, "read_bytes": 262144})
    } else {
        Value::Null
    };
    json!({
        "name": format!("instance {number}"), "target": "disk", "backend": "engine",
            "unfinished": false,
        "directory": directory, "log_directory": directory, "page_bytes": case.page_bytes,
        "databases": [{
            "file_name": "database.edb", "size_bytes": case.database_bytes, "seed": 7 + number,
            "record_bytes": case.record_bytes, "vacancy_percent": case.vacancy_percent,
                "compressible_percent": 0, "existing_records": 0
        }],
        "cache_bytes_min": MIB, "cache_bytes_max": case.cache_bytes,
        "checkpoint_depth_bytes": case.checkpoint_mib * MIB, "circular_log": true,
            "hold_checkpoint": case.hold_checkpoint, "log_framing": case.framing,
        "page_images": false, "copies_count": case.copies, "maintenance": maintenance,
        "log_buffer_bytes": MIB, "version_store_bytes_max": 64 * MIB, "extension_pages": 16,
        "waypoint_generations": 0, "writes_outstanding_max": 32
    })
}

fn plan(case: &Case) -> Value {
    let names: Vec<String> =
        (1..=case.databases).map(|number| format!("instance {number}")).collect();
    let [insert, delete, replace, read, lazy] = case.mix;
    json!({
        "schema_version": 1, "seed": case.seed, "sample_interval_ms": 1000, "hung_after_ms": 30000,
        "io_method": "auto", "destroy_serials": [],
        "hosts": [{"name": "local"}], "targets": [{"name": "disk", "host": "local",
            "path": "/data"}],
        "instances": (1..=case.databases).map(|number| instance(case, number)).collect::<Vec<_>>(),
        "workloads": [{
            "name": "mix", "instances": names, "sluggish": case.sluggish,
            "locality": {"folder_records": case.folder_records,
                "batch_operations": case.batch_operations, "replies": case.replies},
            "load": {"sessions": case.sessions, "shared": case.shared},
            "mix": {"insert_percent": insert, "delete_percent": delete, "replace_percent": replace,
                    "read_percent": read, "lazy_commit_percent": lazy}
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "warm up", "action": {"kind": "warm_up", "cache_percent": 90,
                "timeout_s": 600.0},
             "workloads": ["mix"]},
            {"name": "settle", "action": {"kind": "measure", "duration_s": case.settle_s},
                "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": case.measure_s},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    })
}

/// A disk with the databases of the case on it: constant reads, writes that a controller's cache
/// takes.
pub fn disk(case: &Case, tracking: Tracking) -> (Rc<MemoryDisk>, RunSpec) {
    let latency = LatencyPlan::of(Latency::Constant(case.read_ms * MILLISECOND))
        .with_kind(OperationKind::Write, Latency::Constant(MILLISECOND))
        .with_kind(OperationKind::SyncFile, Latency::Constant(MILLISECOND))
        .with_kind(OperationKind::SyncDirectory, Latency::Constant(MILLISECOND));
    let options =
        MemoryOptions { latency, tracking, chunk_bytes: 32 * 1024, ..MemoryOptions::default() };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(case.seed), options);
    let mut spec = RunSpec::from_json(&plan(case).to_string()).expect("the spec is right");
    for number in 0..spec.instances.len() {
        let prepared =
            Arc::new(prepared_database(&spec.instances[number], 0).expect("a plan that works"));
        let instance = &mut spec.instances[number];
        disk.load_sparse(
            instance.directory.join("database.edb"),
            prepared.file_bytes(),
            PreparedContent::sparse(&prepared),
        );
        instance.databases[0].existing_records = Some(prepared.records());
    }
    (disk, spec)
}

/// Counts of one phase, all instances together.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    count: BTreeMap<String, u64>,
    bytes: BTreeMap<String, u64>,
    nanoseconds: BTreeMap<String, u64>,
    pub growth_bytes: u64,
    /// Records that found no room beside another one.
    pub appended_records: u64,
    pub records_per_leaf: u64,
    pub seconds: f64,
    pub databases: usize,
    pub page_bytes: u32,
}

impl Figures {
    pub fn count(&self, metric: &str) -> f64 {
        self.count.get(metric).copied().unwrap_or(0) as f64
    }

    pub fn bytes(&self, metric: &str) -> f64 {
        self.bytes.get(metric).copied().unwrap_or(0) as f64
    }

    pub fn latency_ms(&self, metric: &str) -> f64 {
        self.nanoseconds.get(metric).copied().unwrap_or(0) as f64
            / 1e6
            / self.count(metric).max(1.0)
    }

    pub fn batches(&self) -> f64 {
        let operations: f64 =
            ["insert", "delete", "replace", "read"].map(|kind| self.count(kind)).iter().sum();
        operations / BATCH_OPERATIONS
    }

    fn transfers(&self) -> f64 {
        self.count("database_read") + self.count("database_write")
    }

    /// What the appended records make the table grow by, exactly; the file grows in steps.
    fn appended_bytes(&self) -> f64 {
        self.appended_records as f64 / self.records_per_leaf as f64 * f64::from(self.page_bytes)
    }

    /// Every ratio by name, in the order of the published table.
    pub fn ratios(&self) -> Vec<(&'static str, f64)> {
        let (reads, writes) = (self.count("database_read"), self.count("database_write"));
        let (log_writes, log_bytes) = (self.count("log_write"), self.bytes("log_write"));
        let page = f64::from(self.page_bytes);
        let batches = self.batches();
        vec![
            ("achieved_iops", self.transfers() / self.seconds),
            ("read_write_ratio", reads / writes),
            ("pages_per_read", self.bytes("database_read") / reads / page),
            ("pages_per_write", self.bytes("database_write") / writes / page),
            ("log_writes_per_db_write", log_writes / writes),
            ("db_io_per_log_write", self.transfers() / log_writes),
            ("log_write_bytes", log_bytes / log_writes),
            ("log_bytes_per_db_io", log_bytes / self.transfers()),
            ("log_bytes_per_db_write", log_bytes / writes),
            ("growth_per_log", self.growth_bytes as f64 / log_bytes),
            ("appended_per_log", self.appended_bytes() / log_bytes),
            ("growth_bytes_per_db_io", self.growth_bytes as f64 / self.transfers()),
            ("batches_per_s", batches / self.seconds),
            ("reads_per_batch", reads / batches),
            ("writes_per_batch", writes / batches),
            ("pages_written_per_batch", self.bytes("database_write") / page / batches),
            ("log_bytes_per_batch", log_bytes / batches),
            ("log_writes_per_batch", log_writes / batches),
            ("growth_bytes_per_batch", self.growth_bytes as f64 / batches),
            ("replication_per_log", self.bytes("log_replication") / log_bytes),
            (
                "replication_read_bytes",
                self.bytes("log_replication") / self.count("log_replication"),
            ),
            ("maintenance_read_bytes", self.bytes("maintenance") / self.count("maintenance")),
            (
                "maintenance_period_ms",
                self.seconds * 1000.0 * self.databases as f64 / self.count("maintenance"),
            ),
            ("read_latency_ms", self.latency_ms("database_read")),
            ("page_fault_stalls", self.count("page_fault_stall")),
            ("missing_per_operation", self.count("missing_record") / batches / BATCH_OPERATIONS),
            ("conflicts", self.count("write_conflict")),
        ]
    }

    pub fn ratio(&self, name: &str) -> f64 {
        let found = self.ratios().into_iter().find(|(known, _)| *known == name);
        found.expect("a known ratio").1
    }

    pub fn print(&self, title: &str) {
        println!("{title}: {:.0} batches", self.batches());
        for (name, value) in self.ratios() {
            println!("  {name:<26} {value:>12.3}");
        }
    }
}

/// Runs the case and gives the figures of its measured phase.
pub fn measure(case: &Case) -> Figures {
    let (disk, spec) = disk(case, Tracking::Nothing);
    let outcome = run(&disk, spec);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    figures(case, &outcome)
}

pub fn run(disk: &Rc<MemoryDisk>, spec: RunSpec) -> RunOutcome {
    run_on(disk.clock(), disk.clone(), spec)
}

fn run_on(clock: &Rc<Clock>, disk: Rc<dyn Disk>, spec: RunSpec) -> RunOutcome {
    // Nobody listens: the outcome holds the figures of whole phases.
    let (samples, _) = channel();
    let (events, _) = channel();
    let output = Output { samples, events };
    execute(spec, clock.clone(), disk, output, StopSignal::default())
}

const MEASURED_PHASE: usize = 3;

pub fn figures(case: &Case, outcome: &RunOutcome) -> Figures {
    let mut figures =
        Figures { databases: case.databases, page_bytes: case.page_bytes, ..Figures::default() };
    for found in outcome.figures.iter().filter(|found| found.phase as usize == MEASURED_PHASE) {
        *figures.count.entry(found.metric.to_owned()).or_default() += found.count;
        *figures.bytes.entry(found.metric.to_owned()).or_default() += found.bytes;
        *figures.nanoseconds.entry(found.metric.to_owned()).or_default() += found.latency_ns_sum;
    }
    let phase = &outcome.phases[MEASURED_PHASE];
    figures.seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
    let sum = |phase: usize, of: fn(&DatabaseState) -> u64| -> u64 {
        let databases = outcome.phases[phase].result.databases.iter().flatten();
        databases.map(of).sum()
    };
    let grown =
        |of: fn(&DatabaseState) -> u64| sum(MEASURED_PHASE, of) - sum(MEASURED_PHASE - 1, of);
    figures.growth_bytes = grown(|database| database.size_bytes);
    figures.appended_records = grown(|database| database.records_ever);
    figures.records_per_leaf = u64::from(case.page_bytes) / u64::from(case.record_bytes + 20);
    figures
}

/// Bytes of the log files up to the last byte written.
fn log_in_use_bytes(disk: &MemoryDisk, databases: usize) -> u64 {
    let is_closed = |name: &str| {
        name.starts_with("E00") && name.ends_with(".log") && name.len() == "E0000000001.log".len()
    };
    let in_use = |number: usize| -> u64 {
        let directory = Path::new("data").join(number.to_string());
        let files = disk.list_files().into_iter();
        let closed = files.filter(|(path, _)| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            path.parent() == Some(&directory) && is_closed(name)
        });
        let current = disk.bytes(format!("/data/{number}/E00.log")).expect("a current generation");
        let used = current.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        closed.map(|(_, length_bytes)| length_bytes).sum::<u64>() + used as u64
    };
    (1..=databases).map(in_use).sum()
}

/// What redo did to disks and log, for every 2 MiB of log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redo {
    pub reads: f64,
    pub pages_read: f64,
    pub writes: f64,
    pub log_reads: f64,
    pub log_bytes: f64,
    pub seconds: f64,
}

/// Runs the case until `cut_s` with the checkpoint held, cuts the power, and recovers.
pub fn recover(case: &Case, cut_s: f64) -> Redo {
    let case = Case { hold_checkpoint: true, measure_s: 2.0 * cut_s, ..case.clone() };
    let (disk, spec) = disk(&case, Tracking::WriteThrough);
    // The disk goes away instead of falling silent, so that the run notices and ends.
    disk.remove_at((cut_s * 1e9) as u64);
    let outcome = run(&disk, spec.clone());
    assert_eq!(outcome.ending, Ending::Failed, "a disk that is gone ends the run");
    let image = disk.crash_image(Loss::Everything, &mut Random::from_seed(case.seed));
    let units = log_in_use_bytes(&image, case.databases) as f64 / (2.0 * MIB as f64);
    let recorded = Rc::new(Recorded::new(image.clone(), image.clock().clone()));
    let mut open = spec;
    open.phases.retain(|phase| ["prepare", "stop"].contains(&phase.name.as_str()));
    open.phases.iter_mut().for_each(|phase| phase.workloads.clear());
    for instance in &mut open.instances {
        for (key, value) in [
            ("hold_checkpoint", json!(false)),
            ("maintenance", json!(null)),
            ("copies_count", json!(1)),
        ] {
            instance.options.insert(key.into(), value);
        }
    }
    let outcome = run_on(image.clock(), recorded.clone(), open);
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let mut redo = Redo::default();
    for (key, series) in recorded.take_interval().series {
        let count = series.latency.count() as f64;
        match (key.purpose, key.kind) {
            (Purpose::Redo, OperationKind::Read) => {
                redo.reads += count;
                redo.pages_read += series.bytes as f64 / f64::from(case.page_bytes);
            }
            (Purpose::Redo, OperationKind::Write) => redo.writes += count,
            (Purpose::LogRead, OperationKind::Read) => {
                redo.log_reads += count;
                redo.log_bytes += series.bytes as f64;
            }
            _ => {}
        }
    }
    let phase = &outcome.phases[0];
    Redo {
        reads: redo.reads / units,
        pages_read: redo.pages_read / units,
        writes: redo.writes / units,
        log_reads: redo.log_reads / units,
        log_bytes: redo.log_bytes,
        seconds: (phase.end_ns - phase.start_ns) as f64 / 1e9 / units,
    }
}
