//! Mail users in virtual time, against a small server with faults on demand: what is lost, doubled
//! or spoilt is found, what is late is felt, and what is too much ends the run.

mod endpoints;
mod server;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Nanos, Random, SimulatedNetwork,
    StopSignal, WireOptions,
};
use plimsoll_measure::Row;
use plimsoll_run::{Ending, Event, Families, MailFamily, Output, RunOutcome, RunSpec, execute_for};
use serde_json::{Value, json};

use server::{Faults, IMAP, LMTP, MailHost};

const USERS: u32 = 20;
const MEASURE: u32 = 1;

struct Ran {
    outcome: RunOutcome,
    rows: Vec<Row>,
    events: Vec<Event>,
}

impl Ran {
    fn count(&self, metric: &str) -> u64 {
        let figures = self.outcome.figures.iter();
        figures
            .filter(|figures| figures.metric == metric && figures.phase == MEASURE)
            .map(|figures| figures.count)
            .sum()
    }

    /// The time that so large a share of the tasks stayed below.
    fn quantile(&self, metric: &str, share: f64) -> Nanos {
        let figures = self.outcome.figures.iter();
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for figures in
            figures.filter(|figures| figures.metric == metric && figures.phase == MEASURE)
        {
            for (bound, count) in &figures.buckets {
                *buckets.entry(*bound).or_default() += count;
            }
        }
        let wanted = (buckets.values().sum::<u64>() as f64 * share) as u64;
        let mut seen = 0;
        for (bound, count) in buckets {
            seen += count;
            if seen > wanted {
                return bound;
            }
        }
        0
    }

    fn audit(&self) -> &plimsoll_run::AuditReport {
        &self.outcome.phases[2].result.audits[0].report
    }
}

