//! Mail users on a store of our own engine as a run: every task of the score sheet, the audit as a
//! phase, crashes and faults on the way, and databases that are kept between runs.

use std::rc::Rc;

use crate::support::{MEASURE, Ran, rate, run_on, spec};
use plimsoll_io::{
    Clock, DiskErrorKind, Effect, FaultRule, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    Purpose, Random,
};
use plimsoll_measure::{METRICS, metric_code};
use plimsoll_run::{AuditReport, Ending, RunSpec, built_in};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// The tasks that a user does in its day; the other five are phases of a run.
const TASKS: [&str; 23] = [
    "Logon",
    "Logoff",
    "SendMail",
    "ReadAndProcessMessages",
    "MoveMail",
    "DeleteMail",
    "ExportMail",
    "CreateFolder",
    "SynchronizeFolders",
    "Search",
    "RequestMeeting",
    "BrowseCalendar",
    "MakeAppointment",
    "BrowseContacts",
    "CreateContact",
    "BrowseTasks",
    "CreateTask",
    "PostFreeBusy",
    "PublicFolderPost",
    "BrowsePublicFolder",
    "EditRules",
    "DownloadOab",
    "EditSmartFolders",
];

/// Prepare, measure, audit, stop: ten users whose day of 100 s holds every task.
pub fn plan(client: &str, seconds: f64) -> Value {
    let mut plan = spec("engine", json!({"sessions": 10, "shared": true}), seconds);
    let instance = plan["instances"][0].as_object_mut().expect("an instance");
    instance["backend"] = json!("mail_store");
    instance["page_bytes"] = json!(8192);
    instance["cache_bytes_max"] = json!(MIB);
    let messages = json!({
        "sizes": [{"weight": 3.0, "body_bytes": 900, "attachment_bytes": 0},
                  {"weight": 1.0, "body_bytes": 3000, "attachment_bytes": 20000}],
        "entropy_percent": 40, "duplicate_percent": 10
    });
    instance["databases"] = json!([
        {"file_name": "database001.edb", "size_bytes": 8 * MIB, "seed": 5,
            "existing_records": null,
            "store": {"mailboxes": 12, "folders": 2, "messages_per_folder": 4, "inbox": 6,
                "layout": "per_mailbox", "views": 1, "indexed": true, "messages": messages}},
        {"file_name": "database002.edb", "size_bytes": MIB, "seed": 6, "existing_records": null}
    ]);
    let often = |task: &&str| if *task == "ReadAndProcessMessages" { 40.0 } else { 8.0 };
    let tasks: Vec<Value> =
        TASKS.iter().map(|task| json!({"task": task, "per_day": often(task)})).collect();
    plan["workloads"][0] = json!({
        "name": "mix", "instances": ["one"], "family": "mail",
        "load": plan["workloads"][0]["load"].clone(), "tasks": tasks, "client": client,
        "day_h": 100.0 / 3600.0, "dispatch": "poisson",
        "recipients": [{"weight": 1.0, "count": 2}],
        "on_read": {"reply": 0.1, "reply_all": 0.02, "forward": 0.05, "move": 0.2, "delete": 0.3,
            "attachment": 0.25},
        "inbox_limit": 8, "page_rows": 25, "read_max": 20, "idle": false,
        "older_per_visit": 1, "background_reads_per_task": 0.5,
        "probes_per_minute": 0.0, "probe_poll_ms": 100, "probe_timeout_s": 60.0,
        "unfinished_max_per_user": 1.5
    });
    let phases = plan["phases"].as_array_mut().expect("phases");
    phases[1] = json!({"name": "soak", "action": {"kind": "soak", "duration_s": 1.0,
        "until_utc_s": null}, "workloads": []});
    phases.insert(3, json!({"name": "audit", "action": {"kind": "audit"}, "workloads": []}));
    plan
}

pub fn disk() -> Rc<MemoryDisk> {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(400_000)),
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    disk
}

pub fn audit(ran: &Ran) -> &AuditReport {
    let audits: Vec<_> = ran.outcome.phases.iter().flat_map(|phase| &phase.result.audits).collect();
    let [audit] = audits[..] else { panic!("one audit: {:?}", ran.outcome.error) };
    assert_eq!(audit.report.findings, Vec::<String>::new());
    &audit.report
}

