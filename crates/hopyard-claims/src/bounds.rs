//! The bounds of a rule, and where a figure lies.

use crate::model::{BoundPosition, CheckReport};
use crate::stats::Estimate;

/// The bounds of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Is within what lies beyond them?
    beyond: bool,
}

impl Bounds {
    /// Those of a part that was judged.
    pub(super) fn of_report(check: &CheckReport) -> Self {
        Self::new(check.at_least, check.at_most).or_beyond(check.beyond)
    }

    pub(super) fn new(at_least: Option<f64>, at_most: Option<f64>) -> Self {
        Self {
            low: at_least.unwrap_or(f64::NEG_INFINITY),
            high: at_most.unwrap_or(f64::INFINITY),
            beyond: false,
        }
    }

    /// The same, or what lies beyond them.
    pub(super) fn or_beyond(self, beyond: bool) -> Self {
        Self { beyond, ..self }
    }

    /// Is nothing but 0 within?
    pub(super) fn ask_for_none(self) -> bool {
        !self.beyond && self.low == f64::NEG_INFINITY && self.high == 0.0
    }

    pub(super) fn lies(self, estimate: &Estimate) -> BoundPosition {
        let (between, apart) = if self.beyond {
            (BoundPosition::Outside, BoundPosition::Inside)
        } else {
            (BoundPosition::Inside, BoundPosition::Outside)
        };
        if self.low <= estimate.low && estimate.high <= self.high {
            between
        } else if estimate.high < self.low || self.high < estimate.low {
            apart
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

    /// How far a value is from the nearer bound.
    pub(super) fn distance(self, value: f64) -> f64 {
        (self.low - value).abs().min((self.high - value).abs())
    }

    /// How far within the bounds a value is, as a share of the nearer one; negative outside.
    pub(super) fn margin(self, value: f64) -> f64 {
        let from = |bound: f64, distance: f64| match bound {
            bound if bound.is_infinite() => f64::INFINITY,
            0.0 => distance,
            bound => distance / bound.abs(),
        };
        let between = from(self.low, value - self.low).min(from(self.high, self.high - value));
        if self.beyond { -between } else { between }
    }
}
