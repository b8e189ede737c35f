//! JSON Schema (2020-12), as much of it as `hopyard schema` uses.

use serde_json::Value;

/// Words that say nothing about validity here.
const SILENT: [&str; 8] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "format",
    "default",
    "examples",
    "$id",
];

/// The document is as the schema says.
#[track_caller]
pub(crate) fn check(schema: &Value, document: &Value) {
    let mut problems = Vec::new();
    validate(schema, schema, document, "", &mut problems);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn validate(root: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    let Value::Object(words) = schema else {
        if schema == &Value::Bool(false) {
            problems.push(format!("{at}: not allowed"));
        }
        return;
    };
    for (word, rule) in words {
        let wrong = |why: String| Some(format!("{at}: {why}: {value}"));
        let problem = match word.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let target = root
                    .pointer(pointer)
                    .unwrap_or_else(|| panic!("{rule} points nowhere"));
                validate(root, target, value, at, problems);
                None
            }
            "type" => {
                let one = std::slice::from_ref(rule);
                let types = rule.as_array().map_or(one, Vec::as_slice);
                let fits = types.iter().any(|t| is_of(value, t.as_str().unwrap()));
                (!fits).then(|| format!("{at}: not of type {rule}: {value}"))
            }
            "const" if rule != value => wrong(format!("not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => wrong(format!("none of {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() => wrong(format!("below {rule}")),
            "maximum" if value.as_f64() > rule.as_f64() => wrong(format!("above {rule}")),
            "const" | "enum" | "minimum" | "maximum" => None,
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        problems.push(format!("{at}: {key} is missing"));
                    }
                }
                None
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        validate(root, rule, value, &format!("{at}/{key}"), problems);
                    }
                }
                None
            }
            "additionalProperties" => {
                let known = words.get("properties").and_then(Value::as_object);
                for (key, value) in value.as_object().into_iter().flatten() {
                    if !known.is_some_and(|known| known.contains_key(key)) {
                        validate(root, rule, value, &format!("{at}/{key}"), problems);
                    }
                }
                None
            }
            "items" => {
                let first = words
                    .get("prefixItems")
                    .and_then(Value::as_array)
                    .map_or(0, Vec::len);
                for (number, value) in value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .skip(first)
                {
                    validate(root, rule, value, &format!("{at}/{number}"), problems);
                }
                None
            }
            "prefixItems" => {
                for (number, rule) in rule.as_array().unwrap().iter().enumerate() {
                    if let Some(value) = value.get(number) {
                        validate(root, rule, value, &format!("{at}/{number}"), problems);
                    }
                }
                None
            }
            "minItems" => {
                let short = value
                    .as_array()
                    .is_some_and(|v| (v.len() as u64) < rule.as_u64().unwrap());
                short.then(|| format!("{at}: too few items"))
            }
            "maxItems" => {
                let long = value
                    .as_array()
                    .is_some_and(|v| v.len() as u64 > rule.as_u64().unwrap());
                long.then(|| format!("{at}: too many items"))
            }
            "allOf" | "anyOf" | "oneOf" => {
                let fitting = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|rule| {
                        let mut inner = Vec::new();
                        validate(root, rule, value, at, &mut inner);
                        inner.is_empty()
                    })
                    .count();
                let fits = match word.as_str() {
                    "allOf" => fitting == rule.as_array().unwrap().len(),
                    "oneOf" => fitting == 1,
                    _ => fitting > 0,
                };
                (!fits).then(|| format!("{at}: {fitting} of {word} fit {value}"))
            }
            silent if SILENT.contains(&silent) => None,
            unknown => panic!("the schema uses `{unknown}`, which this check does not know"),
        };
        problems.extend(problem);
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
        }
        other => panic!("the schema uses type `{other}`"),
    }
}
