//! A straight line through points.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::distribution::t_quantile;
use super::estimate::{Estimate, alpha};
use super::interval::mean_interval;
use super::moments::mean;
use super::samples::Samples;

/// The least-squares line y = intercept + slope·x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) intercept: f64,
    /// Sum of squares of x about its mean.
    pub(super) sxx: f64,
    /// Sum of squares of y about its mean.
    pub(super) syy: f64,
    /// Residual sum of squares.
    pub(super) rss: f64,
}

impl Line {
    /// `None` if n < 2, the lengths differ, a value is not finite or all x are the same.
    pub(super) fn through(x: &[f64], y: &[f64]) -> Option<Self> {
        if x.len() < 2 || x.len() != y.len() {
            return None;
        }
        let (mean_x, mean_y) = (mean(x)?, mean(y)?);
        let points = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
        let sxx: f64 = points().map(|(x, _)| x * x).sum();
        let sxy: f64 = points().map(|(x, y)| x * y).sum();
        if sxx.is_nan() || sxx <= 0.0 {
            return None;
        }
        let slope = sxy / sxx;
        Some(Self {
            slope,
            intercept: mean_y - slope * mean_x,
            sxx,
            syy: points().map(|(_, y)| y * y).sum(),
            // Residuals summed directly: Syy − slope·Sxy loses its digits on a good fit.
            rss: points().map(|(x, y)| (y - slope * x).powi(2)).sum(),
        })
    }

    /// Share of the variation of y that the line explains; `None` if y does not vary.
    pub(super) fn r_squared(&self) -> Option<f64> {
        (self.syy > 0.0).then(|| (1.0 - self.rss / self.syy).clamp(0.0, 1.0))
    }
}

/// Slope of the least-squares line y = c + slope·x with its t interval at n − 2 degrees of
/// freedom (Draper and Smith, "Applied Regression Analysis", chapter 1), in units of y per unit
/// of x. `None` if n < 3, the lengths differ, a value is not finite or all x are the same.
#[must_use]
pub fn linear_slope(x: &[f64], y: &[f64], confidence: f64) -> Option<Estimate> {
    let alpha = alpha(confidence)?;
    let n = x.len();
    if n < 3 {
        return None;
    }
    let line = Line::through(x, y)?;
    let df = (n - 2) as f64;
    let half = t_quantile(1.0 - alpha / 2.0, df)? * (line.rss / df / line.sxx).sqrt();
    let ends = (line.slope - half, line.slope + half);
    Estimate::bounded(line.slope, ends, confidence, n)
}

/// How a straight line describes a curve.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct Straight {
    /// Units of y per unit of x: mean and t interval over the lines of the blocks.
    pub slope: Estimate,
    /// Value at x = 0, likewise.
    pub intercept: Estimate,
    /// R² of the line through the mean curve, with its interval by resampling blocks; absent with too few of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<Estimate>,
}

/// The line through a curve of three points or more. `None` with one block.
#[must_use]
pub fn straight(curve: &Curve, confidence: f64, seed: u64) -> Option<Straight> {
    if curve.x().len() < 3 {
        return None;
    }
    Some(Straight {
        slope: over_blocks(curve, confidence, |line| line.slope)?,
        intercept: over_blocks(curve, confidence, |line| line.intercept)?,
        r_squared: curve.estimate(confidence, seed, |y| {
            Line::through(curve.x(), y)?.r_squared()
        }),
    })
}

/// The exponent e of y ∝ xᵉ: slope of the line through ln y against ln x, mean and t interval over the blocks. 1 is
/// growth in proportion to x, 0 no dependence, −1 an equal share for each.
///
/// Economists call it elasticity; Gunther ("Guerrilla Capacity Planning", 2007) calls it the slope of a scalability
/// curve on log-log paper. Unlike Amdahl's law and the universal scalability law, it needs no model of why a system
/// stops scaling, and it suits costs and jitter as well as throughput. `None` with one block, fewer than three points,
/// or an x or y not above 0.
#[must_use]
pub fn exponent(curve: &Curve, confidence: f64) -> Option<Estimate> {
    if curve.x().len() < 3 {
        return None;
    }
    let logs = curve.log_log()?;
    over_blocks(&logs, confidence, |line| line.slope)
}

