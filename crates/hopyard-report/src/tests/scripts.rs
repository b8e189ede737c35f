use serde_json::Value;

use super::{fixture, page};
use crate::model::RunReport;
use crate::{EXPORTS, schema};

#[test]
fn json_reads_back() {
    let report = fixture::paths();
    let text = page(&report, "json");
    let again: RunReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&again.run, &again.warnings),
        (&report.run, &report.warnings)
    );
    // serde_json reads a number back to within its last bit.
    assert_eq!(again.cells.len(), report.cells.len());
    for (again, cell) in again.cells.iter().zip(&report.cells) {
        assert_eq!((&again.path, &again.axes), (&cell.path, &cell.axes));
        for (name, estimate) in &cell.estimates {
            assert!(
                (again.estimates[name].value / estimate.value - 1.0).abs() < 1e-15
                    || estimate.value == 0.0
            );
        }
    }
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "hopyard/run/1");
    assert_eq!(json["cells"][0]["axes"]["message_size_bytes"], 16384);
    assert_eq!(
        json["cells"][1]["verdicts"]["goodput_bps"]["verdict"],
        "different"
    );
}

#[test]
fn the_schema_names_what_the_document_has() {
    let schema = schema();
    assert_eq!(schema["title"], "hopyard/run/1");
    assert_eq!(schema["properties"]["schema"]["const"], "hopyard/run/1");
    let properties = schema["properties"].as_object().unwrap();
    let document = serde_json::to_value(fixture::paths()).unwrap();
    for key in document.as_object().unwrap().keys() {
        assert!(properties.contains_key(key), "{key}");
    }
    assert!(schema["$defs"]["Estimate"]["properties"]["low"].is_object());
}

#[test]
fn the_formats_have_their_names() {
    let names: Vec<_> = EXPORTS.iter().map(|export| export.name).collect();
    // Scripts depend on these keys; new ones come after them.
    let first = [
        "text",
        "markdown",
        "html",
        "json",
        "csv",
        "netperf",
        "parquet",
        "openmetrics",
    ];
    assert!(names.starts_with(&first), "{names:?}");
}
