//! A run of an online store as a user makes it, on the engine, in SQLite or on a server; prints its
//! orders and what the process used as one line of JSON.
//!
//! Processor time is that of the whole process between the start of the run and its end, with
//! making the connections and without the server's. Where the store is not there it is made first,
//! so make it by a run of its own before measuring. With `audit=1` everything is counted once more
//! afterwards, and a difference is an error.

use std::path::Path;
use std::sync::mpsc::channel;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::processor::{processor_ns, warn_of_debug_build};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, execute_live};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const MEASURE: u32 = 2;
const SERVERS: [&str; 2] = ["postgresql", "mysql"];

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("backend", "store"),
        ("directory", "."),
        ("host", "127.0.0.1"),
        ("port", "5432"),
        ("user", "shop"),
        ("database", "shop"),
        ("password_file", ""),
        ("store_mb", "10"),
        ("sessions", "8"),
        ("think_s", "0"),
        ("ramp_s", "0"),
        ("seconds", "5"),
        ("cache_mib", "256"),
        ("existing", "0"),
        ("audit", "0"),
        ("seed", "1"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let spec = spec(&arguments)?;
    let (samples, _rows) = channel();
    let (events, _told) = channel();
    let began_ns = processor_ns();
    let outcome = execute_live(spec, Output { samples, events }, StopSignal::default())
        .map_err(|error| error.to_string())?;
    let used_ns = processor_ns() - began_ns;
    if outcome.ending != Ending::Complete {
        return Err(outcome.error.map_or("the run did not end".into(), |error| error.text));
    }
    let audits = outcome.phases.iter().flat_map(|phase| &phase.result.audits);
    let findings: Vec<&String> = audits.flat_map(|audit| &audit.report.findings).collect();
    if !findings.is_empty() {
        return Err(format!("the store does not add up: {findings:?}"));
    }
    println!("{}", report(&outcome, used_ns, &arguments)?);
    Ok(())
}

fn spec(arguments: &Arguments) -> Result<RunSpec, String> {
    let directory = Path::new(arguments.text("directory")).join(arguments.text("backend"));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let directory = directory.to_string_lossy().into_owned();
    let mut phases = vec![
        json!({"name": "prepare", "action": {"kind": "prepare"}, "workloads": []}),
        json!({"name": "ramp", "action": {"kind": "soak",
            "duration_s": arguments.decimal("ramp_s")?.max(0.01), "until_utc_s": null},
            "workloads": ["orders"]}),
        json!({"name": "measure", "action": {"kind": "measure",
            "duration_s": arguments.decimal("seconds")?}, "workloads": ["orders"]}),
    ];
    if arguments.number("audit")? == 1 {
        phases.push(json!({"name": "audit", "action": {"kind": "audit"}, "workloads": []}));
    }
    phases.push(json!({"name": "stop", "action": {"kind": "stop"}, "workloads": []}));
    let spec = json!({
        "schema_version": 1, "seed": arguments.number("seed")?, "sample_interval_ms": 1000,
        "hung_after_ms": 30000, "io_method": "auto", "destroy_serials": [], "max_iops": null,
        "max_mib_per_s": null, "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": directory}],
        "instances": [instance(arguments, &directory)?],
        "workloads": [{
            "name": "orders", "instances": ["one"], "family": "store",
            "load": {"sessions": arguments.number("sessions")?, "shared": true},
            "think_s": arguments.decimal("think_s")?, "new_customers_percent": 20.0,
            "searches_mean": 3, "search_rows_mean": 5, "lines_mean": 5
        }],
        "phases": phases
    });
    RunSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())
}

fn instance(arguments: &Arguments, directory: &str) -> Result<Value, String> {
    let backend = arguments.text("backend");
    let is_there = arguments.number("existing")? == 1;
    let database = json!({
        "file_name": if backend == "sqlite" { "store.sqlite" } else { "database001.edb" },
        "size_bytes": 64 * MIB, "seed": 5, "store_mb": arguments.number("store_mb")?,
        "existing_records": if is_there { json!(1) } else { Value::Null }
    });
    let mut instance = json!({
        "name": "one", "target": "disk", "backend": backend, "unfinished": false,
        "directory": directory, "log_directory": directory, "databases": [database]
    });
    let more = if backend == "store" {
        json!({
            "page_bytes": 32768, "cache_bytes_min": MIB,
            "cache_bytes_max": arguments.number("cache_mib")? * MIB,
            "checkpoint_depth_bytes": 20 * MIB, "circular_log": true, "log_framing": "sector_512",
            "page_images": false, "copies_count": 1, "maintenance": null, "log_buffer_bytes": MIB,
            "version_store_bytes_max": 128 * MIB, "extension_pages": 256, "waypoint_generations": 0,
            "writes_outstanding_max": 32
        })
    } else {
        let password = arguments.text("password_file");
        let server = json!({
            "host": arguments.text("host"), "port": arguments.number("port")?,
            "user": arguments.text("user"), "database": arguments.text("database"),
            "password_file": if password.is_empty() { Value::Null } else { json!(password) },
            "ca_file": null
        });
        let server = if SERVERS.contains(&backend) { server } else { Value::Null };
        json!({"server": server, "rows": "seed", "timeout_s": 60.0, "lost_after_s": 60.0})
    };
    let all = instance.as_object_mut().ok_or("an instance is an object")?;
    all.extend(more.as_object().cloned().unwrap_or_default());
    Ok(instance)
}

fn report(outcome: &RunOutcome, used_ns: u64, arguments: &Arguments) -> Result<Value, String> {
    let phase = &outcome.phases[MEASURE as usize];
    let seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
    let of = |phases: &[u32], metric: &str| {
        let chosen = outcome
            .figures
            .iter()
            .filter(|figures| phases.contains(&figures.phase) && figures.metric == metric);
        chosen.fold((0u64, 0u64), |(count, ns), figures| {
            (count + figures.count, ns + figures.latency_ns_sum)
        })
    };
    let (orders, sum_ns) = of(&[MEASURE], "order");
    let (all_orders, _) = of(&[MEASURE - 1, MEASURE], "order");
    let response_s = sum_ns as f64 / 1e9 / orders.max(1) as f64;
    let cycle_s = arguments.decimal("think_s")? + response_s;
    let sessions = arguments.number("sessions")? as f64;
    Ok(json!({
        "seconds": seconds, "orders": orders, "opm": 60.0 * orders as f64 / seconds,
        "order_ms_mean": 1000.0 * response_s,
        "formula_opm": 60.0 * sessions / cycle_s,
        "rolled_back": of(&[MEASURE], "store_rolled_back").0,
        "processor_ms_per_order": used_ns as f64 / 1e6 / all_orders.max(1) as f64,
        "method": outcome.io_method,
    }))
}
