//! Cells whose samples have two modes.

use super::moments::{geometric_mean, logs, mean};
use super::samples::Samples;

/// Positive values closer than this ratio are one mode: two ticks of a coarse counter are not two modes of operation.
const APART: f64 = 1.1;

/// Centres of two clearly separated modes, the lower first, if the samples have two: for example, if both ends of a
/// flow run on one CPU in some blocks and on two in others. Fewer than 8 samples are never split. The unit is that of
/// the samples; centres are geometric means if all values are above 0, arithmetic means otherwise.
///
/// The sorted samples (their logarithms if all are above 0, since spread grows with size) are split in two where the
/// within-group sum of squares is least (Engelman and Hartigan 1969, "Percentage points of a test for clusters"). The
/// split counts if each group has at least two samples and a tenth of them, so that an outlier is not a mode, if the
/// empty gap between the groups is at least max(2, 66/n) pooled standard deviations, and if the centres are 10 % apart.
/// The bound 66/n was fitted by simulation: it keeps false alarms on one normal or lognormal (sigma up to 0.3) mode
/// below 1 % for n from 8 to 100. Hartigan's dip test is not used, because it has little power at n = 8.
#[must_use]
pub fn two_modes(x: &Samples) -> Option<[f64; 2]> {
    let n = x.len();
    if n < 8 {
        return None;
    }
    let logarithms = logs(x);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let scale = logarithms.as_deref().unwrap_or(x);
    let sorted: Vec<f64> = order.iter().map(|&i| scale[i]).collect();
    let least = n.div_ceil(10).max(2);
    let (at, squares) = (least..=n - least)
        .map(|at| (at, within(&sorted[..at]) + within(&sorted[at..])))
        .filter(|(_, squares)| squares.is_finite())
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let pooled = (squares / (n - 2) as f64).sqrt();
    let gap = sorted[at] - sorted[at - 1];
    let wanted = (66.0 / n as f64).max(2.0) * pooled;
    if gap <= 0.0 || gap < wanted {
        return None;
    }
    let values: Vec<f64> = order.iter().map(|&i| x[i]).collect();
    let centre = if logarithms.is_some() {
        geometric_mean
    } else {
        mean
    };
    let (low, high) = (centre(&values[..at])?, centre(&values[at..])?);
    (logarithms.is_none() || high >= APART * low).then_some([low, high])
}

/// Sum of squares about the group's own mean.
fn within(group: &[f64]) -> f64 {
    mean(group).map_or(f64::NAN, |centre| {
        group.iter().map(|v| (v - centre).powi(2)).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Synthetic, normal};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn alarms(kind: Synthetic, n: usize, runs: usize) -> usize {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        (0..runs)
            .filter(|_| two_modes(&Samples::try_from(kind.draw(n, &mut rng)).unwrap()).is_some())
            .count()
    }

    #[test]
    fn one_mode_is_one_mode() {
        let runs = 1500;
        for n in [8, 10, 13, 20, 30, 40] {
            for kind in [
                Synthetic::Normal { mean: 0.0, sd: 1.0 },
                Synthetic::Normal {
                    mean: 100.0,
                    sd: 10.0,
                },
                Synthetic::Normal {
                    mean: 100.0,
                    sd: 25.0,
                },
                Synthetic::LogNormal {
                    median: 100.0,
                    sigma: 0.3,
                },
            ] {
                let seen = alarms(kind, n, runs);
                assert!(seen * 100 <= runs, "{kind:?} n {n}: {seen} of {runs}");
            }
        }
    }

    /// Request/response over one veth pair: 13 000/s with the ends on two CPUs, 180 000 on one.
    #[test]
    fn placement_left_to_chance_is_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for n in [8, 10, 20, 40, 100] {
            for share in [0.2, 0.5, 0.8] {
                let low = ((n as f64 * share).round() as usize).max(2);
                for _ in 0..50 {
                    let x: Vec<f64> = (0..n)
                        .map(|i| if i < low { 13_000.0 } else { 180_000.0 })
                        .map(|centre: f64| centre * (0.1 * normal(&mut rng)).exp())
                        .collect();
                    let [a, b] = two_modes(&Samples::try_from(x).unwrap()).expect("two modes");
                    assert!((a / 13_000.0 - 1.0).abs() < 0.3 && (b / 180_000.0 - 1.0).abs() < 0.3);
                }
            }
        }
    }

    #[test]
    fn not_modes() {
        let split = |x: &[f64]| two_modes(&Samples::new(x).unwrap());
        assert_eq!(split(&[5.0; 20]), None);
        // Too few to say.
        assert_eq!(split(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]), None);
        // One outlier.
        assert_eq!(split(&[1.0, 1.01, 1.02, 0.99, 1.0, 1.01, 0.98, 9.0]), None);
        // Two ticks of a coarse counter.
        assert_eq!(
            split(&[100.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0]),
            None
        );
        assert_eq!(
            split(&[f64::MAX, -f64::MAX, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            None
        );
        assert_eq!(
            split(&[1.0, 1.0, 9.0, 1.0, 9.0, 9.0, 1.0, 9.0]).map(|m| m[0]),
            Some(1.0)
        );
    }

    proptest! {
        #[test]
        fn centres_are_inside_and_ordered(x in prop::collection::vec(-1e3..1e3_f64, 1..60)) {
            if let Some([low, high]) = two_modes(&Samples::new(&x).unwrap()) {
                prop_assert!(low < high);
                prop_assert!(x.iter().any(|v| *v <= low + 1e-9));
                prop_assert!(x.iter().any(|v| *v >= high - 1e-9));
            }
        }
    }
}