fn over_blocks(curve: &Curve, confidence: f64, of: impl Fn(&Line) -> f64) -> Option<Estimate> {
    let lines = curve.rows().map(|row| Line::through(curve.x(), row));
    let values: Vec<f64> = lines
        .map(|line| line.map(|line| of(&line)))
        .collect::<Option<_>>()?;
    mean_interval(&Samples::new(&values).ok()?, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NIST Statistical Reference Datasets, linear regression "Norris": x, then y.
    const NORRIS: [(f64, f64); 36] = [
        (0.2, 0.1),
        (337.4, 338.8),
        (118.2, 118.1),
        (884.6, 888.0),
        (10.1, 9.2),
        (226.5, 228.1),
        (666.3, 668.5),
        (996.3, 998.5),
        (448.6, 449.1),
        (777.0, 778.9),
        (558.2, 559.2),
        (0.4, 0.3),
        (0.6, 0.1),
        (775.5, 778.1),
        (666.9, 668.8),
        (338.0, 339.3),
        (447.5, 448.9),
        (11.6, 10.8),
        (556.0, 557.7),
        (228.1, 228.3),
        (995.8, 998.0),
        (887.6, 888.8),
        (120.2, 119.6),
        (0.3, 0.3),
        (0.3, 0.6),
        (556.8, 557.6),
        (339.1, 339.3),
        (887.2, 888.0),
        (999.0, 998.5),
        (779.0, 778.9),
        (11.1, 10.2),
        (118.3, 117.6),
        (229.2, 228.9),
        (669.1, 668.4),
        (448.9, 449.2),
        (0.5, 0.2),
    ];

    /// Certified: slope 1.00211681802045, standard error 0.000429796848199937.
    #[test]
    fn nist_strd_norris() {
        let (x, y): (Vec<f64>, Vec<f64>) = NORRIS.iter().copied().unzip();
        let e = linear_slope(&x, &y, 0.95).unwrap();
        assert!((e.value - 1.002_116_818_020_45).abs() < 1e-12, "{e:?}");
        let se = (e.high - e.value) / t_quantile(0.975, 34.0).unwrap();
        assert!((se / 0.000_429_796_848_199_937 - 1.0).abs() < 1e-8, "{se}");
    }

    #[test]
    fn garbage_gives_none() {
        assert_eq!(linear_slope(&[1.0, 2.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(linear_slope(&[1.0; 3], &[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(linear_slope(&[1.0, 2.0, 3.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(
            linear_slope(&[1.0, 2.0, 3.0], &[1.0, f64::NAN, 2.0], 0.95),
            None
        );
    }

    fn curve(rows: Vec<Vec<f64>>) -> Curve {
        Curve::new(vec![1.0, 2.0, 4.0, 8.0], rows).unwrap()
    }

    #[test]
    fn power_laws() {
        let of = |e: f64| {
            let row = |k: f64| [1.0f64, 2.0, 4.0, 8.0].map(|x| k * x.powf(e)).to_vec();
            exponent(&curve(vec![row(3.0), row(5.0), row(4.0)]), 0.95).unwrap()
        };
        for e in [1.0, 0.0, -1.0, 0.5] {
            assert!((of(e).value - e).abs() < 1e-12, "{:?}", of(e));
        }
        let row = vec![1.0, 2.0, 4.0, 8.0];
        assert_eq!(exponent(&curve(vec![row.clone()]), 0.95), None);
        assert_eq!(exponent(&curve(vec![row, vec![0.0; 4]]), 0.95), None);
    }

    #[test]
    fn how_straight() {
        let rows = |bend: f64| {
            let row = |b: usize| {
                [1.0f64, 2.0, 4.0, 8.0]
                    .map(|x| 1.0 + 2.0 * x + bend * (x - 4.0).powi(2) + 0.01 * b as f64)
            };
            (0..8).map(|b| row(b).to_vec()).collect::<Vec<_>>()
        };
        let line = straight(&curve(rows(0.0)), 0.95, 1).unwrap();
        assert!((line.slope.value - 2.0).abs() < 1e-9);
        assert!((line.intercept.value - 1.035).abs() < 1e-9, "{line:?}");
        assert!(line.r_squared.unwrap().low > 0.999_999);
        let bent = straight(&curve(rows(1.0)), 0.95, 1).unwrap();
        assert!(bent.r_squared.unwrap().high < 0.95);
        // Too few blocks for an interval of R², enough for one of the slope.
        let few = straight(&curve(rows(0.0)[..3].to_vec()), 0.95, 1).unwrap();
        assert_eq!(few.r_squared, None);
        // If y does not vary, there is no share to explain.
        assert_eq!(
            straight(&curve(vec![vec![5.0; 4]; 8]), 0.95, 1)
                .unwrap()
                .r_squared,
            None
        );
    }

    proptest! {
        #[test]
        fn scales_with_y(y in prop::collection::vec(-1e6..1e6_f64, 3..30), k in 0.001..1000.0_f64) {
            let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
            let e = linear_slope(&x, &y, 0.95).unwrap();
            prop_assert!(e.low <= e.value && e.value <= e.high);
            let scaled: Vec<f64> = y.iter().map(|v| v * k).collect();
            let s = linear_slope(&x, &scaled, 0.95).unwrap();
            let size = k * (e.high - e.low + e.value.abs());
            prop_assert!((s.value - k * e.value).abs() <= 1e-9 * size);
            prop_assert!((s.high - k * e.high).abs() <= 1e-9 * size);
        }
    }
}
