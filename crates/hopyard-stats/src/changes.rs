//! Change points of a series over runs: E-divisive (Matteson and James 2014, "A nonparametric approach for multiple change point
//! analysis of multivariate data"), which the regression detectors of MongoDB and Apache Otava (Hunter) build on.
//!
//! A series is split where the energy distance between what is before and what is after is largest; the split counts if few random
//! orders of that piece have one as large. Then both pieces are looked at. It asks for no distribution, and finds steps, not drifts.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::location::median;

/// Values on each side of a change, at least: fewer tell nothing about a side.
const LEAST: usize = 3;
/// Longest series that is looked at: the work grows by its square, for each random order.
const LONGEST: usize = 1000;

/// Orders with the same two sides have the same strength, but for rounding.
const TIE: f64 = 1e-9;

/// A value from which on a series is another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Place of the first value that is different.
    pub at: usize,
    /// Median of what is before it, back to the previous change.
    pub before: f64,
    /// Median from it on, up to the next change.
    pub after: f64,
    /// Share of the random orders with a split as large, this order among them.
    pub p: f64,
}

/// All changes of a series, in its order, each significant at `level` among `orders` random ones. Empty where the series has fewer
/// than twice [`LEAST`] values, more than [`LONGEST`], or one that is not finite.
#[must_use]
pub fn changes(series: &[f64], level: f64, orders: u32, seed: u64) -> Vec<Change> {
    if series.len() > LONGEST || series.iter().any(|v| !v.is_finite()) {
        return Vec::new();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut found = Vec::new();
    let mut pieces: Vec<Range<usize>> = std::iter::once(0..series.len()).collect();
    while let Some(piece) = pieces.pop() {
        let values = &series[piece.clone()];
        let Some((split, strength)) = strongest_split(values) else {
            continue;
        };
        let mut as_large = 1_u32;
        let mut mixed = values.to_vec();
        for _ in 0..orders {
            mixed.shuffle(&mut rng);
            let other = strongest_split(&mixed).map_or(0.0, |(_, strength)| strength);
            as_large += u32::from(other >= strength * (1.0 - TIE));
        }
        let p = f64::from(as_large) / f64::from(orders + 1);
        if p <= level {
            let at = piece.start + split;
            found.push((at, p));
            pieces.push(piece.start..at);
            pieces.push(at..piece.end);
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    let ends = found.iter().map(|(at, _)| *at).skip(1);
    let ends: Vec<usize> = ends.chain([series.len()]).collect();
    let mut begin = 0;
    let mut told = Vec::new();
    for ((at, p), end) in found.into_iter().zip(ends) {
        let middle = |of: &[f64]| median(of.to_vec());
        if let (Some(before), Some(after)) = (middle(&series[begin..at]), middle(&series[at..end]))
        {
            told.push(Change {
                at,
                before,
                after,
                p,
            });
        }
        begin = at;
    }
    told
}

/// The split with the largest energy distance, weighted by the sizes: `mn/(m+n) · (2·E|X−Y| − E|X−X'| − E|Y−Y'|)`.
fn strongest_split(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    if n < 2 * LEAST {
        return None;
    }
    let apart = |i: usize, j: usize| (values[i] - values[j]).abs();
    // Sums of distances: within what is before, across, and within what is after; one value moves over at a time.
    let mut before = 0.0;
    let mut across = 0.0;
    let mut after: f64 = (0..n)
        .map(|i| (0..i).map(|j| apart(i, j)).sum::<f64>())
        .sum();
    let mut best: Option<(usize, f64)> = None;
    for moved in 0..n {
        let to_before: f64 = (0..moved).map(|j| apart(moved, j)).sum();
        let to_after: f64 = (moved + 1..n).map(|j| apart(moved, j)).sum();
        before += to_before;
        across += to_after - to_before;
        after -= to_after;
        let split = moved + 1;
        if split < LEAST || n - split < LEAST {
            continue;
        }
        let (x, y) = (split as f64, (n - split) as f64);
        let distance =
            2.0 * across / (x * y) - 2.0 * before / (x * (x - 1.0)) - 2.0 * after / (y * (y - 1.0));
        let strength = x * y / (x + y) * distance;
        if best.is_none_or(|(_, most)| strength > most) {
            best = Some((split, strength));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::standard_normal;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count)
            .map(|_| 100.0 + standard_normal(&mut rng))
            .collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut series = noise(40, 1);
        series[25..].iter_mut().for_each(|v| *v -= 5.0);
        let found = changes(&series, 0.01, 199, 7);
        // Noise may look like a step too, now and then, but not before this one.
        let step = found[0];
        assert_eq!(step.at, 25);
        assert!((step.before - 100.0).abs() < 1.0 && (step.after - 95.0).abs() < 3.0);
        assert!(step.p <= 0.01 && found.len() <= 2, "{found:?}");
    }

    #[test]
    fn two_steps_are_two() {
        let mut series = noise(60, 2);
        series[20..40].iter_mut().for_each(|v| *v += 6.0);
        let found = changes(&series, 0.01, 199, 7);
        assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), [20, 40]);
        assert!(found[0].after > 104.0 && found[1].after < 102.0);
    }

    /// Of so many series without a change, not many more than the level have one found.
    #[test]
    fn where_nothing_changes_little_is_found() {
        let alarms = (0..200).filter(|seed| !changes(&noise(20, *seed), 0.05, 99, 3).is_empty());
        let alarms = alarms.count();
        assert!(alarms <= 20, "{alarms} of 200");
    }

    #[test]
    fn what_is_no_series_has_no_changes() {
        assert_eq!(changes(&[1.0; 5], 0.05, 99, 1), []);
        assert_eq!(changes(&[1.0; 50], 0.05, 99, 1), []);
        assert_eq!(changes(&[f64::NAN; 50], 0.05, 99, 1), []);
        assert_eq!(changes(&vec![1.0; LONGEST + 1], 0.05, 99, 1), []);
        assert_eq!(changes(&[], 0.05, 99, 1), []);
    }

    proptest! {
        #[test]
        fn places_and_sides_are_within_the_series(series in prop::collection::vec(-1e6_f64..1e6, 0..60), seed: u64) {
            let found = changes(&series, 0.2, 19, seed);
            prop_assert!(found.windows(2).all(|two| two[0].at + LEAST <= two[1].at));
            for change in found {
                prop_assert!((LEAST..=series.len() - LEAST).contains(&change.at));
            }
        }
    }
}
