//! Machines of endpoints elsewhere: the CPU time of each in a window, and how well their clocks are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::InvalidSample;
use super::{CpuUse, plausible};

/// Which endpoints are on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndsOn {
    /// The client alone.
    Client,
    /// The server alone.
    Server,
    /// Both of them.
    Both,
}

/// CPU time of a machine over a window, as read by the worker of an endpoint on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// Which endpoints are on it.
    pub ends: EndsOn,
    /// CPU time used; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuUse>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl MachineUse {
    pub(super) fn check(&self) -> Result<(), InvalidSample> {
        self.cpu.as_ref().map_or(Ok(()), CpuUse::check)
    }
}

impl EndsOn {
    /// The machine in words: `the client's machine`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Client => "the client's machine",
            Self::Server => "the server's machine",
            Self::Both => "the machine of both ends",
        }
    }
}

/// The clocks of two ends on different machines: each was compared with hopyard's clock before and after the window, by
/// the answer with the least round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClocksCompared {
    /// How far the server's clock was ahead of the client's before the window, ns.
    pub server_ahead_ns: i64,
    /// How much further ahead it was after the window, ns.
    pub drift_ns: i64,
    /// Maximum error of the offset during the window, ns: half of the least round trips to both ends, and the drift.
    pub bound_ns: u64,
    /// The window opened and closed at both ends within this time of each other, ns: the bound, and how late each end
    /// read its clock.
    pub edges_within_ns: u64,
    /// Whether there are one-way times. There are none if the bound is larger than the delay itself. Absent for loads
    /// without one-way times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_told: Option<bool>,
}

impl ClocksCompared {
    /// From the offset of the server's clock to the client's before and after a window, ns, each with its maximum
    /// error.
    #[must_use]
    pub fn between(before: (i64, u64), after: (i64, u64)) -> Self {
        let ((ahead, unsure), (later, later_unsure)) = (before, after);
        let apart = ahead.abs_diff(later);
        Self {
            server_ahead_ns: ahead,
            drift_ns: later.saturating_sub(ahead),
            // In between, the offset is no further from the first reading than the bound of either.
            bound_ns: unsure.max(apart.saturating_add(later_unsure)),
            edges_within_ns: 0,
            one_way_told: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidSample> {
        plausible(&[
            ("clocks", self.bound_ns.max(self.edges_within_ns)),
            ("clocks", self.drift_ns.unsigned_abs()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_before_and_after() {
        let of = |before, after| ClocksCompared::between(before, after).bound_ns;
        // No drift: half a round trip, of the worse reading.
        assert_eq!(of((1000, 50), (1000, 20)), 50);
        assert_eq!(of((1000, 20), (1000, 50)), 50);
        // The true offset may be at the far end of the later reading's interval.
        assert_eq!(of((1000, 20), (1100, 30)), 130);
        assert_eq!(of((1100, 20), (1000, 30)), 130);
        let clocks = ClocksCompared::between((i64::MIN, 1), (i64::MAX, 1));
        assert_eq!((clocks.bound_ns, clocks.drift_ns), (u64::MAX, i64::MAX));
        assert!(clocks.check().is_err());
    }
}
