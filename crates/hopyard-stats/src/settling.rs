//! Whether a window has settled, and when a series has.

use super::moments::mean;

/// The last quarter of a series gives its final value, and must stay near it.
const END: usize = 4;

/// Relative change between the halves of a window below which it does not matter.
const PRACTICAL: f64 = 0.05;

/// A change between the halves is clear from this many standard errors of their difference. Simulated: for 6 to 100
/// slices of noise whose neighbours correlate by 0.3, some 0.5 % of windows exceed it; for independent noise, fewer.
const CLEAR: f64 = 5.2;

/// Whether the counts of a window's equal-length slices, in order, show a trend or a change of level: the halves differ
/// by more than 5 % of the mean, and clearly. A window with fewer than 6 slices cannot show it and is never called
/// unsettled; one that contains NaN or an infinity always is.
///
/// Noise is estimated from successive differences (von Neumann 1941). A trend or a step in the window hardly affects
/// those, while the ordinary standard deviation would include the very change in question. With an odd number of slices
/// the middle one belongs to neither half.
#[must_use]
pub fn unsettled(slices: &[f64]) -> bool {
    if slices.iter().any(|v| !v.is_finite()) {
        return true;
    }
    let n = slices.len();
    if n < 6 {
        return false;
    }
    let half = n / 2;
    let (Some(first), Some(second), Some(whole)) = (
        mean(&slices[..half]),
        mean(&slices[n - half..]),
        mean(slices),
    ) else {
        return true;
    };
    let change = (second - first).abs();
    let squares: f64 = slices.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    let noise = (squares / (2 * (n - 1)) as f64).sqrt();
    let standard_error = noise * (2.0 / half as f64).sqrt();
    change > PRACTICAL * whole.abs() && change > CLEAR * standard_error
}

/// How many values of a series stand before its last quarter: one that does not settle is outside of its final band after them.
/// `None` if there are too few values, or one is not a number.
#[must_use]
pub fn before_end(series: &[f64]) -> Option<usize> {
    let n = series.len();
    let is_known = n >= 2 * END && series.iter().all(|value| value.is_finite());
    is_known.then(|| n - n / END)
}

/// The index in a series of equal intervals from which on it stays within `share` of its final value, which is the
/// median of its last quarter. `None` if the series leaves that band in its last quarter, has fewer than 8 values, or
/// contains one that is not finite.
///
/// This is the settling time of control engineering, with the band as a share of the final value. A single value
/// outside the band, even noise, restarts the wait: use longer intervals for less noise.
#[must_use]
pub fn settles(series: &[f64], share: f64) -> Option<usize> {
    let n = series.len();
    let quarter = n - before_end(series)?;
    let mut end = series[n - quarter..].to_vec();
    end.sort_by(f64::total_cmp);
    let last = 0.5 * (end[(quarter - 1) / 2] + end[quarter / 2]);
    let is_near = |v: &f64| (v - last).abs() <= share * last.abs();
    let from = series
        .iter()
        .rposition(|v| !is_near(v))
        .map_or(0, |i| i + 1);
    (from <= n - quarter).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Synthetic, normal};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn stationary_noise_is_settled() {
        let runs = 2000;
        for n in [6, 8, 10, 16, 20, 50, 100] {
            for rho in [0.0, 0.3] {
                let kind = Synthetic::Autoregressive {
                    mean: 1000.0,
                    sd: 100.0,
                    rho,
                };
                let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
                let seen = (0..runs)
                    .filter(|_| unsettled(&kind.draw(n, &mut rng)))
                    .count();
                assert!(seen * 100 <= runs, "n {n} rho {rho}: {seen} of {runs}");
            }
        }
    }

    #[test]
    fn steps_and_trends_are_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..200 {
            let mut noise = || 1.0 + 0.01 * normal(&mut rng);
            let step: Vec<f64> = (0..20)
                .map(|i| if i < 10 { 100.0 } else { 110.0 } * noise())
                .collect();
            let trend: Vec<f64> = (0..20).map(|i| (100.0 + f64::from(i)) * noise()).collect();
            assert!(unsettled(&step) && unsettled(&trend));
        }
        let noiseless: Vec<f64> = (0..10).map(|i| 100.0 + 3.0 * f64::from(i)).collect();
        assert!(unsettled(&noiseless));
        assert!(unsettled(&[
            0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0
        ]));
    }

    #[test]
    fn small_or_unclear_changes_are_not() {
        let small: Vec<f64> = (0..20)
            .map(|i| if i < 10 { 100.0 } else { 104.0 })
            .collect();
        assert!(!unsettled(&small));
        assert!(!unsettled(&[0.0; 10]));
        assert!(!unsettled(&[]));
        assert!(!unsettled(&[1.0, 9.0]));
        assert!(unsettled(&[1.0, f64::NAN]));
    }

    #[test]
    fn series_that_settle_and_do_not() {
        assert_eq!(settles(&[5.0; 8], 0.1), Some(0));
        assert_eq!(
            settles(&[9.0, 7.0, 5.4, 5.2, 5.0, 5.0, 5.1, 4.9], 0.1),
            Some(2)
        );
        // It leaves the band once more.
        assert_eq!(
            settles(&[5.0, 5.0, 5.0, 9.0, 5.0, 5.0, 5.0, 5.0], 0.1),
            Some(4)
        );
        // It rises until its end, or leaps in its last quarter.
        let climb: Vec<f64> = (1..=40).map(f64::from).collect();
        assert_eq!(settles(&climb, 0.1), None);
        assert_eq!(
            settles(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0], 0.1),
            None
        );
        assert_eq!(settles(&[0.0; 8], 0.1), Some(0));
        assert_eq!(settles(&[5.0; 7], 0.1), None);
        assert_eq!(settles(&[f64::NAN; 8], 0.1), None);
    }

    proptest! {
        /// A known answer: exponential decay to a level enters a band of 10 % at −τ ln(0.1 level / height).
        #[test]
        fn a_decay_settles_when_it_should(tau in 1.0..12.0f64, height in 0.2..20.0f64, k in 0.001..1000.0f64) {
            let series: Vec<f64> = (0..120).map(|i| k * (1.0 + height * (-f64::from(i) / tau).exp())).collect();
            let expected = (tau * (height / 0.1).ln()).ceil().max(0.0);
            let seen = settles(&series, 0.1).unwrap() as f64;
            prop_assert!((seen - expected).abs() <= 1.0, "{seen} {expected}");
        }

        #[test]
        fn unit_and_direction_do_not_matter(
            x in prop::collection::vec(1.0..2.0_f64, 0..40),
            power in -10..10_i32,
        ) {
            let scaled: Vec<f64> = x.iter().map(|v| v * 2.0_f64.powi(power)).collect();
            prop_assert_eq!(unsettled(&scaled), unsettled(&x));
        }
    }
}
