//! Home folders in virtual time: users keep their pace, every answer is compared, and the tree
//! holds exactly what was made.

use std::rc::Rc;

use crate::support::{Ran, constant, run_on};
use plimsoll_io::{
    DiskErrorKind, Effect, FaultRule, MemoryDisk, NANOS_PER_SECOND, OperationKind, Purpose, Random,
};
use plimsoll_run::{Ending, RunSpec};
use serde_json::{Value, json};

const KIB: u64 = 1024;
/// The operations of an SMB server as published, in percent of those that a client can cause: 22,
/// 19, 14, 7, 13 and 10 of 85.
const PUBLISHED: [(&str, f64); 6] = [
    ("home_op_create", 25.88),
    ("home_op_close", 22.35),
    ("home_op_read", 16.47),
    ("home_op_write", 8.24),
    ("home_op_query_info", 15.29),
    ("home_op_query_directory", 11.76),
];

fn scenario(name: &str, weight: f64, steps: &str) -> Value {
    let steps: Vec<&str> = steps.split_whitespace().collect();
    json!({"name": name, "weight": weight, "steps": steps})
}

/// Those that are shipped.
fn scenarios() -> Vec<Value> {
    vec![
        scenario("copy_in", 9.0, "list_folder probe_new create_new write_new close_new stat_new"),
        scenario("copy_out", 11.0, "stat_file probe_lock open_file read_file close_file stat_file"),
        scenario(
            "edit",
            6.0,
            "stat_file probe_lock open_file read_file close_file create_new write_new sync_new \
             close_new stat_new replace_file",
        ),
        scenario(
            "browse",
            56.0,
            "list_folder stat_file open_file read_head close_file open_file close_file",
        ),
        scenario("search", 3.0, "list_tree stat_file open_file read_head close_file"),
        scenario("delete", 9.0, "stat_file open_file close_file delete_file"),
        scenario("new_folder", 2.0, "list_home probe_new make_folder stat_folder"),
        scenario("remove_folder", 2.0, "list_home remove_folder"),
    ]
}

fn arrivals(per_s: f64, sessions_max: u32) -> Value {
    json!({"transactions_per_s": per_s, "spacing": "regular", "sessions_max": sessions_max})
}

/// Prepare, a second of ramp, measure, audit, stop.
fn spec(homes: u32, load: Value, seconds: f64) -> Value {
    let size = |kib: u64, weight: f64| json!({"bytes": kib * KIB, "weight": weight});
    let tree = json!({
        "file_name": "homes", "size_bytes": 1 << 20, "seed": 7, "existing_records": null
    });
    let phase = |name: &str, action: Value| {
        let loaded = action.get("duration_s").is_some();
        json!({"name": name, "action": action,
            "workloads": if loaded { vec!["users"] } else { vec![] }})
    };
    json!({
        "schema_version": 1, "seed": 1, "sample_interval_ms": 1000, "hung_after_ms": 30000,
        "io_method": "auto", "destroy_serials": [], "max_iops": null, "max_mib_per_s": null,
        "hosts": [{"name": "local"}],
        "targets": [{"name": "disk", "host": "local", "path": "/data"}],
        "instances": [{
            "name": "one", "target": "disk", "backend": "home_folders", "unfinished": false,
            "directory": "/data/one", "log_directory": "/data/one", "databases": [tree],
            "homes": homes, "folders": 4, "files_per_folder": 6, "piece_bytes": 64 * KIB,
            "sizes": [size(4, 20.0), size(16, 30.0), size(64, 25.0), size(256, 15.0),
                size(1024, 8.0), size(4096, 2.0)]
        }],
        "workloads": [{
            "name": "users", "instances": ["one"], "family": "home_folders", "load": load,
            "scenarios": scenarios()
        }],
        "phases": [
            phase("prepare", json!({"kind": "prepare"})),
            phase("ramp up", json!({"kind": "soak", "duration_s": 1.0, "until_utc_s": null})),
            phase("measure", json!({"kind": "measure", "duration_s": seconds})),
            phase("audit", json!({"kind": "audit"})),
            phase("stop", json!({"kind": "stop"}))
        ]
    })
}

/// Small files, so that many scenarios take little memory.
fn small(homes: u32, load: Value, seconds: f64) -> Value {
    let mut spec = spec(homes, load, seconds);
    spec["instances"][0]["sizes"] = json!([
        {"bytes": 4 * KIB, "weight": 3.0}, {"bytes": 16 * KIB, "weight": 1.0}
    ]);
    spec["instances"][0]["piece_bytes"] = json!(8 * KIB);
    spec
}

