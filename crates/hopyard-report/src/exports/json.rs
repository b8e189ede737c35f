//! The whole document, for scripts: `hopyard schema` describes it.

use serde::Serialize;

use super::{Export, Writer};
use crate::plain;

pub static EXPORT: Export = Export {
    name: "json",
    title: "JSON",
    summary: "The whole document, see `hopyard schema`",
    extension: "json",
    diff: Some(document),
    claims: Some(|report, _| document(report)),
    ..Export::of_runs(Writer::Text(|report, _| Ok(document(report))))
};

fn document(report: &impl Serialize) -> String {
    // Maps with text keys and finite numbers cannot fail to serialise. If that ever changes, the reader gets JSON that
    // says so.
    let mut text = serde_json::to_string_pretty(report)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string());
    text.push('\n');
    plain::json(&text).into_owned()
}
