//! Values of a configuration, read with errors that name their keys.

use serde_json::Value;

use crate::error::{Error, Result, code};

/// Reads a configuration, which must be an object.
pub(crate) fn parse(text: &[u8]) -> Result<Value> {
    let conf: Value = serde_json::from_slice(text).map_err(|error| {
        let msg = format!("the network configuration on stdin is not JSON: {error}");
        Error::new(code::NOT_JSON, msg)
    })?;
    if !conf.is_object() {
        let msg = "the network configuration on stdin is no JSON object";
        return Err(Error::new(code::NOT_JSON, msg));
    }
    Ok(conf)
}

/// Letters, digits, `.`, `_` and `-`, a letter or digit first: container identifiers and names of networks.
pub(crate) fn is_identifier(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.chars().all(plain) && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Files of records have this name.
const LONGEST_NETWORK: usize = 200;

/// The name of the network.
pub(crate) fn network_name(conf: &Value) -> Result<String> {
    let name = text(conf, "name")?.unwrap_or_default();
    if !is_identifier(&name) || name.len() > LONGEST_NETWORK {
        let why =
            "is no name of a network: letters, digits, `.`, `_` and `-`, a letter or digit first";
        return Err(invalid("name", &conf["name"], why));
    }
    Ok(name)
}

pub(crate) fn invalid(key: &str, value: &Value, why: &str) -> Error {
    Error::new(code::BAD_CONFIG, format!("key `{key}` ({value}) {why}"))
}

pub(crate) fn flag(conf: &Value, key: &str, default: bool) -> Result<bool> {
    Ok(optional_flag(conf, key)?.unwrap_or(default))
}

pub(crate) fn optional_flag(conf: &Value, key: &str) -> Result<Option<bool>> {
    match &conf[key] {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(*value)),
        other => Err(invalid(key, other, "is neither true nor false")),
    }
}

/// A text; an empty one is none.
pub(crate) fn text(conf: &Value, key: &str) -> Result<Option<String>> {
    text_of(key, &conf[key])
}

/// The same of the value itself, which has this name.
pub(crate) fn text_of(key: &str, value: &Value) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        other => Err(invalid(key, other, "is no text")),
    }
}
