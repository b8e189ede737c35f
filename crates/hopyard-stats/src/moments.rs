//! Mean, standard deviation, geometric mean.

/// Arithmetic mean, unit of the samples. `None` if empty or not finite.
///
/// Two passes: the second adds the mean of the residuals, which removes most of the rounding of
/// the first (Neely 1966; Chan, Golub and LeVeque 1983).
#[must_use]
pub fn mean(x: &[f64]) -> Option<f64> {
    if x.is_empty() {
        return None;
    }
    let n = x.len() as f64;
    let rough = x.iter().sum::<f64>() / n;
    let rest = x.iter().map(|v| v - rough).sum::<f64>() / n;
    let mean = rough + rest;
    mean.is_finite().then_some(mean)
}

/// Sample standard deviation (divisor n − 1), unit of the samples. `None` if n < 2 or not finite.
///
/// Corrected two-pass algorithm (Chan, Golub and LeVeque 1983): the textbook formula with sums of squares loses every
/// digit on counts near 10^7 that differ by units.
#[must_use]
pub fn sd(x: &[f64]) -> Option<f64> {
    let centre = mean(x)?;
    if x.len() < 2 {
        return None;
    }
    let n = x.len() as f64;
    let squares: f64 = x.iter().map(|v| (v - centre).powi(2)).sum();
    let residual: f64 = x.iter().map(|v| v - centre).sum();
    let variance = (squares - residual * residual / n).max(0.0) / (n - 1.0);
    let sd = variance.sqrt();
    sd.is_finite().then_some(sd)
}

/// Geometric mean, unit of the samples. `None` if empty or any value is not above 0.
#[must_use]
pub fn geometric_mean(x: &[f64]) -> Option<f64> {
    let value = mean(&logs(x)?)?.exp();
    value.is_finite().then_some(value)
}

/// Natural logarithms. `None` if the list is empty, or a value is not finite or not above 0.
pub(super) fn logs(x: &[f64]) -> Option<Vec<f64>> {
    let fit = !x.is_empty() && x.iter().all(|v| v.is_finite() && *v > 0.0);
    fit.then(|| x.iter().map(|v| v.ln()).collect())
}

/// ln(a_i / b_i). `None` if [`logs`] has none for either list, or their lengths differ. It subtracts logarithms,
/// because the quotient may overflow.
pub(super) fn log_ratios(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    if a.len() != b.len() {
        return None;
    }
    let (a, b) = (logs(a)?, logs(b)?);
    Some(a.iter().zip(&b).map(|(a, b)| a - b).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST Statistical Reference Datasets, univariate: NumAcc1 to NumAcc4, certified values.
    #[test]
    fn nist_strd_numacc() {
        let alternating = |base: f64| {
            let mut x = vec![base + 0.2];
            for _ in 0..500 {
                x.extend([base + 0.1, base + 0.3]);
            }
            x
        };
        let numacc1 = [10_000_001.0, 10_000_003.0, 10_000_002.0];
        assert_eq!(mean(&numacc1), Some(10_000_002.0));
        assert_eq!(sd(&numacc1), Some(1.0));
        for (base, tolerance) in [(1.0, 1e-14), (1e6, 1e-9), (1e7, 1e-8)] {
            let x = alternating(base);
            assert_eq!(x.len(), 1001);
            assert!((mean(&x).unwrap() / (base + 0.2) - 1.0).abs() < 1e-15);
            assert!(
                (sd(&x).unwrap() - 0.1).abs() < tolerance,
                "base {base}: {:?}",
                sd(&x)
            );
        }
    }

    #[test]
    fn geometric_mean_of_a_doubling() {
        assert!((geometric_mean(&[1.0, 2.0, 4.0]).unwrap() - 2.0).abs() < 1e-15);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, -1.0]), None);
    }

    #[test]
    fn garbage_gives_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[f64::NAN]), None);
        assert_eq!(mean(&[f64::MAX, f64::MAX]), None);
        assert_eq!(sd(&[1.0]), None);
        assert_eq!(sd(&[1e300, -1e300]), None);
        assert_eq!(geometric_mean(&[]), None);
    }
}
