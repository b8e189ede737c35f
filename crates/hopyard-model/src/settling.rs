//! How rate and jitter of a cell went on over its window: part of `hopyard/run/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hopyard_stats::Estimate;

/// Equal intervals of a window, one after the other: means over all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesReport {
    /// Length of an interval, s.
    pub interval_s: f64,
    /// Traffic before the first of them, s; 0 where the window opens with it.
    pub traffic_before_s: f64,
    /// Datagrams that arrived, per second.
    pub packets_per_s: Vec<f64>,
    /// Standard deviation of the time between two arrivals of the same flow; none where no two arrived.
    pub interarrival_sd_ns: Vec<Option<f64>>,
    /// Interval of each of these means over the samples; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interarrival_sd_interval_ns: Vec<Option<(f64, f64)>>,
    /// Smoothed interarrival jitter of RFC 3550.
    pub jitter_rfc3550_ns: Vec<Option<f64>>,
    /// When the jitter settled, where the window opened with the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
}

/// From when on jitter (standard deviation of the time between two arrivals of the same flow) is within 10 % of its final value, the
/// median of the window's last quarter, and remains there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settling {
    /// Samples in which it settled before the last quarter.
    pub settled_samples: u32,
    /// Samples that tell of it.
    pub samples: u32,
    /// Time from the start of the traffic to the end of the first interval of those that remained, s; absent where it did not settle
    /// in every sample, since the mean of the others would be too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<Estimate>,
}

impl Settling {
    /// The band around the final value, as a share of it.
    pub const BAND: f64 = 0.1;
}
