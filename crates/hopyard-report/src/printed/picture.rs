//! A picture, as described in the data files.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::cells::{Cells, settings};
use super::spec::one;

/// Curves that the report describes, with the points that it printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) unit: String,
    pub(super) draws: Draws,
    #[serde(default)]
    pub(super) cells: Cells,
    /// A picture for each value.
    pub(super) each: Each,
    /// One curve each.
    pub(super) lines: Vec<LineOf>,
    #[serde(default)]
    pub(super) points: Vec<Points>,
    #[serde(default)]
    pub(super) spans: Vec<SpanOf>,
}

/// What a picture shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Draws {
    /// A quantity against the number of senders.
    Figure {
        of: String,
        #[serde(default = "one")]
        factor: f64,
    },
    /// The same relative to the base.
    Ratio(String),
    /// Jitter against the time since the traffic began.
    Jitter { factor: f64 },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Each {
    pub(super) axis: String,
    pub(super) values: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineOf {
    pub(super) name: String,
    #[serde(default)]
    pub(super) path: Option<String>,
    #[serde(deserialize_with = "settings")]
    pub(super) set: BTreeMap<String, String>,
}

/// Printed points, or a printed range that holds along the whole axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Points {
    pub(super) name: String,
    #[serde(default)]
    pub(super) at: Vec<(f64, f64)>,
    #[serde(default)]
    pub(super) between: Option<(f64, f64)>,
}

/// A printed place, or range, along the axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpanOf {
    pub(super) name: String,
    pub(super) from: f64,
    pub(super) to: f64,
}
