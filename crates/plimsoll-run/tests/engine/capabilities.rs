//! What the published test tool's engine can do, each capability by its number in the reference
//! list (ENG-01 to ENG-24), seen from outside: a whole run of the main job, judged by its samples,
//! its events and the files it leaves.

use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, MemoryDisk, NANOS_PER_MILLISECOND, NANOS_PER_SECOND,
    OperationKind,
};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Event, Output, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

use super::{MIB, memory, memory_with, spec};

/// Position of the measured phase in [`spec`].
const MEASURE: u32 = 2;

struct Ran {
    outcome: RunOutcome,
    rows: Vec<Row>,
    events: Vec<Event>,
}

impl Ran {
    fn on(disk: &Rc<MemoryDisk>, spec: &Value) -> Ran {
        let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
        let (samples, rows) = channel();
        let (events, told) = channel();
        let output = Output { samples, events };
        let clock = disk.clock().clone();
        let outcome = execute(spec, clock, disk.clone(), output, StopSignal::default());
        Ran {
            outcome,
            rows: rows.try_iter().flatten().collect(),
            events: told.try_iter().collect(),
        }
    }

    fn complete(disk: &Rc<MemoryDisk>, spec: &Value) -> Ran {
        let ran = Ran::on(disk, spec);
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        ran
    }

    fn rows<'a>(&'a self, phase: u32, metric: &str) -> impl Iterator<Item = &'a Row> {
        let code = metric_code(metric).expect("a metric");
        self.rows.iter().filter(move |row| row.metric == code && row.phase == phase)
    }

    fn count(&self, metric: &str) -> u64 {
        self.rows(MEASURE, metric).map(|row| row.count).sum()
    }

    fn mean_bytes(&self, metric: &str) -> f64 {
        let bytes: u64 = self.rows(MEASURE, metric).map(|row| row.bytes).sum();
        bytes as f64 / self.count(metric) as f64
    }

    fn operations(&self) -> u64 {
        ["insert", "delete", "replace", "read"].map(|kind| self.count(kind)).iter().sum()
    }

    fn said(&self, kind: &str) -> &str {
        let found = self.events.iter().find(|event| event.kind == kind);
        &found.unwrap_or_else(|| panic!("no event {kind} among {:?}", self.events)).text
    }
}

fn measured_for(seconds: f64) -> Value {
    let mut spec = spec();
    spec["phases"][2]["action"]["duration_s"] = json!(seconds);
    spec
}

fn logs_in(disk: &MemoryDisk, directory: &str) -> Vec<(String, u64)> {
    let files = disk.list_files();
    let directory = directory.trim_start_matches('/');
    let logs = files.iter().filter(|(path, _)| {
        path.starts_with(directory) && path.extension().is_some_and(|end| end == "log")
    });
    logs.map(|(path, length)| (path.file_name().expect("a name").to_string_lossy().into(), *length))
        .collect()
}

/// ENG-02: every edition's page size; transfers are whole pages, and a transactional read is one
/// page when nothing merges.
#[test]
fn transfers_are_whole_pages_of_the_size_asked_for() {
    for page_bytes in [4096, 8192, 32768] {
        let mut spec = measured_for(2.0);
        spec["instances"][0]["page_bytes"] = json!(page_bytes);
        spec["instances"][0]["databases"][0]["record_bytes"] = json!(999);
        spec["instances"][0]["maintenance"] = Value::Null;
        let ran = Ran::complete(&memory(), &spec);
        for metric in ["database_read", "database_write"] {
            let partial: Vec<&Row> =
                ran.rows(MEASURE, metric).filter(|row| row.bytes % page_bytes != 0).collect();
            assert!(partial.is_empty(), "{metric}: {partial:?}");
            let pages = ran.mean_bytes(metric) / page_bytes as f64;
            assert!((1.0..2.0).contains(&pages), "{metric}: {pages} pages a transfer");
        }
    }
}