fn complete(disk: &Rc<MemoryDisk>, spec: &Value) -> Ran {
    let ran = run_on(disk, spec);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    ran
}

fn findings(ran: &Ran) -> Vec<String> {
    let audits = ran.outcome.phases.iter().flat_map(|phase| &phase.result.audits);
    audits.flat_map(|audit| audit.report.findings.clone()).collect()
}

fn counted(ran: &Ran, what: &str) -> u64 {
    let mut audits = ran.outcome.phases.iter().flat_map(|phase| &phase.result.audits);
    audits.next().expect("an audit").report.counts[what]
}

/// Users keep the pace that was planned, and after it every name, length and byte is what they
/// made: the audit reads as many files as the homes hold.
#[test]
fn users_keep_their_pace_and_the_tree_holds_what_they_made() {
    let disk = constant(1_000_000);
    let ran = complete(&disk, &small(20, arrivals(50.0, 20), 60.0));
    assert!(ran.count("home_scenario").abs_diff(3000) <= 2, "{}", ran.count("home_scenario"));
    assert_eq!(findings(&ran), Vec::<String>::new());
    let files = disk.list_files().len() as u64;
    assert_eq!((counted(&ran, "homes"), counted(&ran, "files")), (20, files));
    assert!((240..960).contains(&files), "homes stay about as full as they were made: {files}");
    let kinds = [
        "copy_in",
        "copy_out",
        "edit",
        "browse",
        "search",
        "delete",
        "new_folder",
        "remove_folder",
    ];
    for kind in kinds {
        assert!(ran.count(&format!("home_{kind}")) > 0, "{kind} never happened");
    }
}

/// The operations are distributed as those that were published: the load is the one of a file
/// server and not of a disk.
#[test]
fn the_mix_of_operations_is_the_published_one() {
    let ran = complete(&constant(1000), &spec(30, arrivals(30.0, 30), 150.0));
    let total: u64 = PUBLISHED.iter().map(|(metric, _)| ran.count(metric)).sum();
    for (metric, published) in PUBLISHED {
        let share = 100.0 * ran.count(metric) as f64 / total as f64;
        assert!((share - published).abs() < 3.0, "{metric}: {share:.2} %, published {published} %");
    }
    let other = 100.0 * ran.count("home_op_other") as f64 / total as f64;
    assert!(other < 7.0, "all others are below 6 of 85: {other:.2} %");
}

/// A user does one thing at a time; what waits for that is part of the response time.
#[test]
fn a_busy_user_makes_the_next_scenario_wait() {
    let ran = complete(&constant(50_000_000), &small(2, arrivals(8.0, 40), 20.0));
    assert!(ran.count("home_user_wait") > 50, "{}", ran.count("home_user_wait"));
    assert_eq!(findings(&ran), Vec::<String>::new());
    let response = ran.quantile_ns(&["home_scenario"], 0.95);
    let service = ran.quantile_ns(&["home_browse", "home_copy_in", "home_edit"], 0.95);
    assert!(response > 2 * service, "{response} {service}");
}

/// The same seed gives the same tree and the same figures.
#[test]
fn the_same_seed_gives_the_same_homes() {
    let once = || {
        let disk = constant(1_000_000);
        let ran = complete(&disk, &small(5, arrivals(20.0, 5), 20.0));
        (disk.list_files(), format!("{:?}", ran.outcome.figures))
    };
    assert_eq!(once(), once());
}

/// What the storage spoils is found, when it is read or at the latest by the audit.
#[test]
fn what_the_storage_spoils_is_found() {
    let effects = [
        Effect::LoseWrite,
        Effect::TearWrite,
        Effect::MisdirectToOtherFile,
        Effect::MisdirectWithinFile,
        Effect::FlipStored,
    ];
    for effect in effects {
        let mut found = 0;
        for nth in [3, 15, 27, 40, 52, 65, 77, 90] {
            let disk = constant(1_000_000);
            let rule = FaultRule::new(effect)
                .with_kind(OperationKind::Write)
                .with_purpose(Purpose::DatabaseWrite);
            disk.inject(rule.nth(nth));
            let ran = run_on(&disk, &small(3, arrivals(20.0, 3), 60.0));
            let was_replaced = ran.outcome.error.is_none() && findings(&ran).is_empty();
            if let Some(error) = &ran.outcome.error {
                assert_eq!(error.family, "corruption", "{effect:?}: {}", error.text);
            }
            found += u32::from(!was_replaced);
        }
        // What is deleted before anybody reads it is nobody's loss.
        assert!(found >= 3, "{effect:?} was found {found} times of 8");
    }
}