/// Of the counters that the family adds, in the measured phase.
pub fn counted(ran: &Ran, metric: &str) -> u64 {
    let extra = built_in().metrics();
    let code =
        METRICS.len() + extra.iter().position(|known| known.name == metric).expect("a metric");
    let rows = ran.rows.iter().filter(|row| row.phase == MEASURE && row.metric == code as u32);
    rows.map(|row| row.count).sum()
}

/// Online and cached users do every task; what is due is done, what is read is what was written,
/// every message is timed to its delivery, and the audit finds what was accepted.
#[test]
fn every_task_is_done_and_what_was_accepted_is_there() {
    let mut reads = Vec::new();
    // Cached users have older messages in their own copy.
    for (client, read_least) in [("online", 250), ("cached", 200)] {
        let ran = run_on(&disk(), &plan(client, 100.0));
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        for task in TASKS {
            let metric = task.chars().fold("mail".to_owned(), |name, letter| {
                if letter.is_ascii_uppercase() {
                    format!("{name}_{}", letter.to_ascii_lowercase())
                } else {
                    format!("{name}{letter}")
                }
            });
            let (done, due) = (ran.count(&metric), counted(&ran, &format!("{metric}_planned")));
            // 80 or 400 are due on average.
            assert!(done > 40 && done.abs_diff(due) <= 10, "{client} {task}: {done} of {due}");
            assert_eq!(counted(&ran, &format!("{metric}_refused")), 0);
        }
        assert_eq!(counted(&ran, "mail_bodies_wrong"), 0);
        // Rules take what they fit out of the inbox.
        let read = counted(&ran, "mail_messages_read");
        assert!(read > read_least, "{client}: {read}");
        let audit = audit(&ran);
        let counts = &audit.counts;
        assert_eq!(counts["recipients_accepted"], counts["delivered"]);
        assert_eq!(counts["recipients_accepted"], counts["recipients_acknowledged"]);
        assert_eq!((counts["queued"], counts["accounts"]), (0, 12));
        assert_eq!(counts["messages"], counts["received"] - counts["deleted"]);
        assert!(counts["deleted"] > 100, "inboxes are trimmed: {counts:?}");
        let sent = ran.count("mail_submit");
        assert!(ran.count("mail_delivery").abs_diff(sent) <= 5, "{sent}");
        assert!(ran.mean_ns("mail_delivery") > 800_000.0, "two commits lie in between");
        assert!(ran.count("log_write") > sent, "of both logs");
        // What the queue takes in and gives away in so short a time is written when it is closed.
        let queue = ran
            .rows
            .iter()
            .filter(|row| row.database == 2 && Some(row.metric) == metric_code("database_write"));
        assert!(queue.map(|row| row.count).sum::<u64>() > 0, "the queue has its own figures");
        reads.push(ran.count("database_read"));
    }
    assert!(reads[1] < reads[0], "cached users read less: {reads:?}");
}

/// A cached user has older messages in its own copy: how many a visit looks at costs the store of
/// online users only.
#[test]
fn older_messages_cost_the_store_of_online_users_only() {
    let read = |client: &str, older: u32| {
        let mut plan = plan(client, 50.0);
        plan["workloads"][0]["older_per_visit"] = json!(older);
        counted(&run_on(&disk(), &plan), "mail_messages_read")
    };
    assert_eq!(read("cached", 0), read("cached", 4));
    assert!(read("online", 4) > read("online", 0) + 400, "200 visits are due");
}

/// In virtual time a run is a function of its plan and seed, with mail as with records.
#[test]
fn the_same_seed_gives_the_same_rows() {
    let once = || run_on(&disk(), &plan("cached", 10.0)).rows;
    assert_eq!(once(), once());
}

/// A second run goes on with the mail of the first; a crash in between loses nothing that was
/// acknowledged, in the store nor in the queue.
#[test]
fn mail_lives_on_through_runs_and_crashes() {
    let disk = disk();
    let first = run_on(&disk, &plan("online", 20.0));
    let before = audit(&first).counts["recipients_accepted"];
    let mut again = plan("online", 20.0);
    for database in again["instances"][0]["databases"].as_array_mut().expect("two") {
        database["existing_records"] = json!(1);
    }
    let phases = again["phases"].as_array_mut().expect("phases");
    phases.insert(3, json!({"name": "crash", "action": {"kind": "recover"}, "workloads": []}));
    let ran = run_on(&disk, &again);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert!(ran.told("prepared").is_empty(), "it was there");
    let counts = &audit(&ran).counts;
    assert!(counts["recipients_accepted"] > before + counted(&ran, "mail_messages_sent"));
    assert_eq!(ran.outcome.phases[3].result.recoveries.len(), 1);
}

