//! The JSON Schema of a run spec says what is read, no more and no less: Python's own type is held against it.

use std::collections::BTreeSet;

use plimsoll_run::{RunSpec, built_in};
use serde_json::{Value, json};

#[path = "load/support.rs"]
#[expect(dead_code, reason = "each program uses its part of the support")]
mod support;

/// Every object of the schema with the keys of the plan's object at the same place.
fn compare(schema: &Value, root: &Value, value: &Value, place: &str, unknown: &mut BTreeSet<String>) {
    let mut schema = schema;
    while let Some(name) = schema["$ref"].as_str() {
        schema = root.pointer(&name[1..]).expect("a reference leads somewhere");
    }
    match value {
        Value::Object(object) if !schema["properties"].is_null() => {
            for (key, value) in object {
                match &schema["properties"][key] {
                    Value::Null => drop(unknown.insert(format!("{place}.{key}"))),
                    known => compare(known, root, value, &format!("{place}.{key}"), unknown),
                }
            }
            assert_eq!(
                schema["additionalProperties"],
                json!(false),
                "{place} takes anything"
            );
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    object.contains_key(required.as_str().unwrap_or_default()),
                    "{place} lacks {required}"
                );
            }
        }
        Value::Array(items) => {
            for item in items {
                compare(&schema["items"], root, item, place, unknown);
            }
        }
        _ => {}
    }
}

/// A key that is read and missing in the schema would be refused by everybody who writes a spec by it.
#[test]
fn the_schema_knows_every_key_of_a_plan() {
    let schema = RunSpec::schema(&built_in());
    let mut plan = support::spec("engine", json!({"sessions": 2, "shared": false}), 1.0);
    plan["workloads"][0]["locality"] = json!({"folder_records": 0, "batch_operations": 1, "replies": false, "hot_percent": 1, "hot_access_percent": 2});
    plan["instances"][0]["maintenance"] = json!({"throttle_ms": 20, "read_bytes": 262_144});
    let mut unknown = BTreeSet::new();
    compare(&schema, &schema, &plan, "", &mut unknown);
    assert_eq!(unknown, BTreeSet::new());
    plan["workloads"][0]["colour"] = json!("red");
    compare(&schema, &schema, &plan, "", &mut unknown);
    assert_eq!(unknown, BTreeSet::from([".workloads.colour".to_owned()]));
    let backends = &schema["$defs"]["InstanceSpec"]["properties"]["backend"]["enum"];
    assert_eq!(backends, &json!(["engine", "raw_files"]));
}
