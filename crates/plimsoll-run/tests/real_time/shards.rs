//! A run on several threads, in real time: its files are those that one thread would have written,
//! and what goes wrong on one thread ends all of them.
//!
//! Each thread has a disk in memory of its own, which shows that nothing is shared but the plan;
//! one test uses the disk under target/.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    Purpose, Random, Tracking, allowed_processors,
};
use plimsoll_measure::metric_code;
use plimsoll_run::{
    Ending, Event, Output, RunError, RunOutcome, RunSpec, SearchEnd, StopSignal, Storage, built_in,
    execute_live, execute_on_threads,
};
use serde_json::{Value, json};

use crate::support::{MEASURE, Ran};

/// The plan of the support with so many instances.
fn spec(instances: usize, threads: u32, load: &Value, seconds: f64) -> Value {
    let mut spec = crate::support::spec("engine", load.clone(), seconds);
    let one = spec["instances"][0].clone();
    let names: Vec<String> = (1..=instances).map(|number| format!("i{number:02}")).collect();
    let each = names.iter().map(|name| {
        let mut instance = one.clone();
        instance["name"] = json!(name);
        instance["directory"] = json!(format!("/data/{name}"));
        instance["log_directory"] = json!(format!("/data/{name}"));
        instance
    });
    spec["instances"] = each.collect();
    spec["workloads"][0]["instances"] = json!(names);
    spec["threads"] = json!(threads);
    spec["sample_interval_ms"] = json!(100);
    spec["hung_after_ms"] = json!(400);
    spec["phases"][1]["action"]["cache_percent"] = json!(50);
    spec
}

/// Runs it with `faults` on the disk of the second thread; it is asked to stop when an event of
/// kind `stops_at` is told.
#[expect(
    clippy::disallowed_methods,
    reason = "somebody listens beside the run, which must end in real time"
)]
fn run_with(spec: &Value, faults: &[FaultRule], stops_at: &'static str) -> Ran {
    let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
    let directories: Vec<_> =
        spec.instances.iter().map(|instance| instance.directory.clone()).collect();
    let faults = faults.to_vec();
    let open = move |shard: usize, clock: Rc<Clock>| -> Result<Storage, RunError> {
        let options = MemoryOptions {
            latency: LatencyPlan::of(Latency::Constant(100_000)),
            tracking: Tracking::Nothing,
            ..MemoryOptions::default()
        };
        let disk = MemoryDisk::new(clock, Random::from_seed(shard as u64), options);
        directories.iter().for_each(|path| disk.create_directory(path));
        if shard == 1 {
            faults.iter().for_each(|fault| disk.inject(fault.clone()));
        }
        Ok(Storage::of(disk))
    };
    let ((samples, rows), (events, told)) = (channel(), channel::<Event>());
    let stop = StopSignal::default();
    let stopping = stop.clone();
    let listener = std::thread::spawn(move || {
        let mut heard: Vec<Event> = Vec::new();
        while let Ok(event) = told.recv_timeout(Duration::from_secs(12)) {
            if event.kind == stops_at {
                stopping.stop();
            }
            heard.push(event);
        }
        // Nothing more is told for long: a run that has not ended by itself is stopped, and its
        // ending shows that.
        stopping.stop();
        heard
    });
    let outcome = execute_on_threads(built_in, spec, open, Output { samples, events }, &stop);
    Ran {
        outcome: outcome.expect("the threads start"),
        // A thread that was given up may leave its end of the channel open.
        rows: rows.try_iter().flatten().collect(),
        events: listener.join().expect("it only listens"),
    }
}

fn run(spec: &Value) -> Ran {
    let ran = run_with(spec, &[], "never");
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    ran
}

fn sessions(count: u32, shared: bool) -> Value {
    json!({"sessions": count, "shared": shared})
}

fn told<'a>(ran: &'a Ran, kind: &str) -> Vec<&'a str> {
    let events = ran.events.iter().filter(|event| event.kind == kind);
    events.map(|event| event.text.as_str()).collect()
}

/// What the samples of a phase add up to, by place and metric.
fn sums(ran: &Ran, phase: u32) -> BTreeMap<(u32, u32, u32, u32), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in ran.rows.iter().filter(|row| row.phase == phase && row.count > 0) {
        let sum: &mut (u64, u64) =
            sums.entry((row.instance, row.database, row.workload, row.metric)).or_default();
        sum.0 += row.count;
        sum.1 += row.latency_ns_sum;
    }
    sums
}

