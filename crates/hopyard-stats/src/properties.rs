//! Properties that every interval must have, whatever the samples.

use proptest::prelude::*;

use super::autocorrelation::lag1_autocorrelation;
use super::fdr::adjusted_p;
use super::welch::compare_unpaired;
use super::*;

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

fn holds(e: &Estimate) -> bool {
    e.low <= e.value && e.value <= e.high && e.low.is_finite() && e.high.is_finite()
}

fn scaled(x: &[f64], k: f64) -> Vec<f64> {
    x.iter().map(|v| v * k).collect()
}

/// Lists of the same length, away from 0.
fn pairs() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((0.5..2.0_f64, 0.5..2.0_f64), 2..25)
        .prop_map(|pairs| pairs.into_iter().unzip())
}

/// Any numbers, special values included.
fn anything() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![any::<f64>(), Just(0.0), -10.0..10.0_f64], 0..20)
}

type Ratio = fn(&[f64], &[f64], f64) -> Option<Estimate>;

proptest! {
    #[test]
    fn ratios_hold_their_value_and_scale((a, b) in pairs(), k in 1e-6..1e6_f64) {
        for ratio in [ratio_of_sums as Ratio, paired_ratio] {
            let Some(e) = ratio(&a, &b, 0.95) else { continue };
            prop_assert!(holds(&e));
            let s = ratio(&scaled(&a, k), &b, 0.95).unwrap();
            prop_assert!(close(s.value, k * e.value));
            prop_assert!(close(s.high, k * e.high), "{e:?} {s:?}");
            let both = ratio(&scaled(&a, k), &scaled(&b, k), 0.95).unwrap();
            prop_assert!(close(both.high, e.high));
        }
    }

    #[test]
    fn the_other_way_round_is_the_reciprocal((a, b) in pairs()) {
        for ratio in [ratio_of_sums as Ratio, paired_ratio] {
            let (Some(e), Some(r)) = (ratio(&a, &b, 0.95), ratio(&b, &a, 0.95)) else { continue };
            prop_assert!(close(r.value, 1.0 / e.value));
            prop_assert!(close(r.low, 1.0 / e.high), "{e:?} {r:?}");
            prop_assert!(close(r.high, 1.0 / e.low), "{e:?} {r:?}");
        }
    }

    #[test]
    fn means_hold_their_value_and_scale(x in prop::collection::vec(0.5..2.0_f64, 2..30), k in 1e-6..1e6_f64) {
        for interval in [mean_interval, log_mean_interval] {
            let e = interval(&Samples::new(&x).unwrap(), 0.95).unwrap();
            prop_assert!(holds(&e));
            let s = interval(&Samples::new(&scaled(&x, k)).unwrap(), 0.95).unwrap();
            prop_assert!(close(s.value, k * e.value));
            prop_assert!((s.high - k * e.high).abs() < 1e-6 * k * (e.high - e.low + e.value));
        }
    }

    #[test]
    fn the_same_samples_twice_are_narrower((a, b) in pairs()) {
        let twice = |x: &[f64]| [x, x].concat();
        for ratio in [ratio_of_sums as Ratio, paired_ratio] {
            let Some(e) = ratio(&a, &b, 0.95) else { continue };
            let t = ratio(&twice(&a), &twice(&b), 0.95).unwrap();
            prop_assert!(t.high - t.low <= (e.high - e.low) * (1.0 + 1e-9));
        }
        for interval in [mean_interval, log_mean_interval] {
            let e = interval(&Samples::new(&a).unwrap(), 0.95).unwrap();
            let t = interval(&Samples::new(&twice(&a)).unwrap(), 0.95).unwrap();
            prop_assert!(t.high - t.low <= (e.high - e.low) * (1.0 + 1e-9));
        }
    }

    #[test]
    fn more_confidence_is_wider((a, b) in pairs()) {
        for ratio in [ratio_of_sums as Ratio, paired_ratio] {
            let (Some(e), Some(w)) = (ratio(&a, &b, 0.90), ratio(&a, &b, 0.99)) else { continue };
            prop_assert!(w.low <= e.low && w.high >= e.high);
        }
    }

    #[test]
    fn no_nan_whatever_goes_in(a in anything(), b in anything(), confidence in any::<f64>(), unit in 0.0..1.0_f64) {
        for confidence in [confidence, unit, 0.95] {
            for ratio in [ratio_of_sums as Ratio, paired_ratio, linear_slope] {
                prop_assert!(ratio(&a, &b, confidence).is_none_or(|e| holds(&e)));
                prop_assert!(ratio(&a, &a, confidence).is_none_or(|e| holds(&e)));
            }
            prop_assert!(drift(&a, confidence).is_none_or(|e| holds(&e)));
            if let Ok(x) = Samples::new(&a) {
                for interval in [mean_interval, log_mean_interval] {
                    prop_assert!(interval(&x, confidence).is_none_or(|e| holds(&e)));
                }
            }
            for c in [compare, compare_unpaired].iter().filter_map(|c| c(&a, &b, confidence)) {
                let sides = [c.p, c.p_above(unit), c.p_below(unit), c.p_above(confidence)];
                prop_assert!(sides.iter().all(|p| (0.0..=1.0).contains(p)) && c.se_log >= 0.0);
                prop_assert!(holds(&c.ratio));
                prop_assert!(one_sided_detectable(c.se_log, c.df, confidence, unit) >= 1.0);
                let judged = judge(&[c], unit, confidence);
                prop_assert!(judged[0].smallest_detectable >= 0.0);
            }
        }
        for value in [mean(&a), sd(&a), geometric_mean(&a), lag1_autocorrelation(&a)] {
            prop_assert!(value.is_none_or(f64::is_finite));
        }
        if let Some(Dependence::Alike(lag1)) = dependence(&[a.clone(), b.clone()]) {
            prop_assert!(lag1.is_finite());
        }
        if let Ok(x) = Samples::new(&a) {
            prop_assert!(two_modes(&x).is_none_or(|m| m.iter().all(|v| v.is_finite())));
        }
        let _: bool = unsettled(&a);
        prop_assert!(adjusted_p(&a).iter().all(|p| (0.0..=1.0).contains(p)));
    }
}
