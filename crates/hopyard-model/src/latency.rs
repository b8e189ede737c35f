//! The times of a cell, over all samples: part of `hopyard/run/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every round trip of every sample of a cell (for `udp_paced` every one-way time), with equal weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyReport {
    /// Number of observations.
    pub count: u64,
    /// Smallest observation, ns.
    pub min_ns: u64,
    /// Largest observation, ns.
    pub max_ns: u64,
    /// (quantile, ns) in rising order, to two significant digits; those of fewer than 10/(1 - quantile) observations are absent.
    pub quantiles: Vec<(f64, u64)>,
    /// (upper bound of a class in ns, observations) in rising order, [`LatencyReport::CLASSES`] classes per decade,
    /// empty ones left out.
    pub classes: Vec<(f64, u64)>,
}

impl LatencyReport {
    /// Classes per decade: each is 6 % wider than the one before (ISO 3's series R40).
    pub const CLASSES: f64 = 40.0;
}
