//! The bounds of a rule, and where a figure lies.

use super::rule::Check;
use crate::model::BoundPosition;
use crate::stats::Estimate;

/// The bounds of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Bounds {
    pub(super) fn of(check: &Check) -> Self {
        Self {
            low: check.at_least.unwrap_or(f64::NEG_INFINITY),
            high: check.at_most.unwrap_or(f64::INFINITY),
        }
    }

    pub(super) fn lies(self, estimate: &Estimate) -> BoundPosition {
        if self.low <= estimate.low && estimate.high <= self.high {
            BoundPosition::Inside
        } else if estimate.high < self.low || self.high < estimate.low {
            BoundPosition::Outside
        } else {
            BoundPosition::Across
        }
    }

    /// The bound nearest to a value; `None` where that is 0, of which there are no shares.
    pub(super) fn nearest(self, value: f64) -> Option<f64> {
        let distance = |bound: &f64| (bound - value).abs();
        let finite = [self.low, self.high].into_iter().filter(|b| b.is_finite());
        let nearest = finite.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.filter(|bound| *bound != 0.0)
    }

    /// How far within the bounds a value is, as a share of the nearer one; negative outside.
    pub(super) fn margin(self, value: f64) -> f64 {
        let from = |bound: f64, distance: f64| match bound {
            bound if bound.is_infinite() => f64::INFINITY,
            0.0 => distance,
            bound => distance / bound.abs(),
        };
        from(self.low, value - self.low).min(from(self.high, self.high - value))
    }
}
