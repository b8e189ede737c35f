//! Quantities as functions of a count: part of `hopyard/run/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, LoadKind, Peer};
use hopyard_stats::{Estimate, Knee, Straight};

/// Cells that differ in one count only (flows, a chain's length, ports, rules, queues, a guest's CPUs), at three values or more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveReport {
    /// Name of the path.
    pub path: String,
    /// Where the other end is.
    pub peer: Peer,
    /// The load.
    pub load: LoadKind,
    /// Name of the axis that is the count.
    pub axis: String,
    /// Axis values of the first cell; the others differ only in the count.
    pub axes: Axes,
    /// Values of that axis, in rising order.
    pub values: Vec<f64>,
    /// The value from which on the CPUs that the client's flows may run on are full; absent if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpus_full: Option<Saturation>,
    /// The same for all CPUs that the run may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_full: Option<Saturation>,
    /// Name of the quantity (with its unit) → its curve.
    pub quantities: BTreeMap<String, QuantityCurve>,
}

/// Where CPUs become full: busy for at least [`Saturation::FULL`] of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saturation {
    /// The last value at which they are not full; absent if they are full from the first one on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_not_full: Option<f64>,
    /// The first value at which they are; absent if they never are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_full: Option<f64>,
    /// Interval of `first_full` by resampling blocks; absent with fewer than six.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<FullInterval>,
    /// The largest share of busy time, over all values.
    pub most_busy_ratio: f64,
}

/// Interval of the first value at which CPUs are full. An absent end is beyond the last value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullInterval {
    /// Lower end, in the unit of the axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end, in the unit of the axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Saturation {
    /// Share of busy time from which CPUs count as full.
    pub const FULL: f64 = 0.99;

    /// The first value at which CPUs are full, and the ends of its interval; `None` if they never are, or without an interval. `values`
    /// are those of the count, rising.
    ///
    /// What lies between two values was not measured, so the lower end is one above the last value at which they were not full, or 1
    /// where there is none. An end beyond the last value is the last one: nobody looked further.
    #[must_use]
    pub fn first_full_between(&self, values: &[f64]) -> Option<[f64; 3]> {
        let last = values.last().copied()?;
        let first = self.first_full?;
        let interval = self.interval.as_ref()?;
        let low = interval.low.unwrap_or(last).min(first);
        let below = values.iter().rev().find(|count| **count < low);
        let low = below.map_or(1.0, |count| count + 1.0).min(low);
        Some([first, low, interval.high.unwrap_or(last).max(first)])
    }
}

/// One quantity as a function of the count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantityCurve {
    /// The values of the count at which it was measured in the same blocks.
    pub values: Vec<f64>,
    /// Its estimate at each of them.
    pub estimates: Vec<Estimate>,
    /// Each relative to the first, paired within blocks; empty if a value is not above 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_first: Vec<Estimate>,
    /// e of quantity ∝ countᵉ: 1 in proportion, 0 independent, −1 an equal share for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<Estimate>,
    /// The best-fitting straight line.
    pub line: Straight,
    /// The largest leap; if there is none, the largest change. Absent for a quantity that is neither a share nor always
    /// above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepReport>,
    /// The two best-fitting lines; absent with fewer than six blocks or five values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// A change between two neighbouring values of the count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// The value before it.
    pub from: f64,
    /// The value after it.
    pub to: f64,
    /// For a share: the value after minus the value before. Otherwise: the value after over the value before. The
    /// interval allows for the choice among all neighbours.
    pub change: Estimate,
    /// Whether the whole interval is beyond 0.4 (40 points) for a share; otherwise, beyond a factor of 1.5 and beyond
    /// the growth of the count.
    pub is_leap: bool,
}
