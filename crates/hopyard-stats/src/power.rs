//! The smallest difference that a number of blocks can show.

use std::ops::RangeInclusive;

use super::distribution::{t_power, t_quantile};
use super::estimate::alpha;

/// The smallest |ratio − 1| that a two-sided paired t test on `n` blocks with the standard deviation `sd_log` of
/// ln(a/b) finds with probability `power`, at level 1 − `confidence`. From the noncentral t distribution (Cohen 1988,
/// "Statistical Power Analysis", chapter 2); the normal approximation would be a seventh too small at 8 blocks.
/// Infinite if nothing could be shown: n < 2, an invalid spread, or levels outside 0..1.
///
/// It means "slower by this much or more". The log scale is symmetric in ratios, so the same blocks show a speed-up
/// that is a little smaller, x/(1 + x).
#[must_use]
pub fn smallest_detectable(sd_log: f64, n: usize, confidence: f64, power: f64) -> f64 {
    let n = n as f64;
    let noncentrality = detectable_noncentrality(n - 1.0, confidence, power);
    detectable(sd_log / n.sqrt(), noncentrality)
}

/// How many blocks a two-sided t test at level 1 − `confidence` takes to find, with probability `power`, a mean that is `distance`
/// standard deviations of a block away. A forecast ([`reach`]). `None` if a million are too few, or the arguments are invalid.
#[must_use]
pub fn blocks_needed(distance: f64, confidence: f64, power: f64) -> Option<u32> {
    fewest(2..=1_000_000, |blocks| {
        let blocks = f64::from(blocks);
        Some(reach(blocks - 1.0, confidence, power)? <= distance * blocks.sqrt())
    })
}

/// How many standard errors a difference must have for a two-sided test to find it: by quantiles of t in place of the noncentral t, as is
/// good enough for a forecast.
pub(super) fn reach(df: f64, confidence: f64, power: f64) -> Option<f64> {
    Some(t_quantile(1.0 - alpha(confidence)? / 2.0, df)? + t_quantile(power, df)?)
}

/// The least number in the range that is enough, where each one above it is, too.
pub(super) fn fewest(
    range: RangeInclusive<u32>,
    is_enough: impl Fn(u32) -> Option<bool>,
) -> Option<u32> {
    let (least, most) = (*range.start(), *range.end());
    if is_enough(least)? {
        return Some(least);
    }
    let (mut few, mut enough) = (least, 2 * least);
    while !is_enough(enough)? {
        (few, enough) = (enough, 2 * enough);
        if few >= most {
            return None;
        }
    }
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        if is_enough(middle)? {
            enough = middle;
        } else {
            few = middle;
        }
    }
    Some(enough).filter(|enough| range.contains(enough))
}

/// The factor x by which a ratio must be beyond a bound for a one-sided t test against that bound to find it with
/// probability `power`, at level 1 − `confidence`; `se_log` is the standard error of ln(ratio). Infinite if nothing
/// could be shown.
#[must_use]
pub fn one_sided_detectable(se_log: f64, df: f64, confidence: f64, power: f64) -> f64 {
    // A two-sided test at twice the level is the same: its other tail adds nothing where this one has power.
    let noncentrality = detectable_noncentrality(df, 2.0 * confidence - 1.0, power);
    1.0 + detectable(se_log, noncentrality)
}

/// Converts a noncentrality to a ratio minus 1.
pub(super) fn detectable(se_log: f64, noncentrality: Option<f64>) -> f64 {
    match noncentrality {
        Some(ncp) if se_log >= 0.0 && se_log.is_finite() => (ncp * se_log).exp_m1(),
        _ => f64::INFINITY,
    }
}

/// The noncentrality δ/se at which the two-sided test has the given power. It depends only on the degrees of freedom
/// and the levels, so a table computes it once for each.
pub(super) fn detectable_noncentrality(df: f64, confidence: f64, power: f64) -> Option<f64> {
    let alpha = alpha(confidence)?;
    if !(power > alpha && power < 1.0) {
        return None;
    }
    let critical = t_quantile(1.0 - alpha / 2.0, df)?;
    let (mut low, mut high) = (0.0, critical.max(1.0));
    while t_power(critical, df, high) < power {
        (low, high) = (high, 2.0 * high);
        if !high.is_finite() {
            return None;
        }
    }
    // What is made of it is printed with three digits.
    while high - low > 1e-6 * high {
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

    /// The same by a forecast, which is one block off at most. 8 blocks show 1.156 deviations (R as above).
    #[test]
    fn blocks_by_a_forecast() {
        let needed = |distance| blocks_needed(distance, 0.95, 0.8);
        for (distance, blocks) in [(0.5, 34), (1.156, 8), (0.1, 787)] {
            let got = needed(distance).unwrap();
            assert!(got.abs_diff(blocks) <= 1, "{distance}: {got}");
        }
        assert_eq!(needed(f64::INFINITY), Some(2));
        assert!(blocks_needed(0.5, 0.99, 0.8) > needed(0.5));
        for distance in [0.0, 1e-9, -0.5, f64::NAN] {
            assert_eq!(needed(distance), None);
        }
        assert_eq!(blocks_needed(0.5, 1.0, 0.8), None);
        assert_eq!(blocks_needed(0.5, 0.95, 0.0), None);
    }

    /// R `power.t.test(n = 20, power = 0.8, sd = 1, type = "two.sample", alternative = "one.sided")`.
    #[test]
    fn twenty_a_group_one_sided() {
        let se = (2.0_f64 / 20.0).sqrt();
        assert!((one_sided_detectable(se, 38.0, 0.95, 0.8).ln() - 0.8006).abs() < 0.001);
        assert_eq!(
            one_sided_detectable(0.1, 38.0, 0.5, 0.8),
            f64::INFINITY,
            "a level of one half"
        );
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
