//! The family of files in virtual time: what an access specification asks for is what reaches the
//! disk, and what the disk spoils is found.

use std::rc::Rc;
use std::sync::mpsc::channel;

use crate::support::{MIB, Ran, constant, run_on};
use plimsoll_io::{
    Clock, Disk, DiskErrorKind, Effect, FaultRule, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    OperationKind, Purpose, Random, Tracking,
};
use plimsoll_run::{Ending, Output, RunSpec, StopSignal, built_in, execute};
use serde_json::{Value, json};

fn line(share: u32, size: u64, read: u32, random: u32) -> Value {
    json!({"share_percent": share, "size_bytes": size, "read_percent": read,
        "random_percent": random,
           "delay_ms": 0, "burst": 1, "align_bytes": 0, "reply_bytes": 0})
}

fn slots(count: u32) -> Value {
    json!({"sessions": count, "shared": false})
}

fn arrivals(per_s: f64, slots: u32) -> Value {
    json!({"transactions_per_s": per_s, "spacing": "regular", "sessions_max": slots})
}

/// Prepare, ramp up, measure, stop.
fn spec(access: &[Value], load: Value, seconds: f64) -> Value {
    let file = |number: u64| {
        json!({"file_name": format!("file{number:03}.dat"),
        "size_bytes": 4 * MIB, "seed": number, "existing_records": null})
    };
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 1000, "hung_after_ms": 30000,
            "io_method": "auto",
        "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "files", "unfinished": false,
                "directory": "/data/one",
            "log_directory": "/data/one", "databases": [file(1)], "data_pattern": 2, "verify": false
        }],
        "workloads": [{
            "name": "mix", "instances": ["one"], "family": "files", "access": access, "workers": 1,
            "below_block": "refuse", "load": load
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "ramp up", "action": {"kind": "soak", "duration_s": 1.0,
                "until_utc_s": null}, "workloads": ["mix"]},
            {"name": "measure", "action": {"kind": "measure", "duration_s": seconds},
                "workloads": ["mix"]},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    })
}

fn complete(disk: &Rc<MemoryDisk>, spec: &Value) -> Ran {
    let ran = run_on(disk, spec);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    ran
}

fn bytes(ran: &Ran, metric: &str) -> u64 {
    ran.figures(metric).iter().map(|figures| figures.bytes).sum()
}

/// A closed load keeps its depth on every target: with 2 ms for each transfer, eight slots on each
/// of two files make 8,000 a second.
#[test]
fn depth_is_kept_on_every_target_of_every_worker() {
    let mut spec = spec(&[line(100, 4096, 100, 100)], slots(8), 10.0);
    spec["workloads"][0]["workers"] = json!(2);
    let mut second = spec["instances"][0]["databases"][0].clone();
    second["file_name"] = json!("file002.dat");
    spec["instances"][0]["databases"].as_array_mut().unwrap().push(second);
    let ran = complete(&constant(2_000_000), &spec);
    assert!(ran.count("file_read").abs_diff(80_000) <= 16, "{}", ran.count("file_read"));
    assert_eq!(ran.highest_level("in_flight"), 16.0);
    assert_eq!(ran.count("database_read"), ran.count("file_io_4k"));
}

/// Arrivals come at the rate that was asked for, and the ramp before them is not measured.
#[test]
fn a_rate_is_held_exactly() {
    let ran = complete(
        &constant(2_000_000),
        &spec(&[line(100, 4096, 80, 100)], arrivals(140.0, 8), 30.0),
    );
    let done = ran.count("file_read") + ran.count("file_write");
    assert!(done.abs_diff(4200) <= 1, "{done}");
    let share = ran.count("file_read") as f64 / done as f64;
    assert!((share - 0.8).abs() < 0.02, "{share}");
}

/// Where the depth is the limit, arrivals wait for a slot, and that wait is told apart from the
/// generator's own delay.
#[test]
fn too_little_depth_shows_as_waiting_for_a_slot() {
    let ran = complete(
        &constant(20_000_000),
        &spec(&[line(100, 4096, 100, 100)], arrivals(140.0, 2), 10.0),
    );
    assert!(ran.count("pool_wait") > 900, "{}", ran.count("pool_wait"));
    assert!(ran.count("file_read") <= 1002, "{}", ran.count("file_read"));
    assert_eq!(ran.quantile_ns(&["arrival_lag"], 0.99), 0);
}

