//! Deaths of nodes that meet: one after the other, in the same moment, while what died before is
//! still being opened, before a load begins and as it ends.

use plimsoll_run::Ending;
use serde_json::{Value, json};

use super::MIB;
use super::nodes::{Ran, two_nodes};

/// A death of a node, with what comes to the survivor.
fn death(at_s: f64, node: &str, to: &str, taken: &[&str]) -> Value {
    let taken = taken
        .iter()
        .map(|name| json!({"instance": name, "cache_bytes_min": MIB, "cache_bytes_max": 2 * MIB}));
    json!({
        "event": format!("{node} dies"), "phase": "measure", "after_s": at_s, "node": node,
        "to": to, "quorum_lost": null, "taken": taken.collect::<Vec<_>>()
    })
}

/// The cluster has a third node that carries nothing at first.
fn three_nodes(deaths: Vec<Value>) -> Value {
    let mut spec = two_nodes(200.0);
    let nodes = spec["cluster"]["nodes"].as_array_mut().expect("a list");
    nodes.push(json!({"name": "third", "processors": 2, "instances": []}));
    spec["cluster"]["deaths"] = deaths.into();
    spec
}

/// Every operation was done, all that was acknowledged is there, and every page is sound.
fn check(ran: &Ran, failovers: usize) {
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let found = &ran.phase("measure").result.failovers;
    assert_eq!(found.len(), failovers, "{found:?}");
    assert!(found.iter().all(|found| found.died_ns < found.opened_ns), "{found:?}");
    for instance in [0, 1] {
        let served = ran.all_served(instance) as f64;
        assert!((1800.0..2200.0).contains(&served), "{served} of instance {instance}");
    }
    let audits = &ran.phase("audit").result.audits;
    assert!(!audits.is_empty());
    for audit in audits {
        assert!(audit.report.findings.is_empty(), "{:?}", audit.report.findings);
        assert!(audit.report.counts["records_acknowledged"] > 500, "{:?}", audit.report.counts);
    }
    for checksum in &ran.phase("checksum").result.checksums {
        assert_eq!(checksum.report.bad, 0, "{:?}", checksum.report);
    }
}

/// What came to the survivor comes to the next one when that dies, and is itself.
#[test]
fn a_survivor_dies_and_all_it_carried_comes_back() {
    let deaths =
        vec![death(3.0, "left", "right", &["one"]), death(6.0, "right", "third", &["two", "one"])];
    check(&Ran::of(&three_nodes(deaths)), 3);
}

/// The survivor dies while it replays what has come to it, or in the same moment as the first.
#[test]
fn a_survivor_dies_while_it_takes_over() {
    for later_s in [0.0, 0.001, 0.02, 0.1] {
        let deaths = || {
            vec![
                death(3.0, "left", "right", &["one"]),
                death(3.0 + later_s, "right", "third", &["two", "one"]),
            ]
        };
        let ran = Ran::of(&three_nodes(deaths()));
        check(&ran, 3);
        assert!(ran.rows == Ran::of(&three_nodes(deaths())).rows, "a seed decides all");
    }
}

/// Two nodes die in the same moment, and both come to the third.
#[test]
fn two_nodes_die_in_one_moment() {
    let deaths =
        vec![death(3.0, "left", "third", &["one"]), death(3.0, "right", "third", &["two"])];
    check(&Ran::of(&three_nodes(deaths)), 2);
}

/// A node dies as the load begins, and in the last moment of it.
#[test]
fn a_node_dies_at_either_end_of_the_load() {
    for at_s in [0.0, 9.999] {
        let mut spec = two_nodes(200.0);
        spec["cluster"]["deaths"][0]["after_s"] = json!(at_s);
        let ran = Ran::of(&spec);
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        assert_eq!(ran.phase("measure").result.failovers.len(), 1);
        for audit in &ran.phase("audit").result.audits {
            assert!(audit.report.findings.is_empty(), "{:?}", audit.report.findings);
        }
    }
}

/// An event behind the end of its phase does not happen.
#[test]
fn a_node_does_not_die_behind_the_end_of_its_phase() {
    let mut spec = two_nodes(100.0);
    spec["cluster"]["deaths"][0]["after_s"] = json!(10.5);
    let ran = Ran::of(&spec);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert!(ran.phase("measure").result.failovers.is_empty());
    assert!(!ran.events.iter().any(|event| event.kind == "node_died"));
}

/// A node dies while the load settles, which no one judges, and another while it is measured.
#[test]
fn a_node_dies_while_the_load_settles() {
    let mut spec = three_nodes(vec![
        death(1.0, "left", "right", &["one"]),
        death(3.0, "right", "third", &["two", "one"]),
    ]);
    spec["cluster"]["deaths"][0]["phase"] = json!("settle");
    let both = spec["phases"][1]["workloads"].clone();
    let settle = json!({"name": "settle", "action": {"kind": "soak", "duration_s": 2.0,
        "until_utc_s": null}, "workloads": both});
    spec["phases"].as_array_mut().expect("a list").insert(1, settle);
    let ran = Ran::of(&spec);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    let settled = &ran.phase("settle").result.failovers;
    assert_eq!((settled.len(), ran.phase("measure").result.failovers.len()), (1, 2));
    assert!(settled[0].served_ns.is_some());
    for audit in &ran.phase("audit").result.audits {
        assert!(audit.report.findings.is_empty(), "{:?}", audit.report.findings);
    }
}
