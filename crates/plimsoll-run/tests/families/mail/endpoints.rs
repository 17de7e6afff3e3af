//! A mail server with two endpoints: who comes to which, and what users do when one of them dies.

use std::cell::Cell;

use plimsoll_io::NANOS_PER_SECOND;
use plimsoll_measure::{Row, metric_code};
use plimsoll_run::Ending;
use serde_json::{Value, json};

use super::server::{Faults, SECOND_IMAP, SECOND_LMTP};
use super::{MEASURE, READ, Ran, USERS, run};

/// The server of the plan has a second endpoint, and this policy.
fn two(plan: &mut Value, distribution: Value) {
    let databases = plan["instances"][0]["databases"].as_array_mut().expect("a list");
    let mut second = databases[0].clone();
    second["file_name"] = json!("two");
    second["imap"] = json!(SECOND_IMAP);
    second["deliver"] = json!(SECOND_LMTP);
    databases.push(second);
    plan["instances"][0]["distribution"] = distribution;
}

impl Ran {
    fn count_at(&self, metric: &str, database: u32) -> u64 {
        let figures = self.outcome.figures.iter();
        figures
            .filter(|figures| figures.metric == metric && figures.phase == MEASURE)
            .filter(|figures| figures.database == database)
            .map(|figures| figures.count)
            .sum()
    }

    /// What was added up in the samples of the measured phase.
    fn added(&self, metric: &str, database: u32) -> u64 {
        let code = metric_code(metric).expect("a metric");
        let rows = self.rows.iter().filter(|row| row.metric == code && row.database == database);
        rows.filter(|row| row.phase == MEASURE).map(|row| row.count).sum()
    }

    /// The last level.
    fn last(&self, metric: &str, database: u32) -> f64 {
        let code = metric_code(metric).expect("a metric");
        let mut rows = self.rows.iter().rev();
        let is_it = |row: &&Row| row.metric == code && row.database == database;
        rows.find(|row| is_it(row) && row.phase == MEASURE).map_or(-1.0, |row| row.value)
    }
}

/// Each user stays where it is: half of them at either endpoint. All come from one address, and
/// all are at the first.
#[test]
fn single_affinity_shares_users_by_where_they_come_from() {
    for distribution in [json!(null), json!({"policy": "single affinity"})] {
        let ran = run(|plan| two(plan, distribution), Faults::default);
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        for database in [1, 2] {
            assert_eq!(ran.last("endpoint_sessions", database), f64::from(USERS / 2));
            assert!(ran.count_at(READ, database) > 50);
        }
        assert_eq!(ran.added("endpoint_moved", 1) + ran.added("endpoint_moved", 2), 0);
    }
    let one = json!({"policy": "single affinity", "client_addresses": 1});
    let ran = run(|plan| two(plan, one), Faults::default);
    assert_eq!(ran.last("endpoint_sessions", 1), f64::from(USERS));
    assert_eq!(ran.count_at(READ, 2), 0);
    assert!(ran.audit().findings.is_empty(), "{:?}", ran.audit().findings);
}

fn second_dies() -> Faults {
    Faults { second_dies: Cell::new(60 * NANOS_PER_SECOND), ..Faults::default() }
}

/// The users of an endpoint that died connect to the other one; all mail is there.
#[test]
fn under_round_robin_users_of_a_dead_endpoint_go_on_at_the_other() {
    let ran = run(|plan| two(plan, json!({"policy": "round robin"})), second_dies);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert_eq!(ran.last("endpoint_sessions", 1), f64::from(USERS));
    assert_eq!(ran.last("endpoint_sessions", 2), 0.0);
    assert_eq!(ran.added("endpoint_moved", 1), u64::from(USERS / 2), "each moved once");
    let refused = ran.added("endpoint_refused", 2);
    assert!((1..=u64::from(USERS)).contains(&refused), "{refused}");
    assert!(ran.count_at(READ, 1) > ran.count_at(READ, 2));
    assert!(ran.audit().findings.is_empty(), "{:?}", ran.audit().findings);
}

fn second_delivery_dies() -> Faults {
    Faults { second_delivery_dies: Cell::new(60 * NANOS_PER_SECOND), ..Faults::default() }
}

/// A port for delivery dies alone: readers stay where they are, and their mail goes by the other.
/// Under single affinity it is refused.
#[test]
fn under_round_robin_mail_goes_on_by_the_other_endpoint_where_one_takes_none() {
    let ran = run(|plan| two(plan, json!({"policy": "round robin"})), second_delivery_dies);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert_eq!(ran.count("mail_connection_lost"), 0);
    for database in [1, 2] {
        assert_eq!(ran.last("endpoint_sessions", database), f64::from(USERS / 2));
    }
    assert!((1..10).contains(&ran.added("endpoint_refused", 2)), "it is not tried for each mail");
    assert!(ran.audit().findings.is_empty(), "{:?}", ran.audit().findings);
    let stays = run(|plan| two(plan, json!({"policy": "single affinity"})), second_delivery_dies);
    assert!(stays.count("mail_connection_lost") > 0);
}

/// A server ends connections that nobody uses, and is no dead endpoint because of it: mail goes by
/// a new one.
#[test]
fn a_connection_for_delivery_that_ended_while_nobody_used_it_is_made_again() {
    let faults =
        || Faults { delivery_waits_max: Cell::new(NANOS_PER_SECOND / 2), ..Faults::default() };
    for policy in ["round robin", "single affinity"] {
        let ran = run(|plan| two(plan, json!({"policy": policy})), faults);
        assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
        assert!(ran.count("mail_send_mail") > 20, "{policy}");
        assert_eq!(ran.count("mail_connection_lost"), 0, "{policy}");
        assert_eq!(ran.added("endpoint_refused", 1) + ran.added("endpoint_refused", 2), 0);
        assert!(ran.audit().findings.is_empty(), "{:?}", ran.audit().findings);
    }
}

/// Mail that one of two endpoints loses is missing, and it is said by which it went.
#[test]
fn mail_that_an_endpoint_took_and_lost_is_told_with_the_endpoint() {
    let faults = || Faults { second_loses: Cell::new(true), ..Faults::default() };
    let ran = run(|plan| two(plan, json!({"policy": "single affinity"})), faults);
    let (missing, told) = (ran.audit().counts["missing"], ran.audit().findings.join(" "));
    assert!(missing > 10, "{told}");
    assert!(told.contains(&format!("were accepted: {missing} by {SECOND_LMTP};")), "{told}");
}

/// The users of a dead endpoint are refused there, again and again, and nobody else notices.
#[test]
fn under_single_affinity_users_of_a_dead_endpoint_stay_refused() {
    let ran = run(|plan| two(plan, json!({"policy": "single affinity"})), second_dies);
    assert_eq!(ran.outcome.ending, Ending::Complete, "{:?}", ran.outcome.error);
    assert_eq!(ran.last("endpoint_sessions", 1), f64::from(USERS / 2));
    assert_eq!(ran.added("endpoint_moved", 1) + ran.added("endpoint_moved", 2), 0);
    let refused = ran.added("endpoint_refused", 2);
    assert!(refused > u64::from(USERS), "{refused}");
    assert_eq!(ran.added("endpoint_refused", 1), 0);
    let unread = ran.audit().counts["accounts_unread"];
    assert_eq!(unread, u64::from(USERS / 2), "no one can look at them");
}

/// Two runs of one seed do the same.
#[test]
fn a_seed_decides_who_is_where() {
    let rows = || run(|plan| two(plan, json!({"policy": "round robin"})), second_dies).rows;
    assert_eq!(rows(), rows());
}
