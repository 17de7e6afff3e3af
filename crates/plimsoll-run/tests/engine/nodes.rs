//! A node of a cluster dies in the middle of the load and its instances come back on the survivor.

use std::rc::Rc;
use std::sync::mpsc::channel;

use plimsoll_io::{
    Clock, Effect, FaultRule, InstanceId, Latency, LatencyPlan, MemoryDisk, MemoryOptions,
    NANOS_PER_SECOND, Nanos, Random, Tracking,
};
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::{Ending, Event, Output, PhaseOutcome, RunOutcome, RunSpec, StopSignal, execute};
use serde_json::{Value, json};

use super::{MIB, spec};

const MEASURE: u32 = 1;
const DIES_S: f64 = 4.0;

/// Two instances on two nodes, each with a load that arrives by a schedule; the first node dies.
pub fn two_nodes(per_s: f64) -> Value {
    let mut spec = spec();
    let mut instance = spec["instances"][0].clone();
    instance["copies_count"] = json!(1);
    let mut workload = spec["workloads"][0].clone();
    workload["load"] =
        json!({"transactions_per_s": per_s, "spacing": "poisson", "sessions_max": 4096});
    workload["mix"]["lazy_commit_percent"] = json!(0);
    let names = ["one", "two"];
    spec["instances"] = names
        .map(|name| {
            let mut of = instance.clone();
            of["name"] = json!(name);
            of["directory"] = json!(format!("/data/{name}"));
            of["log_directory"] = of["directory"].clone();
            of
        })
        .to_vec()
        .into();
    spec["workloads"] = names
        .map(|name| {
            let mut of = workload.clone();
            of["name"] = json!(format!("on {name}"));
            of["instances"] = json!([name]);
            of
        })
        .to_vec()
        .into();
    let both = ["on one", "on two"];
    spec["phases"] = json!([
        {"name": "prepare", "action": {"kind": "prepare"}, "workloads": []},
        {"name": "measure", "action": {"kind": "measure", "duration_s": 10.0}, "workloads": both},
        {"name": "audit", "action": {"kind": "audit"}, "workloads": []},
        {"name": "stop", "action": {"kind": "stop"}, "workloads": []},
        {"name": "checksum", "action": {"kind": "checksum", "read_bytes": 65536,
            "reads_in_flight": 8}, "workloads": []}
    ]);
    spec["cluster"] = json!({
        "nodes": [
            {"name": "left", "processors": 2, "instances": ["one"]},
            {"name": "right", "processors": 2, "instances": ["two"]}
        ],
        "deaths": [{
            "event": "left dies", "phase": "measure", "after_s": DIES_S, "node": "left",
            "to": "right", "quorum_lost": null,
            "taken": [{"instance": "one", "cache_bytes_min": MIB, "cache_bytes_max": 2 * MIB}]
        }]
    });
    spec
}

pub struct Ran {
    pub outcome: RunOutcome,
    pub rows: Vec<Row>,
    pub events: Vec<Event>,
}

impl Ran {
    pub fn of(spec: &Value) -> Ran {
        Ran::with(spec, None)
    }

    fn with(spec: &Value, fault: Option<FaultRule>) -> Ran {
        let options = MemoryOptions {
            latency: LatencyPlan::of(Latency::Constant(10_000_000)),
            tracking: Tracking::Nothing,
            ..MemoryOptions::default()
        };
        let disk = MemoryDisk::new(Rc::new(Clock::simulated()), Random::from_seed(1), options);
        for name in ["one", "two"] {
            disk.create_directory(format!("/data/{name}"));
        }
        fault.into_iter().for_each(|fault| disk.inject(fault));
        let spec = RunSpec::from_json(&spec.to_string()).expect("the spec is right");
        let (samples, rows) = channel();
        let (events, told) = channel();
        let output = Output { samples, events };
        let outcome = execute(spec, disk.clock().clone(), disk, output, StopSignal::default());
        Ran {
            outcome,
            rows: rows.try_iter().flatten().collect(),
            events: told.try_iter().collect(),
        }
    }

    pub fn phase(&self, name: &str) -> &PhaseOutcome {
        self.outcome.phases.iter().find(|phase| phase.name == name).expect("it was begun")
    }

    /// Operations of an instance that ended in a sample within these times.
    fn served(&self, instance: u32, from: Nanos, until: Nanos) -> u64 {
        let codes: Vec<_> = ["insert", "delete", "replace", "read"]
            .iter()
            .filter_map(|name| metric_code(name))
            .collect();
        let rows = self.rows.iter().filter(|row| {
            row.phase == MEASURE
                && row.instance == instance
                && codes.contains(&row.metric)
                && (from..=until).contains(&row.end_ns)
        });
        rows.map(|row| row.count).sum()
    }

    pub fn all_served(&self, instance: u32) -> u64 {
        self.served(instance, 0, Nanos::MAX)
    }
}

