//! The document `hopyard/diff/1`: two runs compared cell by cell, for scripts and for every report.
//!
//! Fields are only ever added. SI base units are in the names. What does not apply is absent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cell, RunSummary, WarningCode};
use crate::stats::{Estimate, Verdict};

/// The whole document. Every ratio is B over A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// Always `hopyard/diff/1`.
    pub schema: String,
    /// The run compared with.
    pub a: RunSummary,
    /// The run that is compared.
    pub b: RunSummary,
    /// What else differs between the two, as far as it was recorded; the first things to look at.
    pub differences: Vec<Difference>,
    /// How samples of the two are set against each other.
    pub pairing: Pairing,
    /// Are cells compared by their ratio to the base of their own run, instead of by their figures?
    pub relative: bool,
    /// Confidence of every interval: the higher of the two runs'.
    pub confidence: f64,
    /// Difference below which two cells count as equivalent, as a share: the smaller of the two runs'.
    pub margin: f64,
    /// Fewer blocks in either run than a verdict needs: ratios without verdicts.
    pub quick_look: bool,
    /// One entry per cell with figures in both, in the order of A's plan.
    pub cells: Vec<CellDiff>,
    /// Cells that are not compared.
    pub left_out: Vec<LeftOut>,
    /// What the gate says, where one was asked for (`--fail-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What a reader must know before trusting a ratio.
    pub warnings: Vec<DiffWarning>,
}

/// A fact that is not the same in both runs; empty where a run has nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs: `kernel`, `CPU`, a sysctl.
    pub what: String,
    /// Its value in run A.
    pub a: String,
    /// Its value in run B.
    pub b: String,
}

/// How samples of two runs are set against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// Not at all: means are compared (Welch, on the log scale). The runs were made one after the other.
    Unpaired,
}

/// One cell in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellDiff {
    /// The cell that both runs measured.
    #[serde(flatten)]
    pub cell: Cell,
    /// What it is compared with in its own run, where ratios to a base are compared: a path,
    /// `AXIS=VALUE`, or `offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Name of the quantity (with its unit) → comparison.
    pub comparisons: BTreeMap<String, QuantityDiff>,
}

/// One quantity of one cell in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityDiff {
    /// In run A, in the unit of the quantity; its ratio to the base where those are compared.
    pub a: Estimate,
    /// In run B, likewise.
    pub b: Estimate,
    /// B over A, of geometric means.
    pub ratio: Estimate,
    /// The verdict; absent in a quick look, and where fewer blocks than a verdict needs have the quantity in either run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Which way it changed, where the verdict is *different*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Smallest |ratio − 1| that these two runs would have shown four times out of five; absent where
    /// they could show nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Does it trip the gate? Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trips_gate: Option<bool>,
    /// Smallest loss, as a share, that would trip the gate four times out of five; absent where none
    /// would, or there is no gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_catches_ratio: Option<f64>,
}

/// For the better or the worse: more throughput is better, more cost or latency is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// B has more throughput, or less cost or latency.
    Better,
    /// B has less throughput, or more cost or latency.
    Worse,
}

/// A cell that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The cell that is left out.
    #[serde(flatten)]
    pub cell: Cell,
    /// The run that has figures of it.
    pub measured_in: MeasuredIn,
    /// Why it is not compared.
    pub cause: String,
}

/// Which run has figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredIn {
    /// Run A only.
    A,
    /// Run B only.
    B,
    /// Both runs.
    Both,
    /// Neither run.
    Neither,
}

/// A gate: is any cell shown to be worse in B by more than so much?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The loss that is still let through, as a share.
    pub fail_on_ratio: f64,
    /// Did anything trip it?
    pub failed: bool,
    /// Comparisons that it looked at.
    pub comparisons: usize,
    /// Of those, the ones that tripped it.
    pub tripped: usize,
    /// Of those, the ones too noisy to tell a loss of that size from none.
    pub blind: usize,
    /// Nothing tripped it, but it could not have seen such a loss everywhere: it has neither passed nor failed.
    #[serde(default)]
    pub undecided: bool,
    /// Blocks that each run would need for the gate to see such a loss everywhere; absent where it can, or nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_needed: Option<u32>,
}

/// A doubt about a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffWarning {
    /// Kind, stable for scripts.
    pub code: DiffWarningCode,
    /// A full sentence with advice.
    pub message: String,
}

/// Kinds of doubts about a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffWarningCode {
    /// Run A has a warning that run B has not.
    OnlyA(WarningCode),
    /// Run B has a warning that run A has not.
    OnlyB(WarningCode),
    /// Fewer blocks than a verdict needs.
    QuickLook,
    /// The gate could not have seen what it was asked for.
    GateBlind,
    /// A has figures that could not be compared: the gate did not look at them.
    GateMissing,
}
