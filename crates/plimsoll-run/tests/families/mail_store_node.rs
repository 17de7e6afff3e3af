//! The node of a mail store dies in the middle of the day: the store comes back on the survivor,
//! its users go on there, and no mail that was accepted is lost.

use plimsoll_io::{Effect, FaultRule, NANOS_PER_SECOND};
use plimsoll_run::Ending;
use serde_json::{Value, json};

use crate::mail_store::{audit, counted, disk, plan};
use crate::support::{MEASURE, Ran, run_on};

const MIB: u64 = 1 << 20;

/// Ten users whose store is on a node that dies after 20 of 60 s, and again after 40 on the next.
fn on_nodes(client: &str, deaths: &[(f64, &str, &str)]) -> Value {
    let mut plan = plan(client, 60.0);
    let phase = plan["phases"][MEASURE as usize]["name"].clone();
    // What is due while the store is gone is done afterwards, and is not too much.
    plan["workloads"][0]["unfinished_max_per_user"] = json!(100.0);
    let deaths = deaths.iter().map(|(after_s, node, to)| {
        json!({
            "event": format!("{node} dies"), "phase": phase, "after_s": after_s, "node": node,
            "to": to, "quorum_lost": null,
            "taken": [{"instance": "one", "cache_bytes_min": MIB, "cache_bytes_max": MIB}]
        })
    });
    let nodes = ["left", "right", "third"].map(|name| {
        let instances = if name == "left" { vec!["one"] } else { vec![] };
        json!({"name": name, "processors": 2, "instances": instances})
    });
    plan["cluster"] = json!({"nodes": nodes, "deaths": deaths.collect::<Vec<_>>()});
    plan
}

fn failovers(ran: &Ran) -> usize {
    ran.outcome.phases.iter().map(|phase| phase.result.failovers.len()).sum()
}

/// Whatever kind of client, and however often: every recipient that was acknowledged is there, each
/// once, and deliveries are timed on the survivor as before.
#[test]
fn no_mail_that_was_accepted_is_lost_with_a_node() {
    let once: &[_] = &[(20.0, "left", "right")];
    let twice: &[_] = &[(20.0, "left", "right"), (40.0, "right", "third")];
    for (client, deaths) in [("online", once), ("cached", once), ("online", twice)] {
        let ran = run_on(&disk(), &on_nodes(client, deaths));
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        assert_eq!(failovers(&ran), deaths.len());
        let counts = &audit(&ran).counts;
        // What was being accepted when the node died may be there or not.
        let (accepted, known) = (counts["recipients_accepted"], counts["recipients_acknowledged"]);
        assert!((known..known + 20 * deaths.len() as u64).contains(&accepted), "{counts:?}");
        assert_eq!((counts["queued"], counts["delivered"]), (0, accepted));
        assert_eq!(counted(&ran, "mail_bodies_wrong"), 0);
        for failover in ran.outcome.phases.iter().flat_map(|phase| &phase.result.failovers) {
            assert!(failover.served_ns.is_some_and(|at| at >= failover.opened_ns));
            assert!(failover.recovery.as_ref().is_some_and(|found| found.log_bytes > 0));
            // Of the ten users ten were at work at most.
            assert!(failover.lost_count <= 10, "{failover:?}");
        }
        let (sent, timed) = (ran.count("mail_submit"), ran.count("mail_delivery"));
        assert!(timed.abs_diff(sent) <= 10 * deaths.len() as u64, "{timed} of {sent}");
    }
}

/// A death gives the same rows each time.
#[test]
fn a_seed_decides_what_is_lost_with_a_node() {
    let once = || run_on(&disk(), &on_nodes("cached", &[(20.0, "left", "right")])).rows;
    assert_eq!(once(), once());
}

/// A storage that drops the log it has acknowledged does not pass for one that lost nothing.
#[test]
fn mail_that_the_storage_lost_is_found_missing_on_the_survivor() {
    let plan = on_nodes("online", &[(20.0, "left", "right")]);
    let died_ns = {
        let ran = run_on(&disk(), &plan);
        ran.outcome
            .phases
            .iter()
            .find_map(|phase| phase.result.failovers.first().map(|failover| failover.died_ns))
    };
    let died_ns = died_ns.expect("it died");
    let disk = disk();
    let mut lost = FaultRule::new(Effect::LoseWrite).with_path_part("E0");
    (lost.from_ns, lost.until_ns) = (died_ns - 2 * NANOS_PER_SECOND, died_ns);
    disk.inject(lost);
    let ran = run_on(&disk, &plan);
    let audits = ran.outcome.phases.iter().flat_map(|phase| &phase.result.audits);
    let found: usize = audits.map(|audit| audit.report.findings.len()).sum();
    let failed = ran.outcome.error.as_ref().map_or("", |error| error.family);
    assert!(found > 0 || failed == "corruption", "{:?} {failed}", ran.outcome.ending);
}