/// A pair of request and reply is one transaction, timed as a whole; both are transfers of their
/// own.
#[test]
fn replies_are_part_of_their_transaction() {
    let mut access = line(100, 8192, 100, 100);
    access["reply_bytes"] = json!(512);
    let ran = complete(&constant(2_000_000), &spec(&[access], slots(1), 10.0));
    let transactions = ran.count("file_read");
    assert!(transactions.abs_diff(2500) <= 1, "{transactions}");
    assert_eq!(ran.mean_ns("file_read"), 4_000_000.0);
    assert!(ran.count("database_write").abs_diff(transactions) <= 1);
    assert!(ran.count("file_io_512").abs_diff(transactions) <= 1);
    assert_eq!(ran.count("file_write"), 0);
}

fn blocks_of_4096(latency_ns: u64) -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        alignment_bytes: 4096,
        latency: LatencyPlan::of(Latency::Constant(latency_ns)),
        tracking: Tracking::Nothing,
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

/// What is shorter than a block of the storage is done as the plan says, and counted: silently, the
/// load would be another one.
#[test]
fn sizes_below_the_logical_block_are_refused_rounded_or_changed_in_place() {
    let access = [line(50, 512, 0, 100), line(50, 4096, 0, 100)];
    let mut spec = spec(&access, slots(4), 5.0);
    let refused = run_on(&blocks_of_4096(1_000_000), &spec);
    let text = refused.outcome.error.expect("it cannot be done").text;
    assert!(text.contains("a line of 512 bytes"), "{text}");
    assert!(text.contains("/data/one/file001.dat, which have 4096 bytes"), "{text}");

    spec["workloads"][0]["below_block"] = json!("round");
    let rounded = complete(&blocks_of_4096(1_000_000), &spec);
    assert_eq!(bytes(&rounded, "database_write"), 4096 * rounded.count("database_write"));
    assert_eq!(rounded.count("database_read"), 0);
    assert!(rounded.count("file_below_block").abs_diff(rounded.count("file_io_512")) <= 4);

    spec["workloads"][0]["below_block"] = json!("read_modify_write");
    let changed = complete(&blocks_of_4096(1_000_000), &spec);
    let small = changed.count("file_io_512");
    assert!(changed.count("database_read").abs_diff(small) <= 4, "{small}");
    assert_eq!(bytes(&changed, "database_read"), 4096 * changed.count("database_read"));
}

fn verified(access: &[Value]) -> Value {
    let mut spec = spec(access, slots(8), 4.0);
    spec["instances"][0]["verify"] = json!(true);
    let checksum = json!({"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
        "reads_in_flight": 4}, "workloads": []});
    spec["phases"].as_array_mut().unwrap().push(checksum);
    spec
}

/// Sound storage is never accused, in any data pattern, with transfers that overlap and parts of
/// blocks that are changed.
#[test]
fn sound_storage_passes_verification() {
    let access = [line(40, 512, 50, 100), line(30, 3 * 4096, 50, 60), line(30, 65536, 50, 100)];
    for pattern in 0..3 {
        let mut spec = verified(&access);
        spec["instances"][0]["data_pattern"] = json!(pattern);
        spec["workloads"][0]["below_block"] = json!("read_modify_write");
        let ran = complete(&blocks_of_4096(1_000_000), &spec);
        let report = &ran.outcome.phases[4].result.checksums[0].report;
        assert_eq!((report.pages_seen, report.bad), (8192, 0), "{:?}", report.reasons);
    }
}

/// Lost, torn, misplaced and flipped bytes are found where they are read, and the run ends as
/// damaged data.
#[test]
fn what_the_storage_spoils_is_found() {
    for effect in
        [Effect::LoseWrite, Effect::TearWrite, Effect::MisdirectWithinFile, Effect::FlipStored]
    {
        let disk = constant(1_000_000);
        let rule = FaultRule::new(effect).with_kind(OperationKind::Write);
        disk.inject(rule.with_purpose(Purpose::DatabaseWrite).nth(200));
        let ran = run_on(&disk, &verified(&[line(100, 65536, 50, 100)]));
        let text = ran.outcome.error.unwrap_or_else(|| panic!("{effect:?} was not found")).text;
        assert!(text.contains("is not what was written there"), "{effect:?}: {text}");
        assert!(text.contains("file001.dat"), "{text}");
    }
}

