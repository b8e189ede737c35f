//! A figure with its interval; the two are never apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::t_quantile;

/// A value with its confidence interval. This crate builds them only with finite numbers and `low <= value <= high`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
pub struct Estimate {
    /// Point estimate, in the unit of the samples (or a plain ratio).
    pub value: f64,
    /// Lower end of the interval, same unit.
    pub low: f64,
    /// Upper end of the interval, same unit.
    pub high: f64,
    /// Confidence level of the interval, between 0 and 1 (0.95 for 95 %).
    pub confidence: f64,
    /// Number of independent samples (blocks) behind it.
    pub n: usize,
}

impl Estimate {
    /// The same of what cannot be less than 0: it and its ends are 0 where they were below.
    #[must_use]
    pub fn not_below_zero(self) -> Self {
        Self {
            value: self.value.max(0.0),
            low: self.low.max(0.0),
            high: self.high.max(0.0),
            ..self
        }
    }

    /// The only constructor of estimates that leave the crate: `None` for anything not finite. Rounding may put an end
    /// one ulp on the wrong side of the value; that is corrected here.
    pub(super) fn bounded(value: f64, ends: (f64, f64), confidence: f64, n: usize) -> Option<Self> {
        let finite = [value, ends.0, ends.1, confidence]
            .iter()
            .all(|v| v.is_finite());
        finite.then(|| Self {
            value,
            low: ends.0.min(value),
            high: ends.1.max(value),
            confidence,
            n,
        })
    }

    /// The same at another confidence: both sides scaled by Student's t at n − 1 degrees of freedom. Exact for an
    /// interval by t; for one by resampling, as good as its shape resembles t. `None` if the confidence is not between
    /// 0 and 1, or n < 2.
    #[must_use]
    pub fn at(&self, confidence: f64) -> Option<Self> {
        let t = |confidence| t_quantile(1.0 - alpha(confidence)? / 2.0, self.n as f64 - 1.0);
        let factor = t(confidence)? / t(self.confidence)?;
        let ends = (
            self.value - factor * (self.value - self.low),
            self.value + factor * (self.high - self.value),
        );
        Self::bounded(self.value, ends, confidence, self.n)
    }

    /// The standard error behind the interval, if it is one by Student's t at n − 1 degrees of freedom. `None` for n <
    /// 2.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        let t = t_quantile(1.0 - alpha(self.confidence)? / 2.0, self.n as f64 - 1.0)?;
        Some((self.high - self.low) / (2.0 * t))
    }

    /// The wider side of the interval over the size of the value; 0.02 means "to 2 %". Infinite if the value is 0, so
    /// that such an estimate never counts as narrow.
    #[must_use]
    pub fn half_width_ratio(&self) -> f64 {
        let half = (self.high - self.value).max(self.value - self.low);
        let ratio = half / self.value.abs();
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    }
}

/// The stopping rule: true if every estimate has the wanted relative half width (0.02 for 2 %). It looks at width only,
/// because stopping on significance would falsify the verdicts. False without estimates.
#[must_use]
pub fn settled_width(estimates: &[Estimate], half_width: f64) -> bool {
    !estimates.is_empty() && estimates.iter().all(|e| e.half_width_ratio() <= half_width)
}

/// The significance level 1 − confidence; `None` if the confidence is not between 0 and 1.
pub(super) fn alpha(confidence: f64) -> Option<f64> {
    (confidence > 0.0 && confidence < 1.0).then_some(1.0 - confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate {
            value,
            low,
            high,
            confidence: 0.95,
            n: 10,
        }
    }

    #[test]
    fn half_width_takes_the_wider_side() {
        assert!((estimate(10.0, 9.0, 12.0).half_width_ratio() - 0.2).abs() < 1e-12);
        assert!((estimate(-10.0, -13.0, -9.0).half_width_ratio() - 0.3).abs() < 1e-12);
        assert_eq!(estimate(0.0, 0.0, 0.0).half_width_ratio(), f64::INFINITY);
        assert_eq!(estimate(0.0, -1.0, 1.0).half_width_ratio(), f64::INFINITY);
    }

    #[test]
    fn a_standard_error_is_a_half_width_over_t() {
        // t of 0.975 at 9 degrees of freedom is 2.262157.
        let found = estimate(10.0, 10.0 - 2.262_157, 10.0 + 2.262_157).standard_error();
        assert!((found.unwrap() - 1.0).abs() < 1e-6);
        let one = Estimate {
            n: 1,
            ..estimate(1.0, 0.0, 2.0)
        };
        assert_eq!(one.standard_error(), None);
    }

    /// Student's sleep data: the interval of 99 % from that of 95 %, as R prints both.
    #[test]
    fn another_confidence_is_another_t() {
        let own = Estimate {
            value: 1.58,
            low: 0.700_114_2,
            high: 2.459_885_8,
            confidence: 0.95,
            n: 10,
        };
        let wide = own.at(0.99).unwrap();
        assert!(
            (wide.low - 0.315_9).abs() < 1e-3 && (wide.high - 2.844_1).abs() < 1e-3,
            "{wide:?}"
        );
        let back = wide.at(0.95).unwrap();
        assert!((back.low - own.low).abs() < 1e-9);
        assert_eq!(own.at(1.0), None);
    }

    #[test]
    fn settled_when_all_are() {
        let narrow = estimate(10.0, 9.9, 10.1);
        let wide = estimate(10.0, 9.0, 11.0);
        assert!(settled_width(std::slice::from_ref(&narrow), 0.02));
        assert!(!settled_width(&[narrow, wide], 0.02));
        assert!(!settled_width(&[], 0.02));
    }

    #[test]
    fn nothing_that_is_not_finite_gets_out() {
        assert!(Estimate::bounded(f64::NAN, (0.0, 1.0), 0.95, 2).is_none());
        assert!(Estimate::bounded(1.0, (f64::NEG_INFINITY, 1.0), 0.95, 2).is_none());
        let mended = Estimate::bounded(1.0, (1.5, 2.0), 0.95, 2).unwrap();
        assert_eq!((mended.low, mended.high), (1.0, 2.0));
    }
}
