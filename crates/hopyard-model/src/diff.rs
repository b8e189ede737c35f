//! The document `hopyard/diff/2`: two sides of repeated runs compared cell by cell, for scripts and for every report.
//!
//! Fields are only ever added. SI base units are in the names. What does not apply is absent.
//! In `hopyard/diff/1` each side was one run, and verdicts came from the scatter of its blocks.

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
    /// The runs compared with: repeats of one thing, in the order in which they were begun.
    pub a: Vec<RunSummary>,
    /// The runs that are compared, likewise.
    pub b: Vec<RunSummary>,
    /// Groups of runs of one thing each, which tell how much such runs differ here (`--repeats`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Vec<RunSummary>>,
    /// What else differs between the two, as far as it was recorded; the first things to look at.
    pub differences: Vec<Difference>,
    /// Are cells compared by their ratio to the base of their own run, instead of by their figures?
    pub relative: bool,
    /// Confidence of every interval: the highest of the runs'.
    pub confidence: f64,
    /// Difference below which two cells count as equivalent, as a share: the smallest of the runs'.
    pub margin: f64,
    /// One entry per cell with figures on both sides, in the order of A's plan.
    pub cells: Vec<CellDiff>,
    /// Cells that are not compared.
    pub left_out: Vec<LeftOut>,
    /// What the gate says, where one was asked for (`--fail-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What a reader must know before trusting a ratio.
    pub warnings: Vec<DiffWarning>,
}

/// A fact that is not the same on both sides; empty where a side has nothing of it, and all values where its runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs: `kernel`, `CPU`, a sysctl.
    pub what: String,
    /// Its value on side A.
    pub a: String,
    /// Its value on side B.
    pub b: String,
}

/// What the interval of a ratio knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntervalFrom {
    /// How much runs of one thing differ: it holds for these two things.
    Runs,
    /// The scatter within these runs only, since nobody knows how much runs of one thing differ here. It holds for these
    /// runs, not for what they measured, and there is no verdict.
    Blocks,
}

/// One cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellDiff {
    /// The cell that both sides measured.
    #[serde(flatten)]
    pub cell: Cell,
    /// What it is compared with in its own run, where ratios to a base are compared: a path,
    /// `AXIS=VALUE`, or `offload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Name of the quantity (with its unit) → comparison.
    pub comparisons: BTreeMap<String, QuantityDiff>,
}

/// One quantity of one cell on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityDiff {
    /// In A, in the unit of the quantity; its ratio to the base where those are compared. Of one run its estimate, whose `n`
    /// counts blocks; of several the geometric mean of their estimates, whose `n` counts runs.
    pub a: Estimate,
    /// In B, likewise.
    pub b: Estimate,
    /// Runs of A that have it.
    pub runs_a: usize,
    /// Runs of B that have it.
    pub runs_b: usize,
    /// B over A. Its `n`: runs of the smaller side, or blocks where `interval_from` is that.
    pub ratio: Estimate,
    /// What the interval of the ratio knows.
    pub interval_from: IntervalFrom,
    /// By how much runs of one thing differ here: one standard deviation, as a share. Absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_scatter: Option<f64>,
    /// The verdict; absent where it is not known how much runs of one thing differ here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Which way it changed, where the verdict is *different*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Smallest |ratio − 1| that these runs would have shown four times out of five; absent where
    /// they could show nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Does it trip the gate? Absent where there is none, or no verdict.
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
    /// How much runs of one thing differ here is not known: no verdicts.
    ScatterUnknown,
    /// Runs that were named as repeats of one thing are not alike.
    RunsNotAlike,
    /// All runs of one side were made before those of the other.
    NotInterleaved,
    /// Some cells have figures in some of the runs only.
    SomeRunsOnly,
    /// The gate could not have seen what it was asked for.
    GateBlind,
    /// A has figures that could not be compared: the gate did not look at them.
    GateMissing,
}