/// The samples are those of one run: one after the other, each with the rows of every instance, and
/// they add up to the distributions.
#[test]
fn the_samples_of_threads_are_those_of_one_run() {
    let ran = run(&spec(4, 2, &sessions(2, false), 2.0));
    let (mut ends, mut samples) = (BTreeSet::new(), BTreeMap::<u64, Vec<u32>>::new());
    let reads = metric_code("database_read").expect("a metric");
    // Said of every instance that is open, in every sample, also of one whose thread had no
    // processor in it. Before the phase that measures, some are still being opened.
    let limit = metric_code("cache_limit").expect("a metric");
    let mut latest = 0;
    for row in &ran.rows {
        assert!(row.end_ns >= latest, "time does not go back");
        latest = row.end_ns;
        if row.metric == reads && row.database == 1 {
            ends.insert(row.end_ns);
        }
        if row.phase == MEASURE {
            let of_sample = samples.entry(row.end_ns).or_default();
            of_sample.extend((row.metric == limit).then_some(row.instance));
        }
    }
    assert!(ends.len() >= 18, "{} samples", ends.len());
    assert!(samples.len() >= 2, "{} samples of the phase that measures", samples.len());
    for (end_ns, instances) in &samples {
        assert_eq!(instances, &[0, 1, 2, 3], "at {end_ns}");
    }
    let measured: BTreeMap<_, _> = ran
        .outcome
        .figures
        .iter()
        .filter(|figures| figures.phase == MEASURE && figures.count > 0)
        .map(|figures| {
            let metric = metric_code(figures.metric).expect("a metric of the dictionary");
            let place = (figures.instance, figures.database, figures.workload, metric);
            (place, (figures.count, figures.latency_ns_sum))
        })
        .collect();
    assert_eq!(sums(&ran, MEASURE), measured);
    for instance in 0..4 {
        let inserts = ran.figures("insert");
        let own = inserts.iter().find(|figures| figures.instance == instance);
        assert!(own.is_some_and(|own| own.count > 0), "instance {instance} works");
    }
    assert_eq!(told(&ran, "phase_started").len(), 4, "each phase is told once");
    assert_eq!(told(&ran, "closed"), ["every database was closed cleanly"]);
    let sizes = ran.outcome.phases[2].result.databases.iter().map(Vec::len);
    assert_eq!(sizes.collect::<Vec<_>>(), [1, 1, 1, 1]);
}