/// Whatever operation fails, with whatever error, the run ends and says so; it never goes on as if
/// nothing had been, and never falls over.
#[test]
fn random_faults_end_the_run_with_their_reason() {
    let kinds = [
        OperationKind::Open,
        OperationKind::Create,
        OperationKind::Read,
        OperationKind::Write,
        OperationKind::SyncFile,
        OperationKind::Close,
        OperationKind::Rename,
        OperationKind::Delete,
        OperationKind::List,
        OperationKind::Stat,
        OperationKind::MakeDirectory,
        OperationKind::RemoveDirectory,
    ];
    let errors = [
        DiskErrorKind::Medium,
        DiskErrorKind::Gone,
        DiskErrorKind::PermissionDenied,
        DiskErrorKind::ReadOnly,
        DiskErrorKind::Full,
    ];
    let mut random = Random::from_seed(22);
    for round in 0..120 {
        let kind = kinds[round % kinds.len()];
        let error = errors[random.below(errors.len() as u64) as usize];
        let disk = constant(500_000);
        let begun = 2 * NANOS_PER_SECOND;
        let rule = FaultRule::new(Effect::Fail(error)).with_kind(kind).between(begun, u64::MAX);
        disk.inject(rule.nth(1 + random.below(3)));
        let ran = run_on(&disk, &small(4, arrivals(40.0, 4), 60.0));
        let told = ran.outcome.error.as_ref().map(|error| error.text.clone());
        assert_eq!(ran.outcome.ending, Ending::Failed, "{kind:?} {error:?}");
        let text = told.expect("a reason");
        assert!(text.contains("/data/one/homes"), "{kind:?} {error:?}: {text}");
    }
}

/// A slow or hung name is felt by whoever waits for it, and by nobody else's data.
#[test]
fn a_name_that_takes_long_is_felt() {
    let disk = constant(1_000_000);
    let rule = FaultRule::new(Effect::Delay(2 * NANOS_PER_SECOND)).with_kind(OperationKind::Stat);
    disk.inject(rule.nth(20));
    let ran = complete(&disk, &small(5, arrivals(20.0, 5), 20.0));
    let longest = ran.figures("home_op_query_info").iter().map(|item| item.latency_ns_max).max();
    assert!(longest.expect("questions") >= 2 * NANOS_PER_SECOND);
    assert_eq!(findings(&ran), Vec::<String>::new());
}

/// A tree that somebody else changes under the users is told at once.
#[test]
fn a_file_that_nobody_made_is_told() {
    let disk = constant(1_000_000);
    let rule = FaultRule::new(Effect::Fail(DiskErrorKind::NotFound))
        .with_kind(OperationKind::Delete)
        .nth(1);
    disk.inject(rule);
    let ran = run_on(&disk, &small(3, arrivals(20.0, 3), 60.0));
    assert_eq!(ran.outcome.ending, Ending::Failed);
}

/// What no home can be is refused before anything is written.
#[test]
fn impossible_homes_are_refused() {
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Change<'_>, &str); 9] = [
        (&|plan| plan["instances"][0]["homes"] = json!(0), "has 0 homes"),
        (&|plan| plan["instances"][0]["folders"] = json!(0), "has 0 files in a home"),
        (&|plan| plan["instances"][0]["piece_bytes"] = json!(5000), "whole numbers of 4096"),
        (&|plan| plan["instances"][0]["sizes"] = json!([]), "no shares"),
        (&|plan| plan["instances"][0]["colour"] = json!(1), "unknown field `colour`"),
        (
            &|plan| plan["workloads"][0]["scenarios"][1]["steps"] = json!(["read_file"]),
            "scenario home_copy_out step 1 reads no open file",
        ),
        (
            &|plan| plan["workloads"][0]["scenarios"][1]["steps"] = json!(["open_file"]),
            "leaves a file open",
        ),
        (
            &|plan| {
                plan["workloads"][0]["scenarios"][1]["steps"] = json!(["delete_file", "stat_file"]);
            },
            "deleted or replaced",
        ),
        (
            &|plan| {
                for scenario in plan["workloads"][0]["scenarios"].as_array_mut().unwrap() {
                    scenario["weight"] = json!(0.0);
                }
            },
            "no shares",
        ),
    ];
    for (change, expected) in cases {
        let mut plan = small(2, arrivals(10.0, 2), 1.0);
        change(&mut plan);
        let error = RunSpec::from_json(&plan.to_string()).err().map(|error| error.to_string());
        let text = error.unwrap_or_default();
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