/// The same with a further database, to which a mailbox is moved every ten seconds.
fn moving_plan(seconds: f64) -> Value {
    let mut plan = plan("online", seconds);
    let databases = plan["instances"][0]["databases"].as_array_mut().expect("a list");
    databases[0]["store"]["indexed"] = json!(false);
    databases.push(json!({"file_name": "database003.edb", "size_bytes": MIB, "seed": 7,
        "existing_records": null}));
    plan["workloads"][0]["mailbox_moves_per_h"] = json!(360.0);
    plan
}

/// What maintenance found is told by the file, in each database that is maintained.
#[test]
fn maintenance_is_told_by_the_file_of_the_database() {
    let mut plan = moving_plan(20.0);
    plan["instances"][0]["maintenance"] = json!({"read_bytes": 65536, "throttle_ms": 20});
    let ran = run_on(&disk(), &plan);
    let ended = |file: &str| {
        let told = ran.events.iter().filter(|event| event.kind == "maintenance_ended");
        told.filter(|event| event.text.contains(file)).count()
    };
    let files = ["database001.edb", "database002.edb", "database003.edb"];
    assert_eq!(files.map(ended), [1, 0, 1], "{:?}", ran.events);
}

/// Bytes that a metric counted in the measured phase.
fn bytes_of(ran: &Ran, metric: &str) -> u64 {
    let extra = built_in().metrics();
    let code =
        METRICS.len() + extra.iter().position(|known| known.name == metric).expect("a metric");
    let rows = ran.rows.iter().filter(|row| row.phase == MEASURE && row.metric == code as u32);
    rows.map(|row| row.bytes).sum()
}

/// Mailboxes are moved at the rate that was asked for while their users work: what moves read,
/// wrote and logged is counted, and every message is there once at the end. The next run moves on,
/// through a crash, and a run without moves uses mailboxes at both places.
#[test]
fn mailboxes_are_moved_at_a_rate_while_users_work() {
    let disk = disk();
    let first = run_on(&disk, &moving_plan(100.0));
    assert_eq!(first.outcome.ending, Ending::Complete, "{:?}", first.outcome.error);
    let planned = counted(&first, "mail_moves_planned");
    assert!((9..=11).contains(&planned), "{planned}");
    assert!(counted(&first, "mail_mailbox_moved").abs_diff(planned) <= 1);
    assert!(counted(&first, "mail_mailbox_closed").abs_diff(planned) <= 1);
    let [read, written, log] =
        ["read", "written", "log"].map(|of| bytes_of(&first, &format!("mail_moves_{of}_bytes")));
    // A mailbox began with 14 messages of 6 kB in the mean.
    assert!(
        written > planned * 50_000 && read >= written && log > written,
        "{read} {written} {log}"
    );
    assert_eq!(counted(&first, "mail_bodies_wrong"), 0);
    let moved = audit(&first).counts["moved"];
    assert!(moved.abs_diff(planned) <= 1, "{moved}");
    let mut again = moving_plan(50.0);
    for database in again["instances"][0]["databases"].as_array_mut().expect("three") {
        database["existing_records"] = json!(1);
    }
    let phases = again["phases"].as_array_mut().expect("phases");
    phases.insert(3, json!({"name": "crash", "action": {"kind": "recover"}, "workloads": []}));
    let ran = run_on(&disk, &again);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    // All have been there once, and the first ones come back.
    let after = audit(&ran).counts["moved"];
    assert!(after != moved && counted(&ran, "mail_mailbox_moved") >= 4, "{moved}, then {after}");
    let workload = again["workloads"][0].as_object_mut().expect("a workload");
    workload.remove("mailbox_moves_per_h");
    let ran = run_on(&disk, &again);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert_eq!((audit(&ran).counts["moved"], counted(&ran, "mail_moves_planned")), (after, 0));
}

