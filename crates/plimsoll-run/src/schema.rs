//! The JSON Schema of a run spec, for those who write one.
//!
//! Workloads carry the keys of their families beside their own, so the schema of a workload is one alternative for each family.

use schemars::schema_for;
use serde_json::{Value, json};

use crate::family::Families;
use crate::spec::RunSpec;

impl RunSpec {
    /// The schema of the specs that a run with these families takes.
    pub fn schema(families: &Families) -> Value {
        let mut schema = schema_for!(RunSpec).to_value();
        let backends = families.backends();
        schema["$defs"]["InstanceSpec"]["properties"]["backend"]["enum"] = json!(backends);
        let common = schema["$defs"]["WorkloadSpec"].take();
        let mut alternatives = Vec::new();
        for (name, family) in families.workload_schemas() {
            let mut family = family.to_value();
            let parts = family["$defs"].take();
            if let (Value::Object(all), Value::Object(parts)) = (&mut schema["$defs"], parts) {
                all.extend(parts);
            }
            alternatives.push(workload(&common, &family, name));
        }
        schema["$defs"]["WorkloadSpec"] = match alternatives.len() {
            1 => alternatives.remove(0),
            _ => json!({ "anyOf": alternatives }),
        };
        schema
    }
}

/// A workload of one family: the keys that all have and those of the family, and no others.
fn workload(common: &Value, family: &Value, name: &str) -> Value {
    let mut merged = common.clone();
    for key in ["properties", "required"] {
        match (&mut merged[key], &family[key]) {
            (Value::Object(all), Value::Object(more)) => all.extend(more.clone()),
            (Value::Array(all), Value::Array(more)) => all.extend(more.clone()),
            _ => {}
        }
    }
    merged["properties"]["family"] = json!({ "enum": [name, null] });
    if let Value::Object(merged) = &mut merged {
        merged.insert("additionalProperties".into(), Value::Bool(false));
    }
    merged
}
