//! Figures in print, for showing beside what is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoadKind;

/// What a report published about the paths of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Author, title, place and date.
    pub source: String,
    /// The quantity of ours that answers to it.
    pub quantity: String,
    /// What its values are, with their unit.
    pub what: String,
    /// What a reader has to know before comparing.
    pub remark: String,
    /// The figures.
    pub figures: Vec<PublishedFigure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFigure {
    /// The path of ours that stands for what was measured then.
    pub path: String,
    /// The load of ours.
    pub load: LoadKind,
    /// What it was called.
    pub called: String,
    /// In the unit of [`Published::what`].
    pub value: f64,
    /// Half-width of its interval, as printed.
    pub half_width: f64,
}
