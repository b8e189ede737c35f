//! Bootstrap intervals, for data too skewed for Student's t.
//!
//! Both functions are the studentised bootstrap ("percentile-t": Hall 1988, "Theoretical
//! comparison of bootstrap confidence intervals"; Efron and Tibshirani 1993, section 12.5). It is second-order correct like
//! BCa, but BCa can only pick its ends from the resampled values, which in 8 to 40 blocks of
//! skewed data do not reach far enough; percentile-t corrects for the number of samples as well.
//! Its known weakness, a standard error that shrinks to nothing in a resample, is met by asking
//! for at least [`LEAST`] values and, for the ratio, by the log scale.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::estimate::{Estimate, alpha};
use super::moments::{mean, sd};
use super::samples::Samples;

/// Fewest values from which the functions here resample.
pub const LEAST: usize = 6;

/// Arithmetic mean with a percentile-t bootstrap interval from `resamples` resamples (2000 are
/// customary for 95 %) drawn with ChaCha8 from `seed`: the same arguments give the same interval.
/// `None` with fewer than [`LEAST`] samples or too few resamples for the confidence asked.
#[must_use]
pub fn bootstrap_mean(
    x: &Samples,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (low, high) = percentile_t(confidence, resamples, mean_and_se(x)?, || {
        mean_and_se(&resample(x, &mut rng))
    })?;
    Estimate::bounded(mean(x)?, (low, high), confidence, x.len())
}

/// Ratio of the means of two independent groups of positive values, with a percentile-t
/// bootstrap interval on the log scale; each group is resampled by itself. The choice beside
/// [`super::unpaired_ratio`] when the groups are skewed. `None` with fewer than [`LEAST`] values
/// in a group or any not above 0. `n` of the result is the smaller group.
#[must_use]
pub fn bootstrap_ratio(
    a: &[f64],
    b: &[f64],
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    if a.iter().chain(b).any(|v| v.is_nan() || *v <= 0.0) {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let seen = log_ratio_and_se(a, b)?;
    let (low, high) = percentile_t(confidence, resamples, seen, || {
        log_ratio_and_se(&resample(a, &mut rng), &resample(b, &mut rng))
    })?;
    let n = a.len().min(b.len());
    Estimate::bounded(seen.0.exp(), (low.exp(), high.exp()), confidence, n)
}

/// (θ − t*(1−α/2)·se, θ − t*(α/2)·se) where t* are quantiles of (θ* − θ)/se* over resamples.
/// A resample of identical values has no standard error; it is left out.
fn percentile_t(
    confidence: f64,
    resamples: usize,
    (value, se): (f64, f64),
    mut draw: impl FnMut() -> Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    let alpha = alpha(confidence)?;
    if se == 0.0 {
        return Some((value, value));
    }
    let mut t: Vec<f64> = (0..resamples)
        .filter_map(|_| draw())
        .filter(|(_, se)| *se > 0.0)
        .map(|(resampled, resampled_se)| (resampled - value) / resampled_se)
        .filter(|t| t.is_finite())
        .collect();
    t.sort_by(f64::total_cmp);
    // The k-th of B values stands for the quantile k/(B + 1).
    let k = (alpha / 2.0 * (t.len() + 1) as f64).floor() as usize;
    if k == 0 {
        return None;
    }
    Some((value - t[t.len() - k] * se, value - t[k - 1] * se))
}

fn resample(x: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..x.len())
        .map(|_| x[rng.random_range(0..x.len())])
        .collect()
}

fn mean_and_se(x: &[f64]) -> Option<(f64, f64)> {
    if x.len() < LEAST {
        return None;
    }
    Some((mean(x)?, sd(x)? / (x.len() as f64).sqrt()))
}

/// ln(mean(a)/mean(b)) and its standard error by the delta method.
fn log_ratio_and_se(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let ((ma, sa), (mb, sb)) = (mean_and_se(a)?, mean_and_se(b)?);
    Some((ma.ln() - mb.ln(), (sa / ma).hypot(sb / mb)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Survival of mice, treatment and control (Efron and Tibshirani 1993, table 2.1).
    const TREATED: [f64; 7] = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];
    const CONTROL: [f64; 9] = [52.0, 104.0, 146.0, 10.0, 50.0, 31.0, 40.0, 27.0, 46.0];

    /// Their table 2.2: the bootstrap standard error of the treated mean tends to 23.36.
    #[test]
    fn efron_tibshirani_mice() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let means: Vec<f64> = (0..20_000)
            .map(|_| mean(&resample(&TREATED, &mut rng)).unwrap())
            .collect();
        assert!((sd(&means).unwrap() - 23.36).abs() < 0.5);
    }

    #[test]
    fn skewed_data_give_a_skewed_interval() {
        let e = bootstrap_mean(&Samples::new(&CONTROL).unwrap(), 0.95, 2000, 7).unwrap();
        assert!(e.high - e.value > e.value - e.low, "{e:?}");
        let again = bootstrap_mean(&Samples::new(&CONTROL).unwrap(), 0.95, 2000, 7).unwrap();
        assert_eq!(e, again);
    }

    /// The treatment is not shown to prolong life: the ratio's interval holds 1.
    #[test]
    fn ratio_of_the_mice() {
        let e = bootstrap_ratio(&TREATED, &CONTROL, 0.95, 2000, 7).unwrap();
        assert!((e.value - 86.857_142_9 / 56.222_222_2).abs() < 1e-8);
        assert!(e.low < 1.0 && e.high > e.value);
    }

    #[test]
    fn garbage_gives_none() {
        let few = Samples::new(&[1.0; 5]).unwrap();
        assert_eq!(bootstrap_mean(&few, 0.95, 2000, 1), None);
        let x = Samples::new(&CONTROL).unwrap();
        assert_eq!(bootstrap_mean(&x, 0.95, 10, 1), None);
        assert_eq!(bootstrap_mean(&x, 1.0, 2000, 1), None);
        assert_eq!(bootstrap_ratio(&[0.0; 8], &CONTROL, 0.95, 2000, 1), None);
        assert_eq!(bootstrap_ratio(&CONTROL, &[], 0.95, 2000, 1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn holds_its_value_and_scales(
            x in prop::collection::vec(0.1..100.0_f64, LEAST..20),
            k in 0.001..1000.0_f64,
        ) {
            let e = bootstrap_mean(&Samples::new(&x).unwrap(), 0.9, 200, 3).unwrap();
            prop_assert!(e.low <= e.value && e.value <= e.high);
            let scaled: Vec<f64> = x.iter().map(|v| v * k).collect();
            let s = bootstrap_mean(&Samples::new(&scaled).unwrap(), 0.9, 200, 3).unwrap();
            prop_assert!((s.high / (k * e.high) - 1.0).abs() < 1e-6);
            let r = bootstrap_ratio(&scaled, &x, 0.9, 200, 3).unwrap();
            prop_assert!((r.value / k - 1.0).abs() < 1e-9 && r.low <= k * 1.000001);
        }
    }
}
