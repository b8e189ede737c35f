//! Rate and jitter of a cell over its window: part of `hopyard/run/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hopyard_stats::Estimate;

/// Consecutive equal intervals of a window: means over all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesReport {
    /// Length of an interval, s.
    pub interval_s: f64,
    /// Traffic before the first of them, s; 0 if the window opens with the traffic.
    pub traffic_before_s: f64,
    /// Datagrams that arrived, per second.
    pub packets_per_s: Vec<f64>,
    /// Standard deviation of the time between two arrivals of the same flow; none if no two arrived.
    pub interarrival_sd_ns: Vec<Option<f64>>,
    /// Interval of each of these means over the samples; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interarrival_sd_interval_ns: Vec<Option<(f64, f64)>>,
    /// Smoothed interarrival jitter of RFC 3550.
    pub jitter_rfc3550_ns: Vec<Option<f64>>,
    /// When the jitter settled, if the window opened with the traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
}

/// The time from which on jitter (standard deviation of the time between two arrivals of the same flow) stays within 10
/// % of its final value, which is the median of the window's last quarter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settling {
    /// Samples in which it settled before the last quarter.
    pub settled_samples: u32,
    /// Samples that have this figure.
    pub samples: u32,
    /// Time from the start of the traffic to the end of the first interval from which on jitter stays in the band, s;
    /// absent if it did not settle in every sample, because the mean of the others would be too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<Estimate>,
}

impl Settling {
    /// Half-width of the band around the final value, as a share of it.
    pub const BAND: f64 = 0.1;
}