/// A load that only writes reads nothing back, and what lay there before is sound by itself.
#[test]
fn a_lost_write_that_nothing_read_is_found_by_the_checksum_phase() {
    let disk = constant(1_000_000);
    let rule = FaultRule::new(Effect::LoseWrite).with_purpose(Purpose::DatabaseWrite);
    disk.inject(rule.with_probability(0.3));
    let ran = complete(&disk, &verified(&[line(100, 65536, 0, 100)]));
    let checksums = &ran.outcome.phases[4].result.checksums;
    let bad: u64 = checksums.iter().map(|checksum| checksum.report.bad).sum();
    assert!((100..8192).contains(&bad), "{bad} sectors");
    let reasons: Vec<_> = checksums.iter().flat_map(|checksum| &checksum.report.reasons).collect();
    assert!(reasons[0].contains("was written last"), "{reasons:?}");
}

/// Without this a result could not be repeated.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let access = [line(50, 512, 70, 50), line(50, 65536, 30, 100)];
    let spec = spec(&access, slots(4), 5.0);
    let run = || complete(&constant(1_000_000), &spec).rows;
    assert!(run() == run());
}

/// A stall is hidden by a closed load, which waits with the storage, and felt by one that arrives.
#[test]
fn a_stall_is_felt_by_arrivals_and_hidden_by_slots() {
    let p95 = |load: Value| {
        let disk = constant(1_000_000);
        let rule = FaultRule::new(Effect::Delay(5_000_000_000)).with_purpose(Purpose::DatabaseRead);
        disk.inject(rule.between(20_000_000_000, 25_000_000_000));
        let ran = complete(&disk, &spec(&[line(100, 4096, 100, 100)], load, 60.0));
        ran.quantile_ns(&["file_read"], 0.95)
    };
    assert!(p95(slots(4)) < 2_000_000);
    assert!(p95(arrivals(100.0, 4)) > 1_000_000_000);
}

/// What no file can do is said before anything is written.
#[test]
fn impossible_plans_are_refused() {
    let good = spec(&[line(100, 4096, 50, 50)], slots(4), 1.0);
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut plan = good.clone();
        change(&mut plan);
        match RunSpec::from_json(&plan.to_string()) {
            Err(error) => error.to_string(),
            Ok(spec) => {
                let disk = constant(1000);
                let (samples, _rows) = channel();
                let (events, _told) = channel();
                let output = Output { samples, events };
                let disk: Rc<MemoryDisk> = disk;
                let clock = disk.clock().clone();
                let outcome =
                    execute(spec, clock, disk as Rc<dyn Disk>, output, StopSignal::default());
                outcome.error.expect("it is wrong").text
            }
        }
    };
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Change<'_>, &str); 8] = [
        (&|plan| plan["workloads"][0]["access"][0]["share_percent"] = json!(90), "add up to 90 %"),
        (&|plan| plan["workloads"][0]["access"][0]["colour"] = json!(1), "unknown field `colour`"),
        (
            &|plan| plan["workloads"][0]["access"][0]["size_bytes"] = json!(5 * MIB),
            "do not fit into",
        ),
        (&|plan| plan["workloads"][0]["workers"] = json!(3), "take a multiple"),
        (&|plan| plan["workloads"][0]["load"]["shared"] = json!(true), "one pool of sessions"),
        (&|plan| plan["instances"][0]["data_pattern"] = json!(3), "write 0, 1 or 2"),
        (&|plan| plan["instances"][0]["page_bytes"] = json!(4096), "unknown field `page_bytes`"),
        (
            &|plan| plan["instances"][0]["databases"][0]["size_bytes"] = json!(1000),
            "whole number of MiB",
        ),
    ];
    for (change, expected) in cases {
        let text = refusal(change);
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let delayed = refusal(&|plan| {
        plan["workloads"][0]["access"][0]["delay_ms"] = json!(5);
        plan["workloads"][0]["load"] = arrivals(10.0, 4);
    });
    assert!(delayed.contains("have delays"), "{delayed}");
    assert!(built_in().backends().contains(&"files"));
}

