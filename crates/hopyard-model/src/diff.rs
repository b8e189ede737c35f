//! The document `hopyard/diff/2`: two sides of repeated runs compared cell by cell, for scripts and for every report.
//!
//! Fields are only ever added. Names contain SI base units. What does not apply is absent. In `hopyard/diff/1` each
//! side was one run, and verdicts came from the scatter of its blocks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cell, Gate, RunSummary, WarningCode};
use hopyard_stats::{Estimate, Verdict};

/// The whole document. Every ratio is B over A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffReport {
    /// Always `hopyard/diff/2`.
    pub schema: String,
    /// The runs of the base side: repeats of one thing, in the order in which they began.
    pub a: Vec<RunSummary>,
    /// The runs of the side compared with it, likewise.
    pub b: Vec<RunSummary>,
    /// Groups of runs of one thing each, which show how much such runs differ here (`--repeats`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Vec<RunSummary>>,
    /// What else differs between the two, as far as it was recorded; look at these first.
    pub differences: Vec<Difference>,
    /// Whether cells are compared by their ratio to the base of their own run, instead of by their figures.
    pub relative: bool,
    /// Confidence of every interval: the highest of all runs.
    pub confidence: f64,
    /// Difference below which two cells count as equivalent, as a share: the smallest of all runs.
    pub margin: f64,
    /// One entry per cell with figures on both sides, in the order of A's plan.
    pub cells: Vec<CellDiff>,
    /// Cells that are not compared.
    pub left_out: Vec<LeftOut>,
    /// Result of the gate, if there was one (`--fail-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What a reader must know before trusting a ratio.
    pub warnings: Vec<DiffWarning>,
}

/// A fact that differs between the sides. Empty if a side does not have it; all values if its runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs: `kernel`, `CPU`, a sysctl.
    pub what: String,
    /// Its value on side A.
    pub a: String,
    /// Its value on side B.
    pub b: String,
}

/// The scatter that the interval of a ratio contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntervalFrom {
    /// Scatter between runs of one thing: the interval holds for the two things compared.
    Runs,
    /// Only the scatter within these runs, because the scatter between runs is not known. It holds for these runs, not
    /// for what they measured, and there is no verdict.
    Blocks,
}

/// One cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellDiff {
    /// The cell that both sides measured.
    #[serde(flatten)]
    pub cell: Cell,
    /// Its base in its own run, if ratios to a base are compared: a path, `AXIS=VALUE`, or `offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Name of the quantity (with its unit) → comparison.
    pub comparisons: BTreeMap<String, QuantityDiff>,
}

/// One quantity of one cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityDiff {
    /// Figure in A, in the unit of the quantity, or its ratio to the base if those are compared. For one run it is the
    /// run's estimate, and `n` counts blocks; for several, the geometric mean of their estimates, and `n` counts runs.
    pub a: Estimate,
    /// In B, likewise.
    pub b: Estimate,
    /// Runs of A that have it.
    pub runs_a: usize,
    /// Runs of B that have it.
    pub runs_b: usize,
    /// B over A. Its `n` counts runs of the smaller side, or blocks if `interval_from` says so.
    pub ratio: Estimate,
    /// The scatter that the interval of the ratio contains.
    pub interval_from: IntervalFrom,
    /// How much runs of one thing differ here: one standard deviation, as a share. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_scatter: Option<f64>,
    /// The verdict; absent if it is not known how much runs of one thing differ here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Direction of the change, if the verdict is *different*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Smallest |ratio − 1| that these runs would have detected four times out of five; absent if they could detect
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Whether it fails the gate. Absent without a gate or a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trips_gate: Option<bool>,
    /// Smallest loss, as a share, that would fail the gate four times out of five; absent if none would, or without a
    /// gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_catches_ratio: Option<f64>,
}

/// Better or worse: more throughput is better, more cost or latency is worse.
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
    /// The side that has figures of it.
    pub measured_in: MeasuredIn,
    /// Why it is not compared.
    pub cause: String,
}

/// Which side has figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredIn {
    /// A only.
    A,
    /// B only.
    B,
    /// Both sides.
    Both,
    /// Neither side.
    Neither,
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
    /// Runs of A have a warning that none of B has.
    OnlyA(WarningCode),
    /// Runs of B have a warning that none of A has.
    OnlyB(WarningCode),
    /// The scatter between runs of one thing is not known: no verdicts.
    ScatterUnknown,
    /// Runs that were named as repeats of one thing differ.
    RunsNotAlike,
    /// No verdict rests on the scatter of `--repeats`: each side has enough runs of its own.
    RepeatsUnused,
    /// All runs of one side were made before those of the other.
    NotInterleaved,
    /// Some cells have figures in some of the runs only.
    SomeRunsOnly,
    /// The gate could not have detected the loss it guards against.
    GateBlind,
    /// A has figures that could not be compared: the gate ignored them.
    GateMissing,
}
