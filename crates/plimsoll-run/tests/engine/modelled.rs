//! The engine itself on a modelled array: the main job in virtual time, with the latencies of
//! drives instead of memory.

use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_array::spec::ArraySpec;
use plimsoll_array::{Array, ModelledDisk};
use plimsoll_io::{Clock, MemoryDisk, MemoryOptions, Random};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute, execute_live};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

/// Seven 15k drives in RAID 5 behind a write-back cache.
fn array(write_back: bool) -> ArraySpec {
    let text = json!({
        "drives": [{"name": "15k", "capacity_bytes": 600_000_000_000_u64, "kind": {"hdd": {
            "rotation_rpm": 15000.0, "read_seek_ns": 3.4e6, "write_seek_ns": 3.9e6,
                "outer_bytes_per_second": 2.04e8,
            "inner_bytes_per_second": 1.22e8, "interface_bytes_per_second": 3e8,
                "overhead_ns": 200_000,
            "buffer_bytes": 16 * MIB, "queue_count_max": 32,
                "scheduling": "shortest_positioning"}}}],
        "members": [{"controller_count": 2, "slot_count": 12, "read_latency_ns": 200_000,
            "write_latency_ns": 200_000,
            "latency_ns_per_byte": 0.0, "processor_ns": 0, "processor_count": 1, "failover_ns": 0,
            "cache": {"write_back": write_back, "dirty_bytes_max": 64 * MIB,
                "destage_start_share": 0.1,
                "destage_full_share": 0.8, "destage_rows_per_drive": 2.0,
                    "read_preference_ns": 1_000_000,
                "old_data_share": 0.0, "recent_bytes": 8 * MIB, "prefetch": null}}],
        "groups": [{"name": "group", "member": 0, "drive": "15k", "level": "raid5", "sets": [7],
            "spare_count": 0,
            "element_bytes": 65536, "rebuild_bytes_per_second": 0.0}],
        "pools": [{"name": "pool", "groups": [0], "page_bytes": 15 * MIB,
            "page_order": "volume_by_volume"}],
        "volumes": [{"name": "data", "pool": 0, "capacity_bytes": 100_000_000_000_u64,
            "shift_bytes": 0,
            "tenant": "host"}],
        "neighbours": [],
        "path": {"link_count": 2, "link_bytes_per_second": 1.17e8, "link_latency_ns": 100_000,
            "host_bytes_per_second": null, "host_latency_ns": 0, "policy": "round_robin",
            "path_timeout_ns": 1_000_000_000, "cap": null},
        "faults": []
    });
    serde_json::from_value(text).expect("the array is described right")
}

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
            "copies_count": 1, "maintenance": null,
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
            {"name": "measure", "action": {"kind": "measure", "duration_s": 20.0},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
            {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
                "reads_in_flight": 8}, "workloads": []}
        ]
    })
}

fn run_on(array: &ArraySpec) -> (RunOutcome, Vec<Row>) {
    let clock = Rc::new(Clock::simulated());
    let memory = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    memory.create_directory("/data/one");
    let array = Array::new(array, &Random::from_seed(1)).expect("the array can be built");
    let disk = Rc::new(ModelledDisk::new(memory, clock.clone(), array, vec![("/data".into(), 0)]));
    let spec = RunSpec::from_json(&spec().to_string()).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let outcome = execute(spec, clock, disk, Output { samples, events }, StopSignal::default());
    (outcome, rows.try_iter().flatten().collect())
}

/// Count and mean latency in milliseconds of a metric while measuring.
fn measured(rows: &[Row], metric: &str) -> (u64, f64) {
    let code = metric_code(metric).expect("a metric");
    let chosen: Vec<&Row> =
        rows.iter().filter(|row| row.metric == code && row.phase == 2).collect();
    let count: u64 = chosen.iter().map(|row| row.count).sum();
    let sum_ns: u64 = chosen.iter().map(|row| row.latency_ns_sum).sum();
    (count, sum_ns as f64 / count as f64 / 1e6)
}

/// SIM-03 with the real engine: reads take the time of drives, writes that of the cache, and the
/// databases are sound.
#[test]
fn the_engine_runs_on_a_modelled_array() {
    let (outcome, rows) = run_on(&array(true));
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let (reads, read_ms) = measured(&rows, "database_read");
    let (_, log_ms) = measured(&rows, "log_write");
    assert!(reads > 500, "{reads}");
    assert!((1.5..12.0).contains(&read_ms), "{read_ms}");
    assert!(log_ms < 1.5, "{log_ms}");
    let checksum = &outcome.phases[4].result.checksums[0].report;
    assert_eq!((checksum.bad, checksum.correctable, checksum.wrong_page_number), (0, 0, 0));

    let (through, rows) = run_on(&array(false));
    assert_eq!(through.ending, Ending::Complete, "{:?}", through.error);
    let (_, log_through_ms) = measured(&rows, "log_write");
    assert!(log_through_ms > 3.0 * log_ms, "{log_through_ms} against {log_ms}");
}

/// Virtual time has one executor, however many threads a plan asks for: outcome and rows are the
/// same to the last bit.
#[test]
fn threads_change_no_byte_of_a_modelled_run() {
    let run = |threads: Option<u32>| {
        let mut plan = spec();
        plan["threads"] = json!(threads);
        plan["pin"] = json!(threads.map(|_| true));
        plan["phases"][2]["action"]["duration_s"] = json!(3.0);
        let mut second = plan["instances"][0].clone();
        second["name"] = json!("two");
        (second["directory"], second["log_directory"]) = (json!("/data/two"), json!("/data/two"));
        plan["instances"].as_array_mut().expect("a list").push(second);
        plan["workloads"][0]["instances"] = json!(["one", "two"]);
        plan["modelled"] = json!({
            "array": serde_json::to_value(array(true)).expect("it is plain data"),
            "places": [{"directory": "/data", "volume": 0}], "processor_count": 4,
                "transaction_processor_ns": 0,
            "faults_while_measuring": []
        });
        let spec = RunSpec::from_json(&plan.to_string()).expect("the spec is right");
        assert_eq!(spec.threads_count(), 1);
        let ((samples, rows), (events, _told)) = (channel(), channel());
        let outcome =
            execute_live(spec, Output { samples, events }, StopSignal::default()).expect("it runs");
        assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
        let rows: Vec<Row> = rows.try_iter().flatten().collect();
        (serde_json::to_string(&outcome).expect("it is plain data"), rows)
    };
    let (one, several) = (run(None), run(Some(2)));
    assert_eq!(one.0, several.0);
    assert!(one.1.len() > 100 && one.1 == several.1);
}
