//! Intervals for the mean of one list of independent samples.

use super::distribution::t_quantile;
use super::estimate::{Estimate, alpha};
use super::moments::{logs, mean, sd};
use super::samples::Samples;

/// Arithmetic mean with Student's t interval, mean ± t·s/√n (Student 1908). `None` if n < 2.
///
/// The samples must be independent (one per fresh lab); see [`super::dependence`].
#[must_use]
pub fn mean_interval(x: &Samples, confidence: f64) -> Option<Estimate> {
    let (value, half) = student(x, confidence)?;
    Estimate::bounded(value, (value - half, value + half), confidence, x.len())
}

/// Geometric mean with the t interval of the logarithms, transformed back, for skewed positive data. `None` if n < 2 or
/// any value is not above 0.
#[must_use]
pub fn log_mean_interval(x: &Samples, confidence: f64) -> Option<Estimate> {
    exp_student(&logs(x)?, confidence)
}

/// The same from mean and standard deviation of `n` logarithms, as a query engine gives them.
#[must_use]
pub fn log_moments_interval(mean: f64, sd: f64, n: usize, confidence: f64) -> Option<Estimate> {
    let t = t_quantile(1.0 - alpha(confidence)? / 2.0, n as f64 - 1.0)?;
    let half = t * sd / (n as f64).sqrt();
    Estimate::bounded(
        mean.exp(),
        ((mean - half).exp(), (mean + half).exp()),
        confidence,
        n,
    )
}

/// exp(mean ± t·s/√n) of a list of logarithms.
pub(super) fn exp_student(logs: &[f64], confidence: f64) -> Option<Estimate> {
    let (value, half) = student(logs, confidence)?;
    let ends = ((value - half).exp(), (value + half).exp());
    Estimate::bounded(value.exp(), ends, confidence, logs.len())
}

/// Mean and half width of the t interval.
fn student(x: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let alpha = alpha(confidence)?;
    let (value, spread) = (mean(x)?, sd(x)?);
    let n = x.len() as f64;
    let t = t_quantile(1.0 - alpha / 2.0, n - 1.0)?;
    Some((value, t * spread / n.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extra hours of sleep, difference of two drugs for ten patients (Student 1908, "The
    /// probable error of a mean"); the interval as R prints it for `t.test(sleep, paired)`.
    #[test]
    fn student_sleep() {
        let x = Samples::new(&[1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]).unwrap();
        let e = mean_interval(&x, 0.95).unwrap();
        assert!((e.value - 1.58).abs() < 1e-12);
        assert!((e.low - 0.700_114_2).abs() < 1e-7);
        assert!((e.high - 2.459_885_8).abs() < 1e-7);
        assert_eq!((e.confidence, e.n), (0.95, 10));
    }

    /// The same on the log scale: exp of the interval above.
    #[test]
    fn log_scale_is_exp_of_the_plain_one() {
        let x = [1.2_f64, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4].map(f64::exp);
        let e = log_mean_interval(&Samples::new(&x).unwrap(), 0.95).unwrap();
        assert!((e.value.ln() - 1.58).abs() < 1e-12);
        assert!((e.low.ln() - 0.700_114_2).abs() < 1e-7);
        // Mean and standard deviation of the logarithms, as R prints them.
        let of_moments = log_moments_interval(1.58, 1.229_995_5, 10, 0.95).unwrap();
        assert!((of_moments.low.ln() - 0.700_114_2).abs() < 1e-6);
        assert_eq!(log_moments_interval(1.58, 1.2, 1, 0.95), None);
    }

    #[test]
    fn too_few_or_no_logarithm() {
        let one = Samples::new(&[1.0]).unwrap();
        assert_eq!(mean_interval(&one, 0.95), None);
        assert_eq!(log_mean_interval(&one, 0.95), None);
        let zero = Samples::new(&[1.0, 0.0]).unwrap();
        assert_eq!(log_mean_interval(&zero, 0.95), None);
        let two = Samples::new(&[1.0, 2.0]).unwrap();
        for confidence in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert_eq!(mean_interval(&two, confidence), None);
        }
    }

    #[test]
    fn identical_samples_have_no_width() {
        let e = mean_interval(&Samples::new(&[3.0; 8]).unwrap(), 0.95).unwrap();
        assert_eq!((e.low, e.value, e.high), (3.0, 3.0, 3.0));
    }
}
