//! A leap of a curve between two neighbouring x.

use super::curve::Curve;
use super::estimate::Estimate;
use super::interval::mean_interval;
use super::samples::Samples;

/// The change of a curve between two neighbouring x.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Index of the x before it.
    pub from: usize,
    /// Value after minus value before, paired within blocks. The interval allows for the choice among all neighbours
    /// (Bonferroni), so it is wider than that of a change chosen beforehand.
    pub change: Estimate,
    /// Whether the whole interval is at least as far from 0 as required.
    pub is_leap: bool,
}

/// The largest leap of a curve; if there is none, its largest change. `least` gives for each place how far from 0 a
/// change must be to count. `None` with one block or one x.
#[must_use]
pub fn largest_step(curve: &Curve, confidence: f64, least: impl Fn(usize) -> f64) -> Option<Step> {
    let places = curve.x().len().checked_sub(1).filter(|n| *n > 0)?;
    let each = 1.0 - (1.0 - confidence) / places as f64;
    let step = |from: usize| {
        let pairs = curve.at(from).into_iter().zip(curve.at(from + 1));
        let changes: Vec<f64> = pairs.map(|(before, after)| after - before).collect();
        let mut change = mean_interval(&Samples::new(&changes).ok()?, each)?;
        change.confidence = confidence;
        let is_leap = change.low.max(-change.high) >= least(from);
        Some(Step {
            from,
            change,
            is_leap,
        })
    };
    let steps: Vec<Step> = (0..places).map(step).collect::<Option<_>>()?;
    let size = |step: &Step| step.change.value.abs();
    steps
        .into_iter()
        .max_by(|a, b| a.is_leap.cmp(&b.is_leap).then(size(a).total_cmp(&size(b))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::normal;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const X: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0];

    /// Eight blocks of a curve with noise.
    fn noisy(sd: f64, seed: u64, of: impl Fn(usize) -> f64) -> Curve {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || {
            (0..X.len())
                .map(|i| of(i) + sd * normal(&mut rng))
                .collect()
        };
        let rows = (0..8).map(|_| row()).collect();
        Curve::new(X.to_vec(), rows).unwrap()
    }

    #[test]
    fn a_climb_is_no_leap() {
        // From 45 to 100 %, gradually.
        let curve = noisy(0.01, 1, |i| 0.45 + 0.55 * (X[i] - 1.0) / 31.0);
        let step = largest_step(&curve, 0.95, |_| 0.4).unwrap();
        assert!(!step.is_leap && step.from == 7, "{step:?}");
        assert_eq!(
            largest_step(&noisy(0.0, 1, |_| 0.0), 0.95, |_| 0.4)
                .unwrap()
                .change
                .value,
            0.0
        );
    }

    #[test]
    fn noise_makes_no_leap() {
        let leaps = (0..200)
            .filter(|seed| {
                largest_step(&noisy(0.4, *seed, |_| 0.5), 0.95, |_| 0.4)
                    .unwrap()
                    .is_leap
            })
            .count();
        assert!(leaps <= 2, "{leaps}");
    }

    #[test]
    fn garbage_gives_none() {
        let of = |x: &[f64], rows: Vec<Vec<f64>>| Curve::new(x.to_vec(), rows).unwrap();
        assert_eq!(
            largest_step(&of(&[1.0], vec![vec![1.0]; 3]), 0.95, |_| 0.0),
            None
        );
        assert_eq!(
            largest_step(&of(&[1.0, 2.0], vec![vec![1.0, 2.0]]), 0.95, |_| 0.0),
            None
        );
        assert_eq!(
            largest_step(&of(&[1.0, 2.0], vec![vec![1.0, 2.0]; 3]), f64::NAN, |_| 0.0),
            None
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// A known answer: a leap of any height at any place, up or down, is found there.
        #[test]
        fn a_leap_is_found(at in 0usize..8, height in 0.5..1.0f64, up: bool, seed: u64) {
            let sign = if up { 1.0 } else { -1.0 };
            let curve = noisy(0.01, seed, |i| if i > at { sign * height } else { 0.0 });
            let step = largest_step(&curve, 0.95, |_| 0.4).unwrap();
            prop_assert!(step.is_leap && step.from == at, "{step:?}");
            prop_assert!((step.change.value - sign * height).abs() < 0.03);
        }
    }
}
