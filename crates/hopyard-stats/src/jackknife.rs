//! An interval for any figure that is computed from blocks.

use super::distribution::t_quantile;
use super::estimate::{Estimate, alpha};
use super::moments::sd;

/// A figure over `n` blocks with its delete-one jackknife interval, t at n − 1 degrees of freedom (Tukey 1958; Miller
/// 1974, "The jackknife: a review"). `figure` computes it over all blocks (`None`) or without one of them (`Some`).
/// `None` if n < 2 or any of these has no figure.
///
/// On the plain scale, unlike [`super::ratio_of_sums`]: for figures that may be 0 or below, such as parts of a cost and
/// differences of costs. The value is the plain figure, so that parts sum to their whole.
#[must_use]
pub fn jackknife(
    n: usize,
    confidence: f64,
    figure: impl Fn(Option<usize>) -> Option<f64>,
) -> Option<Estimate> {
    let alpha = alpha(confidence)?;
    let whole = figure(None)?;
    let partial = (0..n)
        .map(|out| figure(Some(out)))
        .collect::<Option<Vec<f64>>>()?;
    let count = n as f64;
    // Pseudo-values n·θ − (n−1)·θ₋ᵢ have (n−1) times the spread of the θ₋ᵢ.
    let se = (count - 1.0) * sd(&partial)? / count.sqrt();
    let half = t_quantile(1.0 - alpha / 2.0, count - 1.0)? * se;
    Estimate::bounded(whole, (whole - half, whole + half), confidence, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Samples, mean, mean_interval};

    fn without(x: &[f64], out: Option<usize>) -> Vec<f64> {
        let kept = x.iter().enumerate().filter(|(i, _)| Some(*i) != out);
        kept.map(|(_, v)| *v).collect()
    }

    /// For a mean, the jackknife is Student's interval (Miller 1974).
    #[test]
    fn of_a_mean_it_is_students() {
        let x = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let own = jackknife(x.len(), 0.95, |out| mean(&without(&x, out))).unwrap();
        let student = mean_interval(&Samples::new(&x).unwrap(), 0.95).unwrap();
        assert!((own.value - student.value).abs() < 1e-12);
        assert!((own.low - student.low).abs() < 1e-12);
        assert!((own.high - student.high).abs() < 1e-12);
    }

    #[test]
    fn zeros_and_negative_figures_have_intervals() {
        let x = [0.0, 0.0, -3.0];
        let e = jackknife(3, 0.95, |out| mean(&without(&x, out))).unwrap();
        assert!((e.value + 1.0).abs() < 1e-12 && e.low < -1.0 && e.high > 0.0);
    }

    #[test]
    fn too_few_or_nothing_gives_none() {
        assert_eq!(jackknife(1, 0.95, |_| Some(1.0)), None);
        assert_eq!(jackknife(0, 0.95, |_| Some(1.0)), None);
        assert_eq!(jackknife(3, 1.0, |_| Some(1.0)), None);
        assert_eq!(
            jackknife(3, 0.95, |out| (out != Some(2)).then_some(1.0)),
            None
        );
        assert_eq!(jackknife(3, 0.95, |_| Some(f64::NAN)), None);
    }
}
