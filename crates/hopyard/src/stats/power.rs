//! What a number of blocks could have shown.

use super::distribution::{t_power, t_quantile};
use super::estimate::alpha;

/// The smallest |ratio − 1| that a two-sided paired t test on `n` blocks with the standard
/// deviation `sd_log` of ln(a/b) finds with probability `power`, at level 1 − `confidence`. From
/// the noncentral t distribution (Cohen 1988, "Statistical Power Analysis", chapter 2), not the
/// normal approximation, which at 8 blocks is a seventh too hopeful. Infinite where nothing could be
/// shown: n < 2, a spread that is none, or levels outside 0..1.
///
/// It says "slower by this much or more": the log scale is symmetric in ratios, so the same
/// blocks show a speed-up a little smaller, x/(1 + x).
#[must_use]
pub fn smallest_detectable(sd_log: f64, n: usize, confidence: f64, power: f64) -> f64 {
    detectable(sd_log, n, detectable_noncentrality(n, confidence, power))
}

/// Carries a noncentrality back to a ratio less 1.
pub(super) fn detectable(sd_log: f64, n: usize, noncentrality: Option<f64>) -> f64 {
    match noncentrality {
        Some(ncp) if sd_log >= 0.0 && sd_log.is_finite() => {
            (ncp * sd_log / (n as f64).sqrt()).exp_m1()
        }
        _ => f64::INFINITY,
    }
}

/// The noncentrality √n·δ/σ at which the test has the power asked; it depends on the number of
/// blocks and the levels only, so that a table needs it once.
pub(super) fn detectable_noncentrality(n: usize, confidence: f64, power: f64) -> Option<f64> {
    let alpha = alpha(confidence)?;
    if n < 2 || !(power > alpha && power < 1.0) {
        return None;
    }
    let df = (n - 1) as f64;
    let critical = t_quantile(1.0 - alpha / 2.0, df)?;
    let (mut low, mut high) = (0.0, critical.max(1.0));
    while t_power(critical, df, high) < power {
        (low, high) = (high, 2.0 * high);
        if !high.is_finite() {
            return None;
        }
    }
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        if t_power(critical, df, middle) < power {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// R `power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "paired")`: n = 33.37, so 33
    /// blocks just fail to show half a standard deviation and 34 just do.
    #[test]
    fn thirty_four_pairs_for_half_a_deviation() {
        let delta = |n| smallest_detectable(1.0, n, 0.95, 0.8).ln_1p();
        assert!(
            delta(33) > 0.5 && delta(34) < 0.5,
            "{} {}",
            delta(33),
            delta(34)
        );
        assert!((delta(33) - 0.5).abs() < 0.004);
    }

    #[test]
    fn nothing_to_show() {
        assert_eq!(smallest_detectable(0.0, 8, 0.95, 0.8), 0.0);
        for (sd, n, confidence, power) in [
            (0.1, 1, 0.95, 0.8),
            (0.1, 0, 0.95, 0.8),
            (f64::NAN, 8, 0.95, 0.8),
            (-0.1, 8, 0.95, 0.8),
            (0.1, 8, 1.0, 0.8),
            (0.1, 8, 0.95, 1.0),
            (0.1, 8, 0.95, f64::NAN),
        ] {
            assert_eq!(smallest_detectable(sd, n, confidence, power), f64::INFINITY);
        }
        assert!(smallest_detectable(0.01, 2, 0.95, 0.8).is_finite());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn shrinks_with_blocks_and_grows_with_spread(
            n in 2..60_usize, sd in 0.001..0.5_f64, power in 0.5..0.95_f64,
        ) {
            let here = smallest_detectable(sd, n, 0.95, power);
            prop_assert!(here > 0.0);
            prop_assert!(smallest_detectable(sd, n + 1, 0.95, power) < here);
            prop_assert!(smallest_detectable(1.1 * sd, n, 0.95, power) > here);
            prop_assert!(smallest_detectable(sd, n, 0.99, power) > here);
        }
    }
}