fn plan(password_file: &str, measure_s: f64) -> Value {
    json!({
        "schema_version": 1, "seed": 3, "sample_interval_ms": 1000, "hung_after_ms": 600_000,
            "io_method": "threads",
        "durable_writes": null, "max_iops": null, "max_mib_per_s": null, "destroy_serials": [],
            "modelled": null,
        "hosts": [{"name": "local"}], "targets": [{"name": "t", "host": "local", "path": "/t"}],
        "instances": [{
            "name": "mail", "target": "t", "backend": "imap", "directory": "/t",
                "unfinished": false, "log_directory": "/t",
            "weight": null,
            "databases": [{"file_name": "one", "size_bytes": 0, "seed": 9,
                "existing_records": null, "imap": IMAP, "deliver": LMTP}],
            "imap_tls": "none", "deliver_protocol": "lmtp", "deliver_tls": "none",
                "deliver_login": false, "tls_name": null,
            "ca_file": null, "login": "u{n:03}", "address": "u{n:03}@x", "first_account": 1,
                "accounts": USERS,
            "password_file": password_file, "marker": "ours", "init": {"folders": 1,
                "messages_per_folder": 2, "inbox": 3},
            "messages": {"sizes": [{"weight": 1.0, "body_bytes": 500, "attachment_bytes": 0}],
                "entropy_percent": 50,
                "duplicate_percent": 10},
            "connect_timeout_s": 5.0, "command_timeout_s": 20.0, "lost_after_s": 60.0,
                "literal_max_bytes": 1_000_000
        }],
        "workloads": [{
            "name": "mail", "instances": ["mail"], "family": "mail", "load": {"sessions": USERS,
                "shared": true},
            "tasks": [{"task": "ReadAndProcessMessages", "per_day": 52.0}, {"task": "SendMail",
                "per_day": 8.0}],
            "client": "online", "day_h": 0.1, "dispatch": "even", "recipients": [{"weight": 1.0,
                "count": 2}],
            "on_read": {"reply": 0.1, "reply_all": 0.02, "forward": 0.05, "move": 0.2,
                "delete": 0.4, "attachment": 0.25},
            "inbox_limit": 50, "page_rows": 25, "read_max": 20, "idle": true,
                "probes_per_minute": 6.0, "probe_poll_ms": 100,
            "probe_timeout_s": 10.0, "unfinished_max_per_user": 50.0
        }],
        "phases": [
            {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
            {"name": "measure", "action": {"kind": "measure", "duration_s": measure_s},
                "workloads": ["mail"]},
            {"name": "audit", "action": {"kind": "audit"}, "workloads": []},
            {"name": "stop", "action": {"kind": "stop"}, "workloads": []}
        ]
    })
}

/// Runs a plan against a server with faults.
fn run(change: impl FnOnce(&mut Value), faults: fn() -> Faults) -> Ran {
    // Read before time is virtual, like everything that a plan only names.
    let passwords = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/families/mail/passwords");
    let mut plan = plan(passwords, 120.0);
    change(&mut plan);
    let hosts: Rc<Cell<Option<Rc<MailHost>>>> = Rc::default();
    let family = MailFamily::on(move |run| {
        let network =
            SimulatedNetwork::new(run.handle.clone(), Random::from_seed(1), WireOptions::default());
        let server: Rc<dyn plimsoll_io::Network> = Rc::new(network.host("server"));
        hosts.set(Some(MailHost::start(&run.handle, server, faults())));
        Ok(Rc::new(network.host("client")))
    });
    let families = Families::of(vec![Rc::new(family)]);
    let spec = RunSpec::from_json_for(&plan.to_string(), &families).expect("the spec is right");
    let (samples, rows) = channel();
    let (events, told) = channel();
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let output = Output { samples, events };
    let outcome = execute_for(&families, spec, clock, disk, output, StopSignal::default());
    Ran { outcome, rows: rows.try_iter().flatten().collect(), events: told.try_iter().collect() }
}

const READ: &str = "mail_read_and_process_messages";

/// All that was sent is there or was deleted by its user; the schedule was kept; and a seed decides
/// everything.
#[test]
fn a_sound_server_passes_the_audit_and_a_seed_decides_all() {
    let ran = run(|_| {}, Faults::default);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let audit = ran.audit();
    assert!(audit.findings.is_empty(), "{:?}", audit.findings);
    let count = |name: &str| audit.counts[name];
    assert_eq!(count("recipients_accepted"), count("received") + count("deleted"));
    assert!(count("recipients_accepted") > 100 && count("deleted") > 20);
    // 60 tasks in 0.1 h are one in 6 s; 20 users in 120 s do 400.
    let planned =
        ran.count("mail_read_and_process_messages_planned") + ran.count("mail_send_mail_planned");
    let done = ran.count(READ) + ran.count("mail_send_mail");
    assert!((398..=401).contains(&planned), "{planned}");
    assert!((398..=401).contains(&done), "{done}");
    assert_eq!(ran.count("mail_delivery"), 11);
    assert_eq!(
        ran.count("mail_bodies_wrong")
            + ran.count("mail_unparsed")
            + ran.count("mail_connection_lost"),
        0
    );
    assert!(ran.quantile(READ, 0.95) < NANOS_PER_SECOND);
    assert_eq!(ran.rows, run(|_| {}, Faults::default).rows);
    let another = run(|plan| plan["seed"] = json!(4), Faults::default);
    assert_ne!(ran.rows, another.rows);
}

/// A cached client has the same mail with fewer and other commands: pages are an online client's,
/// changes a cached one's.
#[test]
fn a_cached_client_asks_for_changes_and_not_for_pages() {
    let online = run(|_| {}, Faults::default);
    let cached = run(|plan| plan["workloads"][0]["client"] = json!("cached"), Faults::default);
    assert!(cached.audit().findings.is_empty(), "{:?}", cached.audit().findings);
    assert!(online.count("mail_page") > 0 && online.count("mail_changes") == 0);
    assert!(cached.count("mail_page") == 0 && cached.count("mail_changes") > 0);
    assert!(
        cached.count("mail_store") + cached.count("mail_expunge")
            < online.count("mail_store") + online.count("mail_expunge")
    );
    assert!(cached.count("mail_messages_read") > 50);
}

/// A server that loses one of fifty messages it has accepted, delivers one twice, or spoils a
/// content is found out by number.
#[test]
fn what_a_server_loses_doubles_or_spoils_is_found() {
    let losing = run(|_| {}, || Faults { loses_one_of: Cell::new(50), ..Faults::default() });
    let missing = losing.audit().counts["missing"];
    assert!(missing >= 2, "{:?}", losing.audit().counts);
    let told = losing.audit().findings.join(" ");
    assert!(
        told.contains(&format!(
            "{missing} messages were accepted by the server and are in no folder"
        )),
        "{told}"
    );
    let doubling = run(|_| {}, || Faults { doubles_one_of: Cell::new(7), ..Faults::default() });
    assert!(doubling.audit().counts["doubled"] > 0);
    assert!(doubling.audit().findings.join(" ").contains("more than once"));
    let spoiling = run(|_| {}, || Faults { flips_one_of: Cell::new(10), ..Faults::default() });
    let (wrong, read) = (spoiling.count("mail_bodies_wrong"), spoiling.count("mail_messages_read"));
    assert!(wrong.abs_diff(read / 10) <= 1, "{wrong} of {read}");
}

/// During a stall tasks keep coming due: all that came meanwhile are late, and the percentiles show
/// it although few tasks were under way.
#[test]
fn a_stall_is_felt_by_all_who_were_due() {
    let stalled = run(
        |_| {},
        || Faults {
            stall: Cell::new((40 * NANOS_PER_SECOND, 55 * NANOS_PER_SECOND)),
            ..Faults::default()
        },
    );
    assert_eq!(stalled.outcome.ending, Ending::Complete, "{:?}", stalled.outcome.error);
    assert!(stalled.quantile(READ, 0.95) > 5 * NANOS_PER_SECOND);
    let service = "mail_read_and_process_messages_service";
    let late_by_start = |metric: &str| {
        let figures = stalled.outcome.figures.iter();
        let buckets = figures
            .filter(|figures| figures.metric == metric && figures.phase == MEASURE)
            .flat_map(|figures| figures.buckets.iter().copied());
        buckets.filter(|(bound, _)| *bound > NANOS_PER_SECOND).map(|(_, count)| count).sum::<u64>()
    };
    // In service at most one task of each user was late; from when they were due, those that queued
    // behind it are, too.
    assert!(late_by_start(service) <= u64::from(USERS) + 1);
    assert!(
        late_by_start(READ) > late_by_start(service) + 10,
        "{} {}",
        late_by_start(READ),
        late_by_start(service)
    );
    assert!(stalled.audit().findings.is_empty());
}

/// A server that is too far behind ends the run with that result, and one that hangs for good with
/// another; neither hangs the run.
#[test]
fn too_much_load_and_a_hung_server_are_results() {
    let hanging = || Faults {
        stall: Cell::new((40 * NANOS_PER_SECOND, 40_000 * NANOS_PER_SECOND)),
        ..Faults::default()
    };
    let overloaded =
        run(|plan| plan["workloads"][0]["unfinished_max_per_user"] = json!(1.5), hanging);
    let error = overloaded.outcome.error.expect("it ends");
    assert_eq!(error.family, "overloaded");
    assert!(error.text.contains("more than 30 (1.5 a user)"), "{}", error.text);
    let hung = run(|plan| plan["phases"][1]["action"]["duration_s"] = json!(1000.0), hanging);
    let error = hung.outcome.error.as_ref().expect("it ends");
    assert_eq!(error.family, "service");
    assert!(error.text.contains("has not answered"), "{}", error.text);
    assert!(hung.count("mail_timed_out") >= 3);
    assert!(hung.events.iter().any(|event| event.kind == "service_lost"));
}