/// ENG-03: a generation is one MiB, has the next number, and is named by it.
#[test]
fn generations_are_one_mib_and_consecutive() {
    let mut spec = measured_for(4.0);
    spec["instances"][0]["circular_log"] = json!(false);
    let disk = memory();
    Ran::complete(&disk, &spec);
    let logs = logs_in(&disk, "/data/one");
    assert!(logs.iter().all(|(_, length)| *length == MIB), "{logs:?}");
    let mut numbers: Vec<u32> = logs
        .iter()
        .filter_map(|(name, _)| {
            u32::from_str_radix(name.strip_prefix("E00")?.strip_suffix(".log")?, 16).ok()
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.len() >= 3, "{logs:?}");
    assert!(
        numbers.iter().copied().eq(1..=numbers.len() as u32),
        "kept from the first on: {numbers:?}"
    );
}

/// ENG-04: the cache grows under load, stays below its limit, and is told in every sample.
#[test]
fn the_cache_grows_to_its_limit_and_not_beyond() {
    let ran = Ran::complete(&memory(), &measured_for(2.0));
    let limit = 4.0 * MIB as f64;
    let used: Vec<f64> = ran
        .rows
        .iter()
        .filter(|row| Some(row.metric) == metric_code("cache_used"))
        .map(|row| row.value)
        .collect();
    assert!(used.iter().all(|value| *value <= limit), "{used:?}");
    let at_the_end = ran.rows(MEASURE, "cache_used").last().expect("a sample").value;
    assert!(at_the_end >= 0.9 * limit, "{at_the_end}");
    assert!(ran.rows(MEASURE, "cache_limit").all(|row| row.value == limit));
}

/// ENG-05: cleaning starts when one per cent of the cache is left and stops at two, printed as the
/// published logs do: 5.1 and 10.2 MB of 512.
#[test]
fn cleaning_thresholds_are_told_in_megabytes() {
    let mut spec = measured_for(0.5);
    spec["instances"][0]["cache_bytes_max"] = json!(512 * MIB);
    spec["instances"][0]["cache_bytes_min"] = json!(64 * MIB);
    spec["phases"] = json!([spec["phases"][0], spec["phases"][3]]);
    let ran = Ran::complete(&memory(), &spec);
    let text = ran.said("cache_limits");
    assert!(text.contains("64.0 to 512.0 MiB"), "{text}");
    assert!(text.contains("start 5.1 MiB, stop 10.2 MiB"), "{text}");
}

/// ENG-06 and ENG-07: the shares are those of the mix, and three commits in ten wait for the log.
#[test]
fn the_mix_and_the_share_of_durable_commits_come_out() {
    let mut busy = measured_for(60.0);
    busy["workloads"][0]["load"]["sessions"] = json!(1);
    busy["workloads"][0]["sluggish"] = json!(0.0);
    let ran = Ran::complete(&memory(), &busy);
    let total = ran.operations() as f64;
    for (kind, share) in [("insert", 0.40), ("delete", 0.20), ("replace", 0.05), ("read", 0.35)] {
        let seen = ran.count(kind) as f64 / total;
        let tolerance = 4.0 * (share * (1.0 - share) / total).sqrt();
        assert!((seen - share).abs() <= tolerance, "{kind}: {seen} of {total} operations");
    }
    // One session alone shares no flush. Each durable commit of an update is one; so is each
    // durable commit of a read before which somebody committed lazily, six in ten of them.
    let updates = total - ran.count("read") as f64;
    let flushes = ran.count("log_write") as f64 / updates;
    assert!((0.36..0.44).contains(&flushes), "{flushes} flushes a commit");
    let mut odd = spec();
    odd["workloads"][0]["mix"]["read_percent"] = json!(34);
    let error = RunSpec::from_json(&odd.to_string()).expect_err("99 per cent").to_string();
    assert!(error.contains("99"), "{error}");
}

/// ENG-08: more sessions bring more, as long as the disk has more to give; the number is told.
#[test]
fn sessions_multiply_the_load_on_a_disk_that_scales() {
    let rates = [1, 2, 4].map(|sessions| {
        let mut spec = measured_for(4.0);
        spec["workloads"][0]["load"]["sessions"] = json!(sessions);
        let ran = Ran::complete(&memory(), &spec);
        assert!(ran.rows(MEASURE, "sessions").all(|row| row.value == f64::from(sessions)));
        ran.count("database_read") as f64
    });
    for pair in rates.windows(2) {
        assert!((1.6..2.4).contains(&(pair[1] / pair[0])), "{rates:?}");
    }
}

/// ENG-10, ENG-11: maintenance reads 256 KiB at a time, a read for each throttle pause and its own
/// latency, counted apart; switched off, there is none.
#[test]
fn maintenance_keeps_its_pace_and_can_be_switched_off() {
    let on = Ran::complete(&memory(), &measured_for(10.0));
    let mean_bytes = on.mean_bytes("maintenance");
    assert!(
        (0.9 * 262_144.0..=262_144.0).contains(&mean_bytes),
        "{mean_bytes}: only the last read of a pass may be shorter"
    );
    let period_ms = 10_000.0 / on.count("maintenance") as f64;
    assert!((20.0..23.0).contains(&period_ms), "20 ms pause and 1 ms read: {period_ms} ms");
    let mut spec = measured_for(2.0);
    spec["instances"][0]["maintenance"] = Value::Null;
    assert_eq!(Ran::complete(&memory(), &spec).count("maintenance"), 0);
}

/// ENG-12: each further copy reads the log back once, in large reads; a single copy reads none.
#[test]
fn each_further_copy_reads_the_log_back_once() {
    let logged = |ran: &Ran| {
        ran.rows
            .iter()
            .filter(|row| Some(row.metric) == metric_code("log_replication"))
            .map(|row| row.bytes)
            .sum::<u64>() as f64
    };
    let bytes = [1, 2, 3].map(|copies| {
        let mut spec = measured_for(6.0);
        spec["instances"][0]["copies_count"] = json!(copies);
        let ran = Ran::complete(&memory(), &spec);
        if copies == 2 {
            let mean = ran.mean_bytes("log_replication");
            assert!((100_000.0..262_144.0).contains(&mean), "{mean} bytes a read");
        }
        logged(&ran)
    });
    assert_eq!(bytes[0], 0.0);
    assert!(bytes[1] > 2.0 * MIB as f64, "{bytes:?}");
    assert!((1.9..2.1).contains(&(bytes[2] / bytes[1])), "{bytes:?}");
}

/// ENG-13, ENG-17: databases left open are in the dirty state, the next run replays their log and
/// says so, and a clean stop is told.
#[test]
fn what_was_left_open_is_recovered_and_said() {
    let disk = memory();
    let mut running = measured_for(3.0);
    running["instances"][0]["circular_log"] = json!(false);
    let first = Ran::complete(&disk, &running);
    assert_eq!(first.said("closed"), "every database was closed cleanly");
    let records = first.outcome.phases[3].result.databases[0][0].records_ever;
    let mut again = running.clone();
    again["instances"][0]["databases"][0]["existing_records"] = json!(records);
    again["seed"] = json!(3);
    let gone_from = disk.clock().now() + 2 * NANOS_PER_SECOND;
    let refused = FaultRule::new(Effect::Fail(DiskErrorKind::Gone)).with_kind(OperationKind::Write);
    disk.inject(refused.between(gone_from, u64::MAX));
    assert_eq!(Ran::on(&disk, &again).outcome.ending, Ending::Failed);
    disk.clear_faults();
    let mut after = again.clone();
    after["phases"] = json!([again["phases"][0], again["phases"][3], again["phases"][4]]);
    let recovered = Ran::complete(&disk, &after);
    let text = recovered.said("recovered");
    assert!(text.contains("its log was replayed from generation"), "{text}");
    assert_eq!(recovered.said("closed"), "every database was closed cleanly");
    let checksum = &recovered.outcome.phases[2].result.checksums[0].report;
    assert_eq!((checksum.bad, checksum.wrong_page_number), (0, 0));
}

/// ENG-16: two instances with paths of their own for databases and logs keep to them, and are
/// counted apart.
#[test]
fn every_instance_keeps_to_its_own_paths() {
    let mut two = measured_for(2.0);
    let mut second = two["instances"][0].clone();
    second["name"] = json!("two");
    second["directory"] = json!("/data/two");
    second["log_directory"] = json!("/log/two");
    second["databases"][0]["seed"] = json!(6);
    two["instances"][0]["log_directory"] = json!("/log/one");
    two["instances"].as_array_mut().expect("a list").push(second);
    two["workloads"][0]["instances"] = json!(["one", "two"]);
    let disk = memory();
    for directory in ["/data/two", "/log/one", "/log/two"] {
        disk.create_directory(directory);
    }
    let ran = Ran::complete(&disk, &two);
    for name in ["one", "two"] {
        assert!(
            logs_in(&disk, &format!("/data/{name}")).is_empty(),
            "logs beside the database of {name}"
        );
        assert!(!logs_in(&disk, &format!("/log/{name}")).is_empty());
    }
    for instance in 0..2 {
        let reads: u64 = ran
            .rows(MEASURE, "database_read")
            .filter(|row| row.instance == instance)
            .map(|row| row.count)
            .sum();
        assert!(reads > 50, "instance {instance}: {reads} reads");
    }
}

/// ENG-15: a database grows by whole extents and is always header pages and whole pages long.
#[test]
fn databases_grow_by_whole_extents() {
    let disk = memory();
    let ran = Ran::complete(&disk, &measured_for(30.0));
    let sizes: Vec<f64> = ran.rows(MEASURE, "database_size").map(|row| row.value).collect();
    let (first, last) = (sizes[0] as u64, sizes[sizes.len() - 1] as u64);
    assert!(last > first, "it did not grow in {} operations", ran.operations());
    assert_eq!((last - first) % (256 * 32768), 0, "{first} to {last}");
    let file = disk.bytes("/data/one/database001.edb").expect("the database");
    assert_eq!(file.len() as u64, last);
}

/// ENG-18: with circular logging the number of generations on disk stays small, however much is
/// logged.
#[test]
fn circular_logging_bounds_the_log() {
    let disk = memory();
    let ran = Ran::complete(&disk, &measured_for(20.0));
    let generation = ran.rows(MEASURE, "log_generation").last().expect("a sample").value;
    let kept = logs_in(&disk, "/data/one").len();
    assert!(generation > 16.0, "{generation} generations were written");
    assert!(kept <= 12, "{kept} of {generation} are kept at a depth of 4 MiB");
}

/// ENG-19: the counter of page fault stalls is in every sample, and zero on a disk that keeps up.
#[test]
fn page_fault_stalls_are_counted_and_zero_when_the_disk_keeps_up() {
    let mut roomy = measured_for(2.0);
    roomy["instances"][0]["databases"][0]["size_bytes"] = json!(48 * MIB);
    roomy["instances"][0]["cache_bytes_max"] = json!(16 * MIB);
    roomy["workloads"][0]["load"]["sessions"] = json!(1);
    let ran = Ran::complete(&memory(), &roomy);
    assert!(ran.rows(MEASURE, "page_fault_stall").count() >= 4);
    assert_eq!(ran.count("page_fault_stall"), 0);
    // Writes that take a quarter of a second cannot be waited for by a cache of a few pages.
    let slow = memory_with(250 * NANOS_PER_MILLISECOND);
    let mut small = measured_for(20.0);
    small["instances"][0]["cache_bytes_max"] = json!(MIB);
    small["instances"][0]["writes_outstanding_max"] = json!(1);
    small["workloads"][0]["load"]["sessions"] = json!(12);
    small["workloads"][0]["sluggish"] = json!(0.0);
    small["workloads"][0]["mix"] = json!({"insert_percent": 0, "delete_percent": 0,
        "replace_percent": 100, "read_percent": 0, "lazy_commit_percent": 100});
    assert!(Ran::complete(&slow, &small).count("page_fault_stall") > 0);
}

/// ENG-20: transactions are counted by instance, and the I/O that one of them costs hardly depends
/// on the sessions.
#[test]
fn the_cost_of_a_transaction_is_stable_across_sessions() {
    let costs = [2, 8].map(|sessions| {
        let mut spec = measured_for(10.0);
        spec["workloads"][0]["load"]["sessions"] = json!(sessions);
        let ran = Ran::complete(&memory(), &spec);
        (ran.count("database_read") + ran.count("database_write")) as f64 / ran.operations() as f64
    });
    assert!((0.8..1.25).contains(&(costs[0] / costs[1])), "{costs:?}");
}

/// ENG-21: neighbouring pages leave in one write, and the mean size of a write says so.
#[test]
fn neighbouring_pages_are_written_together() {
    let ran = Ran::complete(&memory(), &measured_for(10.0));
    let pages = ran.mean_bytes("database_write") / 32768.0;
    assert!((1.02..2.0).contains(&pages), "{pages} pages a write");
}