fn failed(disk: &Rc<MemoryDisk>, spec: &Value) -> plimsoll_run::ErrorReport {
    let ran = run_on(disk, spec);
    assert_eq!(ran.outcome.ending, Ending::Failed);
    ran.outcome.error.expect("a reason")
}

/// What goes wrong below ends the run with its reason: too little room, a read that fails, a file
/// that is gone, one that was cut.
#[test]
fn faults_end_the_run_with_their_reason() {
    let access = [line(100, 4096, 100, 100)];
    let full = MemoryOptions { capacity_bytes: Some(MIB), ..MemoryOptions::default() };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), full);
    disk.create_directory("/data/one");
    let error = failed(&disk, &spec(&access, slots(4), 5.0));
    assert_eq!(error.family, "config");
    assert!(error.text.contains("no space left"), "{}", error.text);

    let disk = constant(1_000_000);
    let rule =
        FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::DatabaseRead);
    disk.inject(rule.nth(500));
    let error = failed(&disk, &spec(&access, slots(4), 5.0));
    assert_eq!(error.family, "disk");
    assert!(error.text.contains("file001.dat"), "{}", error.text);

    let mut there = spec(&access, slots(4), 5.0);
    there["instances"][0]["databases"][0]["existing_records"] = json!(8192);
    let error = failed(&constant(1_000_000), &there);
    assert!(error.text.contains("file001.dat"), "{}", error.text);

    let disk = constant(1_000_000);
    complete(&disk, &spec(&access, slots(4), 1.0));
    there["instances"][0]["databases"][0]["size_bytes"] = json!(8 * MIB);
    let error = failed(&disk, &there);
    assert_eq!(error.family, "corruption");
    assert!(error.text.contains("is shorter than it was prepared"), "{}", error.text);
}

/// A file whose preparation was cut off is written again, and one that was prepared is read as it
/// was left: nothing old is accused.
#[test]
fn a_run_goes_on_with_what_an_earlier_one_left() {
    let disk = constant(1_000_000);
    disk.inject(
        FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::Prepare).nth(6),
    );
    let access = [line(100, 4096, 50, 100)];
    let mut spec = verified(&access);
    failed(&disk, &spec);
    spec["instances"][0]["unfinished"] = json!(true);
    let again = complete(&disk, &spec);
    assert_eq!(again.told("prepared_anew").len(), 1);
    spec["instances"][0]["unfinished"] = json!(false);
    spec["instances"][0]["databases"][0]["existing_records"] = json!(8192);
    let third = complete(&disk, &spec);
    assert!(third.told("prepared_anew").is_empty());
    assert_eq!(third.count("prepare"), 0);
}

/// Why: a second run began to count its versions where the first one had. It wrote the same bytes
/// to the same places, so that a storage that lost all of them passed, and one that drops what it
/// holds already was fast.
#[test]
fn a_second_run_on_the_same_files_writes_what_was_never_there() {
    let disk = constant(1_000_000);
    let mut spec = verified(&[line(100, 65536, 0, 100)]);
    complete(&disk, &spec);
    spec["instances"][0]["databases"][0]["existing_records"] = json!(8192);
    let rule = FaultRule::new(Effect::LoseWrite).with_purpose(Purpose::DatabaseWrite);
    disk.inject(rule.with_probability(1.0));
    let second = complete(&disk, &spec);
    let report = &second.outcome.phases[4].result.checksums[0].report;
    assert!(report.bad > 4096, "{} sectors", report.bad);
}

/// What a file has lost of its end cannot be read, and is damage all the same.
#[test]
fn a_file_without_its_end_is_damaged() {
    let disk = constant(1_000_000);
    let mut spec = verified(&[line(100, 65536, 50, 100)]);
    complete(&disk, &spec);
    let file = &mut spec["instances"][0]["databases"][0];
    file["existing_records"] = json!(12288);
    file["size_bytes"] = json!(6 * MIB);
    spec["workloads"] = json!([]);
    let checksum = spec["phases"][4].clone();
    spec["phases"] = json!([checksum]);
    let ran = complete(&disk, &spec);
    let report = &ran.outcome.phases[0].result.checksums[0].report;
    assert_eq!((report.pages_seen, report.bad), (8192, 4096), "{:?}", report.reasons);
    assert!(report.reasons[0].contains("ends after 4194304 of 6291456 bytes"), "{report:?}");
}
