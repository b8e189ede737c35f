//! A straight line through points.

use super::distribution::t_quantile;
use super::estimate::{Estimate, alpha};
use super::moments::mean;

/// Slope of the least-squares line y = c + slope·x with its t interval at n − 2 degrees of
/// freedom (Draper and Smith, "Applied Regression Analysis", chapter 1), in units of y per unit
/// of x. `None` if n < 3, the lengths differ, a value is not finite or all x are the same.
#[must_use]
pub fn linear_slope(x: &[f64], y: &[f64], confidence: f64) -> Option<Estimate> {
    let alpha = alpha(confidence)?;
    let n = x.len();
    if n < 3 || n != y.len() {
        return None;
    }
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let sxx: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let sxy: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    if sxx.is_nan() || sxx <= 0.0 {
        return None;
    }
    let slope = sxy / sxx;
    // Residuals summed directly: Syy − slope·Sxy loses its digits on a good fit.
    let residual = |x: f64, y: f64| (y - mean_y) - slope * (x - mean_x);
    let rss: f64 = x.iter().zip(y).map(|(x, y)| residual(*x, *y).powi(2)).sum();
    let df = (n - 2) as f64;
    let half = t_quantile(1.0 - alpha / 2.0, df)? * (rss / df / sxx).sqrt();
    Estimate::bounded(slope, (slope - half, slope + half), confidence, n)
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
