//! Instances of one load on different paths: each gets as much of it as its weight says.

use serde_json::{Value, json};

use crate::support::{Ran, constant, rate, run_on, spec};

/// A plan with a second instance of three times the weight.
fn two(load: Value) -> Value {
    let mut plan = spec("raw_files", load, 60.0);
    let mut second = plan["instances"][0].clone();
    second["name"] = json!("two");
    second["directory"] = json!("/data/two");
    second["log_directory"] = json!("/data/two");
    second["weight"] = json!(3.0);
    plan["instances"].as_array_mut().expect("a list").push(second);
    plan["workloads"][0]["instances"] = json!([plan["instances"][0]["name"], "two"]);
    plan
}

fn transactions(ran: &Ran, instance: u32) -> f64 {
    let kinds = ["insert", "delete", "replace", "read"];
    let figures = kinds.iter().flat_map(|kind| ran.figures(kind));
    let of = figures.filter(|figures| figures.instance == instance);
    of.map(|figures| figures.count).sum::<u64>() as f64
}

fn check(load: Value, least: f64, most: f64) {
    let disk = constant(1_000_000);
    disk.create_directory("/data/two");
    let ran = run_on(&disk, &two(load.clone()));
    let ratio = transactions(&ran, 1) / transactions(&ran, 0);
    assert!((least..most).contains(&ratio), "{load}: {ratio}");
}

/// A fast array beside a slow one must be loaded in one run as both will be: arrivals, one pool of
/// sessions, and sessions of each database share out by weight.
#[test]
fn instances_share_a_load_by_weight() {
    check(rate(200.0, 500), 2.8, 3.2);
    check(json!({"sessions": 4, "shared": true}), 2.8, 3.2);
    check(json!({"sessions": 2, "shared": false}), 2.9, 3.1);
}

/// A weight of nothing, or less, would be a load that nobody asked for.
#[test]
fn impossible_weights_are_refused() {
    for weight in [0.0, -1.0] {
        let mut plan = two(rate(10.0, 10));
        plan["instances"][1]["weight"] = json!(weight);
        let refused = plimsoll_run::RunSpec::from_json(&plan.to_string());
        let text = refused.expect_err("it is impossible").to_string();
        assert!(text.contains("weight"), "{text}");
    }
}
