//! A run on files under the published access specification of a file server, as a user makes it;
//! prints what it did as one line of JSON.
//!
//! With `per_s` above zero transactions arrive evenly at that rate on each of `servers` instances;
//! otherwise each keeps `depth` transfers under way. The least and the most of all whole windows of
//! ten seconds are those of one instance.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::channel;

use plimsoll_bench::arguments::Arguments;
use plimsoll_bench::processor::{processor_ns, warn_of_debug_build};
use plimsoll_measure::{METRICS, Row};
use plimsoll_run::{Ending, Output, RunOutcome, RunSpec, StopSignal, built_in, execute_live};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const MEASURE: u32 = 2;
const WINDOW_NS: u64 = 10_000_000_000;
/// Bytes and shares of the published file server.
const ACCESS: [(u64, u32); 8] =
    [(512, 10), (1024, 5), (2048, 5), (4096, 60), (8192, 2), (16384, 4), (32768, 4), (65536, 10)];
const TRANSACTIONS: [&str; 2] = ["file_read", "file_write"];

fn main() -> Result<(), String> {
    warn_of_debug_build();
    let known = [
        ("directory", "."),
        ("servers", "1"),
        ("depth", "1"),
        ("per_s", "0"),
        ("file_mib", "1024"),
        ("ramp_s", "1"),
        ("seconds", "20"),
        ("existing", "0"),
        ("seed", "1"),
    ];
    let arguments = Arguments::read(&known, std::env::args().skip(1))?;
    let spec = spec(&arguments)?;
    let (samples, rows) = channel();
    let (events, _told) = channel();
    let began_ns = processor_ns();
    let outcome = execute_live(spec, Output { samples, events }, StopSignal::default())
        .map_err(|error| error.to_string())?;
    let used_ns = processor_ns() - began_ns;
    if outcome.ending != Ending::Complete {
        return Err(outcome.error.map_or("the run did not end".into(), |error| error.text));
    }
    let rows: Vec<Row> = rows.try_iter().flatten().collect();
    println!("{}", report(&outcome, &rows, used_ns));
    Ok(())
}

fn spec(arguments: &Arguments) -> Result<RunSpec, String> {
    let access: Vec<Value> = ACCESS
        .iter()
        .map(|(size_bytes, share_percent)| {
            json!({"size_bytes": size_bytes, "share_percent": share_percent, "read_percent": 80,
                "random_percent": 100, "delay_ms": 0, "burst": 1, "align_bytes": 0,
                "reply_bytes": 0})
        })
        .collect();
    let (per_s, depth) = (arguments.decimal("per_s")?, arguments.number("depth")?);
    let load = if per_s > 0.0 {
        json!({"transactions_per_s": per_s, "spacing": "regular", "sessions_max": depth.max(64)})
    } else {
        json!({"sessions": depth, "shared": false})
    };
    let records = match arguments.number("existing")? {
        0 => Value::Null,
        _ => json!(arguments.number("file_mib")? * MIB / 512),
    };
    let (mut targets, mut instances, mut workloads, mut names) = (vec![], vec![], vec![], vec![]);
    for number in 1..=arguments.number("servers")? {
        let name = format!("server {number}");
        let directory = Path::new(arguments.text("directory")).join(format!("files{number}"));
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let directory = directory.to_string_lossy().into_owned();
        targets.push(json!({"name": name, "host": "local", "path": directory}));
        instances.push(json!({
            "name": name, "target": name, "backend": "files", "unfinished": false,
            "directory": directory, "log_directory": directory, "data_pattern": 2,
            "verify": false, "databases": [{"file_name": "file001.dat", "seed": number,
                "size_bytes": arguments.number("file_mib")? * MIB, "existing_records": records}]
        }));
        workloads.push(json!({
            "name": name, "instances": [name], "family": "files", "access": access, "workers": 1,
            "below_block": "read_modify_write", "load": load
        }));
        names.push(name);
    }
    let spec = json!({
        "schema_version": 1, "seed": arguments.number("seed")?, "sample_interval_ms": 1000,
        "hung_after_ms": 30000, "io_method": "auto", "destroy_serials": [], "max_iops": null,
        "max_mib_per_s": null, "hosts": [{"name": "local"}], "targets": targets,
        "instances": instances, "workloads": workloads,
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "ramp", "action": {"kind": "soak", "duration_s":
                arguments.decimal("ramp_s")?.max(0.01), "until_utc_s": null}, "workloads": names},
            {"name": "measure", "action": {"kind": "measure", "duration_s":
                arguments.decimal("seconds")?}, "workloads": names},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    });
    RunSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())
}

fn report(outcome: &RunOutcome, rows: &[Row], used_ns: u64) -> Value {
    let phase = &outcome.phases[MEASURE as usize];
    let seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
    let total = |metrics: &[&str]| {
        let chosen = outcome
            .figures
            .iter()
            .filter(|figures| figures.phase == MEASURE && metrics.contains(&figures.metric));
        chosen.fold((0u64, 0u64), |(count, ns), figures| {
            (count + figures.count, ns + figures.latency_ns_sum)
        })
    };
    let (at_disk, disk_ns) = total(&["database_read", "database_write"]);
    let (transactions, _) = total(&TRANSACTIONS);
    let windows = windows(rows, phase.start_ns);
    json!({
        "seconds": seconds, "iops": at_disk as f64 / seconds,
        "us_mean": disk_ns as f64 / 1e3 / at_disk.max(1) as f64,
        "transactions_per_s": transactions as f64 / seconds,
        "window_least_per_s": windows.iter().copied().fold(f64::INFINITY, f64::min),
        "window_most_per_s": windows.iter().copied().fold(0.0, f64::max),
        "windows": windows.len(),
        "processor_us_per_io": used_ns as f64 / 1e3 / at_disk.max(1) as f64,
        "method": outcome.io_method,
    })
}

/// Transactions per second of every instance in every whole window.
fn windows(rows: &[Row], start_ns: u64) -> Vec<f64> {
    let code = |name: &str| {
        let known = built_in().metrics();
        let names = METRICS.iter().map(|metric| metric.name);
        let mut all = names.chain(known.iter().map(|metric| metric.name));
        all.position(|known| known == name).map(|position| position as u32)
    };
    let wanted: Vec<_> = TRANSACTIONS.iter().filter_map(|name| code(name)).collect();
    let measured = || rows.iter().filter(|row| row.phase == MEASURE);
    let end_ns = measured().map(|row| row.end_ns).max().unwrap_or(start_ns);
    let whole = (end_ns - start_ns + WINDOW_NS / 50) / WINDOW_NS;
    let mut counts: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for row in measured().filter(|row| wanted.contains(&row.metric)) {
        let window = (row.end_ns.saturating_sub(start_ns + 1)) / WINDOW_NS;
        if window < whole {
            *counts.entry((row.instance, window)).or_default() += row.count;
        }
    }
    counts.values().map(|count| *count as f64 * 1e9 / WINDOW_NS as f64).collect()
}
