//! The JSON Schema of a run spec, for those who write one.
//!
//! Workloads, instances and databases carry the keys of their families beside their own, so each
//! has one alternative for each family.

use schemars::schema_for;
use serde_json::{Value, json};

use crate::family::{Families, Family};
use crate::spec::RunSpec;

impl RunSpec {
    /// The schema of the specs that a run with these families takes.
    pub fn schema(families: &Families) -> Value {
        let mut schema = schema_for!(RunSpec).to_value();
        let of_database = schema["$defs"]["DatabaseSpec"].take();
        if let Value::Object(all) = &mut schema["$defs"] {
            all.remove("DatabaseSpec");
        }
        let of_instance = schema["$defs"]["InstanceSpec"].take();
        let mut instances = Vec::new();
        for of in families.iter().flat_map(|family| family.backend_schemas()) {
            let name = format!("DatabaseSpec of {}", of.backends.join(", "));
            let database = alternative(&mut schema, &of_database, of.database);
            let mut instance = alternative(&mut schema, &of_instance, of.instance);
            let reference = json!({ "$ref": format!("#/$defs/{name}") });
            schema["$defs"][name] = database;
            instance["properties"]["databases"]["items"] = reference;
            instance["properties"]["backend"]["enum"] = json!(of.backends);
            instances.push(instance);
        }
        schema["$defs"]["InstanceSpec"] = one_of(instances);
        let workload = |merged: &mut Value, family: &dyn Family| {
            let is_first =
                families.iter().next().is_some_and(|first| first.name() == family.name());
            let names =
                if is_first { json!([family.name(), null]) } else { json!([family.name()]) };
            merged["properties"]["family"] = json!({ "enum": names });
        };
        by_family(
            &mut schema,
            families,
            "WorkloadSpec",
            |family| family.workload_schema(),
            workload,
        );
        schema
    }
}

/// Replaces a definition by one alternative for each family.
fn by_family(
    schema: &mut Value,
    families: &Families,
    name: &str,
    of_family: impl Fn(&dyn Family) -> schemars::Schema,
    finish: impl Fn(&mut Value, &dyn Family),
) {
    let common = schema["$defs"][name].take();
    let mut alternatives = Vec::new();
    for family in families.iter() {
        let mut merged = alternative(schema, &common, of_family(family));
        finish(&mut merged, family);
        alternatives.push(merged);
    }
    schema["$defs"][name] = one_of(alternatives);
}

fn one_of(mut alternatives: Vec<Value>) -> Value {
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    }
}

/// The keys that all have and those of one family, and no others. Definitions that the family
/// brings go into the schema.
fn alternative(schema: &mut Value, common: &Value, family: schemars::Schema) -> Value {
    let mut family = family.to_value();
    let parts = family["$defs"].take();
    if let (Value::Object(all), Value::Object(parts)) = (&mut schema["$defs"], parts) {
        all.extend(parts);
    }
    let mut merged = common.clone();
    for key in ["properties", "required"] {
        match (&mut merged[key], &family[key]) {
            (Value::Object(all), Value::Object(more)) => all.extend(more.clone()),
            (Value::Array(all), Value::Array(more)) => all.extend(more.clone()),
            _ => {}
        }
    }
    if let Value::Object(merged) = &mut merged {
        merged.insert("additionalProperties".into(), Value::Bool(false));
    }
    merged
}
