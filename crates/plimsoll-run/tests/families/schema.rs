//! The JSON Schema of a run spec says what is read, no more and no less: Python's own type is held
//! against it.

use std::collections::BTreeSet;

use plimsoll_run::{RunSpec, built_in};
use serde_json::{Value, json};

/// Every object of the schema with the keys of the plan's object at the same place.
fn compare(
    schema: &Value,
    root: &Value,
    value: &Value,
    place: &str,
    unknown: &mut BTreeSet<String>,
) {
    let mut schema = schema;
    while let Some(name) = schema["$ref"].as_str() {
        schema = root.pointer(&name[1..]).expect("a reference leads somewhere");
    }
    if let Some(alternatives) = schema["anyOf"].as_array()
        && let Value::Object(object) = value
    {
        // Families may take the same keys and differ in the names of their backends.
        let takes = |each: &Value| {
            let known = |key: &String| each["properties"][key]["enum"].as_array();
            object.iter().all(|(key, value)| known(key).is_none_or(|known| known.contains(value)))
        };
        schema = alternatives
            .iter()
            .max_by_key(|each| {
                let shared = object.keys().filter(|key| !each["properties"][*key].is_null());
                (takes(each), shared.count())
            })
            .expect("there is one");
    }
    match value {
        Value::Object(object) if !schema["properties"].is_null() => {
            for (key, value) in object {
                match &schema["properties"][key] {
                    Value::Null => drop(unknown.insert(format!("{place}.{key}"))),
                    known => compare(known, root, value, &format!("{place}.{key}"), unknown),
                }
            }
            assert_eq!(schema["additionalProperties"], json!(false), "{place} takes anything");
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

/// A key that is read and missing in the schema would be refused by everybody who writes a spec by
/// it.
#[test]
fn the_schema_knows_every_key_of_a_plan() {
    let schema = RunSpec::schema(&built_in());
    let mut plan = crate::support::spec("engine", json!({"sessions": 2, "shared": false}), 1.0);
    plan["workloads"][0]["locality"] = json!({"folder_records": 0, "batch_operations": 1,
        "replies": false, "hot_percent": 1, "hot_access_percent": 2});
    plan["instances"][0]["maintenance"] = json!({"throttle_ms": 20, "read_bytes": 262_144});
    let mut unknown = BTreeSet::new();
    compare(&schema, &schema, &plan, "", &mut unknown);
    assert_eq!(unknown, BTreeSet::new());
    plan["workloads"][0]["colour"] = json!("red");
    compare(&schema, &schema, &plan, "", &mut unknown);
    assert_eq!(unknown, BTreeSet::from([".workloads.colour".to_owned()]));
    let backends = |family: usize| {
        &schema["$defs"]["InstanceSpec"]["anyOf"][family]["properties"]["backend"]["enum"]
    };
    assert_eq!(backends(0), &json!(["engine", "raw_files"]));
    assert_eq!(backends(1), &json!(["files"]));
    assert_eq!(backends(2), &json!(["home_folders"]));
    assert_eq!(backends(3), &json!(["store"]));
}

/// What a schema takes, without names, descriptions, ranges and absent values: two schemas of one
/// document are alike in this.
fn shape(schema: &Value, root: &Value) -> Value {
    let mut schema = schema.clone();
    while let Some(name) = schema["$ref"].as_str() {
        let place = name.trim_start_matches('#').to_owned();
        let aside = schema.clone();
        schema = root.pointer(&place).expect("a reference leads somewhere").clone();
        merge(&mut schema, &aside);
    }
    let alternatives = [&schema["anyOf"], &schema["oneOf"]];
    if let Some(alternatives) = alternatives.into_iter().find_map(Value::as_array) {
        let shapes = alternatives.iter().map(|each| shape(each, root));
        let mut shapes: Vec<Value> = shapes.filter(|each| *each != json!("null")).collect();
        if shapes.iter().all(|each| each["one of"].is_array()) {
            let each = shapes.iter().filter_map(|each| each["one of"].as_array());
            return one_of(each.flatten().cloned().collect());
        }
        shapes.sort_by_key(ToString::to_string);
        return if shapes.len() == 1 { shapes.remove(0) } else { json!(shapes) };
    }
    if let Some(values) = schema["enum"].as_array() {
        return one_of(values.clone());
    }
    if !schema["const"].is_null() {
        return one_of(vec![schema["const"].clone()]);
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let kind = kinds.into_iter().find(|kind| *kind != json!("null")).unwrap_or(json!("null"));
    match kind.as_str() {
        Some("array") => json!([shape(&schema["items"], root)]),
        Some("object") => {
            let keys = schema["properties"].as_object().into_iter().flatten();
            Value::Object(keys.map(|(key, each)| (key.clone(), shape(each, root))).collect())
        }
        _ => kind,
    }
}

/// A schema with what stands beside the reference to it.
fn merge(schema: &mut Value, aside: &Value) {
    if let (Value::Object(all), Value::Object(more)) =
        (&mut schema["properties"], &aside["properties"])
    {
        all.extend(more.clone());
    }
}

/// Texts that are told apart; numbers are only numbers.
fn one_of(values: Vec<Value>) -> Value {
    if values.iter().all(Value::is_number) {
        return json!("integer");
    }
    let mut texts: Vec<Value> = values.into_iter().filter(|value| !value.is_null()).collect();
    texts.sort_by_key(ToString::to_string);
    json!({ "one of": texts })
}

/// Python writes what Rust reads: its own type of the run spec, published as a schema, and the one
/// of Rust take the same keys with the same kinds of values at every place.
#[test]
fn python_and_rust_mean_the_same_run_spec() {
    let published = include_str!("../../../../docs/reference/schemas/run-spec.schema.json");
    let python: Value = serde_json::from_str(published).expect("it is JSON");
    let rust = RunSpec::schema(&built_in());
    let (rust, python) = (shape(&rust, &rust), shape(&python, &python));
    let mut differences = Vec::new();
    differ(&rust, &python, "run", &mut differences);
    assert_eq!(differences, Vec::<String>::new());
}

fn differ(rust: &Value, python: &Value, place: &str, found: &mut Vec<String>) {
    match (rust, python) {
        (Value::Object(rust), Value::Object(python)) => {
            for key in rust.keys().chain(python.keys()).collect::<BTreeSet<_>>() {
                let (rust, python) = (rust.get(key), python.get(key));
                match (rust, python) {
                    (Some(rust), Some(python)) => {
                        differ(rust, python, &format!("{place}.{key}"), found)
                    }
                    _ => found.push(format!("{place}.{key}: Rust {rust:?}, Python {python:?}")),
                }
            }
        }
        (Value::Array(rust), Value::Array(python)) if rust.len() == python.len() => {
            for (number, (rust, python)) in rust.iter().zip(python).enumerate() {
                differ(rust, python, &format!("{place}[{number}]"), found);
            }
        }
        _ if rust == python => {}
        _ => found.push(format!("{place}: Rust {rust}, Python {python}")),
    }
}