/// A run whose disk failed in the middle of the load is recovered by the next, and nothing that was
/// acknowledged is lost.
#[test]
fn a_fault_during_delivery_ends_the_run_and_loses_no_mail() {
    for (purpose, skip) in [(Purpose::LogWrite, 300), (Purpose::DatabaseWrite, 20)] {
        let disk = disk();
        run_on(&disk, &plan("online", 1.0));
        let fails = FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(purpose);
        disk.inject(FaultRule { skip, limit: 1, ..fails });
        let mut struck = plan("online", 60.0);
        struck["instances"][0]["unfinished"] = json!(true);
        let ran = run_on(&disk, &struck);
        assert_eq!(ran.outcome.ending, Ending::Failed, "{purpose:?}");
        let acknowledged = counted(&ran, "mail_recipients_accepted");
        let ran = run_on(&disk, &{
            let mut next = plan("online", 1.0);
            next["instances"][0]["unfinished"] = json!(true);
            next
        });
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        assert!(!ran.told("recovered").is_empty() && ran.told("prepared").is_empty());
        assert!(audit(&ran).counts["recipients_accepted"] >= acknowledged);
    }
}

/// A run that was killed while it filled mailboxes leaves something that is no store: the next one
/// makes it anew, both databases and both logs.
#[test]
fn what_was_begun_is_made_anew() {
    let disk = disk();
    let fails = FaultRule::new(Effect::Fail(DiskErrorKind::Medium)).with_purpose(Purpose::LogWrite);
    disk.inject(FaultRule { skip: 8, limit: 1, ..fails });
    let ran = run_on(&disk, &plan("online", 1.0));
    assert_eq!(ran.outcome.ending, Ending::Failed);
    assert!(ran.told("prepared").is_empty(), "it came to its end");
    let mut next = plan("online", 1.0);
    next["instances"][0]["unfinished"] = json!(true);
    let ran = run_on(&disk, &next);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    audit(&ran);
    assert_eq!((ran.told("prepared").len(), ran.told("begun_deleted").len()), (1, 1));
}

/// A storage that is far too slow ends the run: unfinished tasks pile up.
#[test]
fn too_much_load_ends_the_run() {
    let options = MemoryOptions {
        latency: LatencyPlan::of(Latency::Constant(400_000_000)),
        ..MemoryOptions::default()
    };
    let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
    disk.create_directory("/data/one");
    let ran = run_on(&disk, &plan("online", 600.0));
    let error = ran.outcome.error.expect("it is too slow");
    assert_eq!(error.family, "overloaded", "{}", error.text);
    let waiting = metric_code("sessions").expect("a metric");
    assert!(ran.rows.iter().any(|row| row.metric == waiting));
}

/// What the plan says wrongly is told by name, and another store is not driven.
#[test]
fn wrong_plans_are_refused() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut wrong = plan("online", 1.0);
        change(&mut wrong);
        RunSpec::from_json(&wrong.to_string()).expect_err("it is wrong").to_string()
    };
    let first = |plan: &mut Value, key: &str, value: Value| {
        plan["instances"][0]["databases"][0]["store"][key] = value;
    };
    let both = refusal(&|plan| {
        first(plan, "mailboxes", json!(0));
        first(plan, "views", json!(99));
    });
    assert!(both.contains("mailboxes is 0") && both.contains("views is 99"), "{both}");
    assert!(refusal(&|plan| first(plan, "rooms", json!(1))).contains("unknown field `rooms`"));
    let one = |plan: &mut Value| {
        plan["instances"][0]["databases"].as_array_mut().expect("a list").pop();
    };
    assert!(refusal(&one).contains("a mail store is two"));
    let moves = |plan: &mut Value| plan["workloads"][0]["mailbox_moves_per_h"] = json!(3.0);
    assert!(refusal(&moves).contains("no third database to move them to"));
    let never = |plan: &mut Value| plan["workloads"][0]["mailbox_moves_per_h"] = json!(0.0);
    assert!(refusal(&never).contains("mailbox_moves_per_h is not above 0"));
    let task = |plan: &mut Value| plan["workloads"][0]["tasks"][0]["task"] = json!("UserInit");
    assert!(refusal(&task).contains("UserInit is a phase"));
    assert!(
        refusal(&|plan| plan["workloads"][0]["load"] = rate(5.0, 8))
            .contains("a session is a user")
    );
    let disk = disk();
    run_on(&disk, &plan("online", 1.0));
    let mut other = plan("online", 1.0);
    first(&mut other, "folders", json!(3));
    let error = run_on(&disk, &other).outcome.error.expect("it is another store");
    assert_eq!(error.family, "config");
    assert!(error.text.contains("folders of a mailbox 2, not 3"), "{}", error.text);
}