/// How busy each thread was stands beside the busiest, and which instances it carried.
#[test]
fn each_thread_says_how_busy_it_was() {
    let ran = run(&spec(3, 2, &sessions(2, false), 1.0));
    let busy = metric_code("executor_busy").expect("a metric");
    let mut samples: BTreeMap<u64, BTreeMap<u32, f64>> = BTreeMap::new();
    for row in ran.rows.iter().filter(|row| row.metric == busy) {
        let sample = samples.entry(row.end_ns).or_default();
        sample.insert(row.database, row.value);
    }
    for sample in samples.values() {
        assert_eq!(sample.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert!((sample[&0] - sample[&1].max(sample[&2])).abs() < 1e-12, "{sample:?}");
    }
    let carried = ran.outcome.threads.iter().map(|thread| &thread.instances[..]);
    assert_eq!(
        carried.collect::<Vec<_>>(),
        [&["i01".to_owned(), "i03".to_owned()][..], &["i02".to_owned()][..]]
    );
    assert!(ran.outcome.threads.iter().all(|thread| thread.processor.is_none()));
}

/// A load over several instances is shared out: arrivals and pooled sessions add up to what was
/// asked for.
#[test]
fn a_load_is_shared_out_between_threads() {
    let check = |load: Value, metric: &str, expected: f64| {
        let ran = run(&spec(3, 2, &load, 2.0));
        let code = metric_code(metric).expect("a metric");
        let of_load = |row: &&plimsoll_measure::Row| row.metric == code && row.workload == 1;
        let levels: Vec<f64> = ran
            .rows
            .iter()
            .filter(|row| row.phase == MEASURE)
            .filter(of_load)
            .map(|row| row.value)
            .collect();
        assert!(!levels.is_empty());
        assert!(levels.iter().all(|level| (level - expected).abs() < 1e-6), "{levels:?}");
        ran
    };
    check(sessions(5, true), "sessions", 5.0);
    check(sessions(2, false), "sessions", 6.0);
    let ran = check(crate::support::rate(600.0, 64), "offered_rate", 600.0);
    let done = ran.transactions() as f64;
    assert!((done - 1200.0).abs() < 200.0, "{done} arrivals in two seconds");
    let of_instance = |instance: u32| -> u64 {
        let all = ["insert", "delete", "replace", "read"].map(|kind| ran.figures(kind));
        let own = all.iter().flatten().filter(|figures| figures.instance == instance);
        own.map(|figures| figures.count).sum()
    };
    for instance in 0..3 {
        let done = of_instance(instance);
        assert!((300..500).contains(&done), "instance {instance} did {done}");
    }
}

/// A rate that follows from database I/O is measured over all threads, and each comes to the same.
#[test]
fn a_target_is_calibrated_over_all_threads() {
    let load = json!({"target_iops": 400.0, "spacing": "poisson", "sessions_max": 64,
        "io_per_transaction_assumed": 1.0,
                      "calibrate_s": 1.0});
    let ran = run(&spec(2, 2, &load, 3.0));
    let fixed = &ran.outcome.phases[1].result.calibrations;
    assert_eq!(fixed.len(), 1);
    assert_eq!(told(&ran, "rate_fixed").len(), 1, "it is told once");
    let per_s = ran.transactions() as f64 / 3.0;
    let wanted = fixed[0].transactions_per_s;
    assert!((per_s - wanted).abs() < 0.2 * wanted, "{per_s} a second, {wanted} wanted");
}

/// A search is one search: its rates are those of all threads together.
#[test]
fn a_search_is_led_over_all_threads() {
    let load = json!({
        "search": "max", "sessions": 2, "shared": false, "spacing": "poisson", "sessions_max": 64,
        "step_s": 0.5, "settle_s": 0.1, "tolerance_percent": 20.0,
        "criteria": [{"name": "reads", "metric": "database_read", "statistic": "mean",
            "limit": 50.0}]
    });
    let mut plan = spec(2, 2, &load, 1.0);
    let search = json!({"name": "search", "action": {"kind": "search", "duration_s": 6.0},
        "workloads": ["mix"]});
    plan["phases"].as_array_mut().expect("phases").insert(2, search);
    let ran = run(&plan);
    let found = ran.outcome.phases[2].result.search.as_ref().expect("a search");
    assert!(!found.steps.is_empty() || found.end == SearchEnd::TimeOver);
    assert_eq!(told(&ran, "search_step").len(), found.steps.len(), "each is told once");
    for step in found.steps.iter().filter(|step| step.limited_by.is_none()) {
        let (offered, done) = (step.transactions_per_s, step.done_per_s);
        assert!((done - offered).abs() < 0.25 * offered, "{done} of {offered} a second");
    }
}

fn fault(effect: Effect, purpose: Purpose) -> FaultRule {
    FaultRule::new(effect).with_purpose(purpose).nth(300)
}

/// What a run came to that went wrong on its second thread; the first thread's databases are closed
/// all the same.
#[expect(clippy::disallowed_methods, reason = "a run that fails must end in real time")]
fn failed(faults: &[FaultRule], stops_at: &'static str) -> (RunOutcome, Vec<Event>) {
    let started = Instant::now();
    let ran = run_with(&spec(2, 2, &sessions(3, false), 60.0), faults, stops_at);
    assert!(started.elapsed() < Duration::from_secs(30), "it ends at once");
    assert_eq!(told(&ran, "run_ended_early").len(), 1, "the reason is told once");
    let closed = told(&ran, "closed");
    assert!(closed.iter().any(|text| text.contains("thread 1")), "thread 1 has closed: {closed:?}");
    let operations = ran.outcome.figures.iter().filter(|figures| figures.metric == "insert");
    assert!(operations.map(|figures| figures.count).sum::<u64>() > 0, "what was measured is kept");
    (ran.outcome, ran.events)
}

#[test]
fn a_device_that_vanishes_under_one_thread_ends_all() {
    let gone = fault(Effect::Fail(DiskErrorKind::Gone), Purpose::DatabaseRead);
    let (outcome, _) = failed(&[gone], "never");
    assert_eq!(outcome.ending, Ending::Failed);
    let error = outcome.error.expect("an error");
    assert_eq!(error.family, "disk", "{}", error.text);
}

#[test]
fn a_log_that_fills_under_one_thread_ends_all() {
    let full = fault(Effect::Fail(DiskErrorKind::Full), Purpose::LogWrite);
    let (outcome, _) = failed(&[full], "never");
    assert_eq!(outcome.ending, Ending::Failed);
    let error = outcome.error.expect("an error");
    assert!(error.text.contains("space"), "{}", error.text);
}

#[test]
fn an_io_that_hangs_under_one_thread_is_told_and_all_can_be_stopped() {
    let (outcome, events) = failed(&[fault(Effect::Hang, Purpose::LogWrite)], "hung_io");
    assert_eq!(outcome.ending, Ending::Interrupted, "{:?}", outcome.error);
    assert!(events.iter().any(|event| event.kind == "left_open"), "it is said what is left");
}

/// Many instances on few threads.
#[test]
fn sixty_four_instances_run_on_two_threads() {
    let mut plan = spec(64, 2, &sessions(64, true), 1.0);
    for instance in plan["instances"].as_array_mut().expect("instances") {
        instance["page_bytes"] = json!(4096);
        instance["databases"][0]["size_bytes"] = json!(2 * crate::support::MIB);
        instance["databases"][0]["record_bytes"] = json!(600);
        instance["cache_bytes_max"] = json!(crate::support::MIB);
    }
    plan["phases"][1]["action"]["cache_percent"] = json!(1);
    let ran = run(&plan);
    let works: Vec<u32> =
        ran.figures("database_read").iter().map(|figures| figures.instance).collect();
    assert_eq!(works, (0..64).collect::<Vec<_>>());
    let carried = ran.outcome.threads.iter().map(|thread| thread.instances.len());
    assert_eq!(carried.collect::<Vec<_>>(), [32, 32]);
}

/// More threads than instances are as many as instances, and fewer pooled sessions than threads are
/// refused.
#[test]
fn threads_that_cannot_be_are_not() {
    let few = spec(2, 8, &sessions(2, false), 0.5);
    let read = |spec: &Value| RunSpec::from_json(&spec.to_string());
    assert_eq!(read(&few).expect("a spec").threads_count(), 2);
    let error = read(&spec(3, 3, &sessions(2, true), 0.5))
        .expect_err("two sessions cannot be on three threads");
    assert!(error.to_string().contains("take at least 3 sessions, or fewer threads"), "{error}");
    let none = read(&spec(1, 0, &sessions(2, true), 0.5)).expect_err("no thread");
    assert!(none.to_string().contains("threads is 0"), "{none}");
}

/// On the disk under target/, each thread on a processor of its own: backup, crash, recovery and
/// checksum of all instances.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the directories of the test are made and removed beside the run"
)]
fn all_phases_go_over_all_threads_on_a_real_disk() {
    let home = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shards");
    drop(std::fs::remove_dir_all(&home));
    let mut plan = spec(4, 2, &sessions(1, false), 0.5);
    plan["hung_after_ms"] = json!(30_000);
    plan["pin"] = json!(true);
    let action =
        |name: &str, action: Value| json!({"name": name, "action": action, "workloads": []});
    let reads = |kind: &str| json!({"kind": kind, "read_bytes": 262_144, "reads_in_flight": 4});
    let phases = plan["phases"].as_array_mut().expect("phases");
    phases.insert(3, action("backup", reads("backup")));
    phases.insert(4, action("recover", json!({"kind": "recover"})));
    phases.push(action("checksum", reads("checksum")));
    let text = plan.to_string().replace("/data", home.to_str().expect("UTF-8"));
    for number in 1..=4 {
        std::fs::create_dir_all(home.join(format!("i{number:02}"))).expect("a directory of ours");
    }
    let spec = RunSpec::from_json(&text).expect("the spec is right");
    let ((samples, _rows), (events, _told)) = (channel(), channel());
    let outcome =
        execute_live(spec, Output { samples, events }, StopSignal::default()).expect("it runs");
    std::fs::remove_dir_all(&home).expect("it is ours");
    assert_eq!(outcome.ending, Ending::Complete, "{:?}", outcome.error);
    let of = |name: &str| {
        let phase = outcome.phases.iter().find(|phase| phase.name == name);
        &phase.expect("it is there").result
    };
    let all = [0, 1, 2, 3];
    let instances = |found: Vec<u32>| assert_eq!(found, all);
    instances(of("backup").backups.iter().map(|found| found.instance).collect());
    instances(of("recover").recoveries.iter().map(|found| found.instance).collect());
    instances(of("checksum").checksums.iter().map(|found| found.instance).collect());
    assert!(of("checksum").checksums.iter().all(|found| found.report.bad == 0));
    assert_eq!(outcome.devices.len(), 4);
    let processors = allowed_processors();
    for (number, thread) in outcome.threads.iter().enumerate() {
        assert_eq!(thread.processor, Some(processors[number % processors.len()] as u32));
    }
}