/// The load of the dead node waits and is done afterwards, that of the survivor never notices, and
/// nothing that was acknowledged is lost.
#[test]
fn what_a_dead_node_carried_comes_back_on_the_survivor() {
    let ran = Ran::of(&two_nodes(500.0));
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let measure = ran.phase("measure");
    let [failover] = &measure.result.failovers[..] else {
        panic!("one instance comes back: {:?}", measure.result.failovers)
    };
    assert_eq!(failover.died_ns, measure.start_ns + (DIES_S * NANOS_PER_SECOND as f64) as u64);
    let served_ns = failover.served_ns.expect("something is served again");
    assert!(failover.died_ns < failover.opened_ns && failover.opened_ns < served_ns);
    assert!(failover.lost_count > 0, "something was under way");
    assert!(failover.recovery.as_ref().is_some_and(|found| found.log_bytes > 0));
    // A sample of half a second without any operation of the dead one, and none of the other.
    let sample_ns = NANOS_PER_SECOND / 2;
    assert!(ran.served(1, failover.died_ns, failover.died_ns + sample_ns) > 150);
    // 500 arrive in each second, whether the node is there or not.
    for instance in [0, 1] {
        let served = ran.all_served(instance) as f64;
        assert!((4700.0..5300.0).contains(&served), "{served} of instance {instance}");
    }
    let [audit] = &ran.phase("audit").result.audits[..] else {
        panic!("what the dead one acknowledged is audited, and of the other nothing is kept")
    };
    assert!(audit.report.findings.is_empty(), "{:?}", audit.report.findings);
    assert!(audit.report.counts["records_acknowledged"] > 500, "{:?}", audit.report.counts);
    for checksum in &ran.phase("checksum").result.checksums {
        assert_eq!(checksum.report.bad, 0, "{:?}", checksum.report);
    }
}

/// A storage that says "durable" and keeps nothing of it must not pass for one that lost nothing.
#[test]
fn a_storage_that_loses_what_it_acknowledged_is_found_out() {
    let mut spec = two_nodes(500.0);
    for instance in spec["instances"].as_array_mut().expect("a list") {
        // Nothing but the log is written before the node dies.
        instance["cache_bytes_min"] = json!(64 * MIB);
        instance["cache_bytes_max"] = json!(64 * MIB);
        instance["checkpoint_depth_bytes"] = json!(256 * MIB);
        instance["maintenance"] = json!(null);
    }
    let died_ns = Ran::of(&spec).phase("measure").result.failovers[0].died_ns;
    let mut lost = FaultRule::new(Effect::LoseWrite).with_path_part("/data/one/E00");
    lost.filter.instance = Some(InstanceId(0));
    (lost.from_ns, lost.until_ns) = (died_ns - NANOS_PER_SECOND / 10, died_ns);
    let ran = Ran::with(&spec, Some(lost));
    let found: usize = ran
        .outcome
        .phases
        .iter()
        .flat_map(|phase| &phase.result.audits)
        .map(|audit| audit.report.findings.len())
        .sum();
    assert!(found > 0, "{:?} {:?}", ran.outcome.ending, ran.outcome.error);
}

/// The survivor has less room: the cache stays within what is left for it there.
#[test]
fn the_cache_of_what_comes_keeps_to_what_the_survivor_has() {
    let ran = Ran::of(&two_nodes(500.0));
    let failover = &ran.phase("measure").result.failovers[0];
    let code = metric_code("cache_used").expect("a metric");
    let most = |from: Nanos, until: Nanos| {
        let rows = ran.rows.iter().filter(|row| {
            row.metric == code && row.instance == 0 && (from..until).contains(&row.end_ns)
        });
        rows.map(|row| row.value as u64).max().unwrap_or_default()
    };
    assert!(most(0, failover.died_ns) > 2 * MIB);
    let after = most(failover.opened_ns, Nanos::MAX);
    assert!((1..=2 * MIB).contains(&after), "{after}");
}

/// A modelled run is a function of plan and seed, also when nodes die.
#[test]
fn the_same_seed_loses_the_same() {
    let (first, second) = (Ran::of(&two_nodes(150.0)), Ran::of(&two_nodes(150.0)));
    assert!(first.rows == second.rows);
    assert_eq!(
        serde_json::to_string(&first.outcome).expect("plain data"),
        serde_json::to_string(&second.outcome).expect("plain data")
    );
}

/// Sessions of a closed load go on with the instance, too.
#[test]
fn sessions_go_on_with_the_survivor() {
    let mut spec = two_nodes(1.0);
    for workload in spec["workloads"].as_array_mut().expect("a list") {
        workload["load"] = json!({"sessions": 4, "shared": true});
    }
    let ran = Ran::of(&spec);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let failover = &ran.phase("measure").result.failovers[0];
    assert!(failover.lost_count <= 4);
    assert!(ran.served(0, failover.served_ns.expect("it is back"), Nanos::MAX) > 500);
}

/// Too few votes are left: nothing comes back, and the run says why.
#[test]
fn a_lost_quorum_stops_the_run() {
    let mut spec = two_nodes(100.0);
    spec["cluster"]["deaths"][0]["quorum_lost"] = json!("1 of 2 votes is left, and 2 are needed");
    let ran = Ran::of(&spec);
    assert_eq!(ran.outcome.ending, Ending::Failed);
    let error = ran.outcome.error.expect("it says why");
    assert!(error.text.contains("1 of 2 votes is left"), "{}", error.text);
    assert!(ran.events.iter().any(|event| event.kind == "node_died"));
}

/// What the types of a spec cannot refuse is refused before anything begins.
#[test]
fn a_cluster_of_strangers_is_refused() {
    let mut spec = two_nodes(1.0);
    spec["cluster"]["deaths"][0]["to"] = json!("nowhere");
    let error = RunSpec::from_json(&spec.to_string()).expect_err("there is no such node");
    assert!(error.to_string().contains("node nowhere"), "{error}");
    spec["cluster"]["deaths"][0]["to"] = json!("right");
    spec["cluster"]["deaths"][0]["phase"] = json!("stop");
    let error = RunSpec::from_json(&spec.to_string()).expect_err("nothing is loaded there");
    assert!(error.to_string().contains("does not measure or soak"), "{error}");
}
