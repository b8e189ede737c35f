//! A knee: where a curve changes from one straight line to another.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, LEAST, percentiles};
use super::estimate::Estimate;
use super::interval::mean_interval;
use super::samples::Samples;
use super::slope::Line;

/// Places tried for the knee between two neighbouring x.
const FINE: usize = 8;
/// Curves without a knee that a test simulates.
const DRAWS: usize = 400;
/// A simulated F ratio that is smaller than the observed one by no more than this share counts as equal. F does not
/// depend on the size of deviations. So if all blocks deviate alike, every simulated curve has the observed F, apart
/// from rounding.
const TIE: f64 = 1e-9;

/// Two lines that meet, fitted to a curve.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct Knee {
    /// The x at which they meet, with its interval by resampling blocks.
    pub at: Estimate,
    /// Slopes of the two lines at that place, units of y per unit of x, with t intervals over blocks.
    pub slopes: Slopes,
    /// Probability that two lines are so much better than one if there is no knee.
    pub p: f64,
    /// Whether two lines are better than one at the confidence asked for. If not, there is no knee.
    pub is_shown: bool,
}

/// Slopes on both sides of an x.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct Slopes {
    /// Before it.
    pub before: Estimate,
    /// After it.
    pub after: Estimate,
    /// The slope after minus twice the slope before: above 0 if the slope more than doubles. Unlike a ratio, it is also
    /// defined if the slope before is about 0.
    pub after_minus_twice_before: Estimate,
}

/// The least-squares fit of two lines that meet (Hudson 1966, "Fitting segmented curves whose join points have to be
/// estimated") to the mean curve, and whether they are better than one.
///
/// The test takes the fall of the residual sum of squares as an F ratio. Because the knee's place is chosen from the
/// data, F does not have its tabulated distribution (Davies 1987). So the distribution is simulated: one line, plus
/// means of the blocks' own deviations, resampled whole. A deviation that all blocks share counts against two lines as
/// much as against one, so a jagged curve has no knee. A smooth bend has one, and the width of its interval shows how
/// sharp it is.
///
/// `None` with fewer than 6 blocks or 5 points.
#[must_use]
pub fn knee(curve: &Curve, confidence: f64, seed: u64) -> Option<Knee> {
    let x = curve.x();
    if x.len() < 5 || curve.blocks() < LEAST {
        return None;
    }
    let bases = bases(x)?;
    let mean = curve.mean();
    let (at, seen) = best(&bases, x, &mean)?;
    let drawn: Option<Vec<f64>> = curve
        .resampled(seed, |mean| Some(best(&bases, x, mean)?.0))
        .into_iter()
        .collect();
    let ends = percentiles(drawn?, curve.blocks(), confidence)?;
    let p = chance(curve, &bases, &mean, seen, seed)?;
    Some(Knee {
        at: Estimate::bounded(at, ends, confidence, curve.blocks())?,
        slopes: slopes_around(curve, at, confidence)?,
        p,
        is_shown: p < 1.0 - confidence,
    })
}

/// Slopes of the two lines that meet at a given x and fit each block best, with t intervals over blocks. `None` with
/// one block, or with fewer than two points on a side.
#[must_use]
pub fn slopes_around(curve: &Curve, at: f64, confidence: f64) -> Option<Slopes> {
    let x = curve.x();
    let sides = (
        x.iter().filter(|x| **x <= at).count(),
        x.iter().filter(|x| **x >= at).count(),
    );
    if sides.0 < 2 || sides.1 < 2 {
        return None;
    }
    let basis = Basis::at(x, at)?;
    let lines: Vec<(f64, f64)> = curve
        .rows()
        .map(|row| basis.slopes(x, row))
        .collect::<Option<_>>()?;
    let over = |of: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = lines.iter().map(of).collect();
        mean_interval(&Samples::new(&values).ok()?, confidence)
    };
    Some(Slopes {
        before: over(|(before, _)| *before)?,
        after: over(|(_, after)| *after)?,
        after_minus_twice_before: over(|(before, after)| after - 2.0 * before)?,
    })
}

/// The part of max(0, x − place) that no straight line explains: what two lines that meet there can fit beyond one.
struct Basis {
    at: f64,
    /// max(0, x − place) minus its own least-squares line.
    rest: Vec<f64>,
    /// Sum of squares of `rest`.
    squares: f64,
    /// Slope of the line that was subtracted.
    slope: f64,
}

impl Basis {
    fn at(x: &[f64], at: f64) -> Option<Self> {
        let hinge: Vec<f64> = x.iter().map(|x| (x - at).max(0.0)).collect();
        let line = Line::through(x, &hinge)?;
        let rest: Vec<f64> = hinge
            .iter()
            .zip(x)
            .map(|(y, x)| y - line.intercept - line.slope * x)
            .collect();
        let squares: f64 = rest.iter().map(|v| v * v).sum();
        (squares > 0.0).then_some(Self {
            at,
            rest,
            squares,
            slope: line.slope,
        })
    }

    /// The best-fitting change of slope at the place (Frisch and Waugh 1933: regress on `rest`).
    fn bend(&self, y: &[f64]) -> f64 {
        let product: f64 = self.rest.iter().zip(y).map(|(rest, y)| rest * y).sum();
        product / self.squares
    }

    /// By how much the change of slope reduces the sum of squares.
    fn gain(&self, y: &[f64]) -> f64 {
        self.bend(y).powi(2) * self.squares
    }

    /// Slopes before and after the place.
    fn slopes(&self, x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
        let bend = self.bend(y);
        let before = Line::through(x, y)?.slope - bend * self.slope;
        Some((before, before + bend))
    }
}

/// Every place tried: from the second x to the last but one, so that each side has at least two points.
fn bases(x: &[f64]) -> Option<Vec<Basis>> {
    let inner = x.get(1..x.len() - 1)?;
    let mut places: Vec<f64> = inner
        .windows(2)
        .flat_map(|pair| {
            let step = (pair[1] - pair[0]) / FINE as f64;
            (0..FINE).map(move |i| pair[0] + step * i as f64)
        })
        .collect();
    places.extend(inner.last());
    places.iter().map(|at| Basis::at(x, *at)).collect()
}

/// The place with the least sum of squares, and the F ratio of two lines there over one (2 more parameters, because the
/// place is one).
fn best(bases: &[Basis], x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let one = Line::through(x, y)?;
    let gains = bases.iter().map(|basis| (basis.at, basis.gain(y)));
    let (at, gain) = gains.max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Rounding alone leaves a residual, for one line and for two.
    let rounding = 1e-20 * y.iter().map(|y| y * y).sum::<f64>();
    let rest = (one.rss - gain).max(rounding).max(f64::MIN_POSITIVE);
    let gain = if gain <= rounding { 0.0 } else { gain };
    let df = (y.len() - 4) as f64;
    Some((at, (gain / 2.0) / (rest / df)))
}

/// How often a curve of one line with the blocks' deviations has at least this F ratio.
fn chance(curve: &Curve, bases: &[Basis], mean: &[f64], seen: f64, seed: u64) -> Option<f64> {
    let x = curve.x();
    let line = Line::through(x, mean)?;
    let blocks = curve.blocks();
    // Deviations from a mean of n are too small by √((n − 1)/n).
    let widen = (blocks as f64 / (blocks - 1) as f64).sqrt();
    let deviations: Vec<Vec<f64>> = curve
        .rows()
        .map(|row| row.iter().zip(mean).map(|(y, m)| (y - m) * widen).collect())
        .collect();
    if seen <= 0.0 || deviations.iter().flatten().all(|d| *d == 0.0) {
        return Some(if seen > 0.0 { 0.0 } else { 1.0 });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x006b_6e65_6500);
    let mut as_large = 1usize;
    for _ in 0..DRAWS {
        let mut y: Vec<f64> = x.iter().map(|x| line.intercept + line.slope * x).collect();
        for _ in 0..blocks {
            let row = &deviations[rng.random_range(0..blocks)];
            // The sign is random: blocks are few, and deviations in either direction are equally likely.
            let share = if rng.random::<bool>() { 1.0 } else { -1.0 } / blocks as f64;
            y.iter_mut().zip(row).for_each(|(y, d)| *y += d * share);
        }
        as_large += usize::from(best(bases, x, &y)?.1 >= seen * (1.0 - TIE));
    }
    Some(as_large as f64 / (DRAWS + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::normal;
    use proptest::prelude::*;

    const X: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0];

    /// Eight blocks of a curve with noise.
    fn noisy(sd: f64, seed: u64, of: impl Fn(f64) -> f64) -> Curve {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || X.iter().map(|x| of(*x) + sd * normal(&mut rng)).collect();
        let rows = (0..8).map(|_| row()).collect();
        Curve::new(X.to_vec(), rows).unwrap()
    }

    fn of(curve: &Curve) -> Knee {
        knee(curve, 0.95, 7).unwrap()
    }

    #[test]
    fn one_line_has_no_knee() {
        let seen = (0..100)
            .filter(|seed| of(&noisy(1.0, *seed, |x| 5.0 + 2.0 * x)).is_shown)
            .count();
        assert!(seen <= 11, "{seen} of 100");
        assert!(!of(&noisy(0.0, 1, |x| 5.0 + 2.0 * x)).is_shown);
        assert!(!of(&noisy(0.0, 1, |_| 5.0)).is_shown);
    }

    /// All blocks deviate from a line in one shape. Every simulated curve then has that shape too, so the test can tell
    /// nothing. Only rounding separates the simulated F ratios from the observed one, and it must not count.
    #[test]
    fn blocks_that_deviate_alike_show_no_knee() {
        let shape = [0.3, -1.1, 0.7, 2.9, -0.4, 1.3, -2.2, 5.1, 8.3];
        for seed in 0..20 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut row = || {
                let much = 1.0 + normal(&mut rng);
                let at = |(x, part): (&f64, &f64)| 5.0 + 2.0 * x + much * part;
                X.iter().zip(&shape).map(at).collect()
            };
            let curve = Curve::new(X.to_vec(), (0..9).map(|_| row()).collect()).unwrap();
            let knee = knee(&curve, 0.95, seed).unwrap();
            assert!(knee.p > 0.99, "{seed}: {knee:?}");
        }
    }

    /// A shape that is the same in every block, and is neither one line nor two.
    #[test]
    fn a_jagged_curve_has_no_knee() {
        let saw = |x: f64| {
            if (x / 4.0).floor() % 2.0 == 0.0 {
                10.0
            } else {
                14.0
            }
        };
        let knee = of(&noisy(0.05, 3, saw));
        assert!(!knee.is_shown, "{knee:?}");
    }

    #[test]
    fn nothing_of_too_little() {
        let row = vec![1.0, 2.0, 3.0, 4.0];
        let four = Curve::new(vec![1.0, 2.0, 3.0, 4.0], vec![row; 8]).unwrap();
        assert_eq!(knee(&four, 0.95, 1), None);
        let rows = vec![X.to_vec(); 5];
        assert_eq!(knee(&Curve::new(X.to_vec(), rows).unwrap(), 0.95, 1), None);
        assert_eq!(knee(&noisy(1.0, 1, |x| x), f64::NAN, 1), None);
        assert_eq!(slopes_around(&noisy(1.0, 1, |x| x), 0.5, 0.95), None);
    }

    #[test]
    fn slopes_at_a_place_named_beforehand() {
        let slopes = slopes_around(
            &noisy(0.01, 5, |x| if x < 20.0 { x } else { 3.0 * x - 40.0 }),
            20.0,
            0.95,
        )
        .unwrap();
        assert!(
            (slopes.before.value - 1.0).abs() < 0.01 && (slopes.after.value - 3.0).abs() < 0.01,
            "{slopes:?}"
        );
        assert!(slopes.after_minus_twice_before.low > 0.9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// A known answer: two lines that meet somewhere, however steep, up or down, with some noise.
        #[test]
        fn a_knee_is_found(at in 4.0..22.0f64, before in -1.0..1.0f64, bend in 2.0..6.0f64, up: bool, seed: u64) {
            let bend = if up { bend } else { -bend };
            let curve = noisy(0.3, seed, |x| before * x + bend * (x - at).max(0.0));
            let knee = of(&curve);
            prop_assert!(knee.is_shown, "{knee:?}");
            prop_assert!((knee.at.value - at).abs() < 1.5, "{at}: {knee:?}");
            prop_assert!(knee.at.high - knee.at.low < 4.0, "{at}: {knee:?}");
            prop_assert!((knee.slopes.before.value - before).abs() < 0.6, "{knee:?}");
            prop_assert!((knee.slopes.after.value - before - bend).abs() < 0.6, "{knee:?}");
        }

        /// The result does not depend on the units, nor on an added line.
        #[test]
        fn scales(k in 0.01..100.0f64, tilt in -5.0..5.0f64, seed: u64) {
            let curve = noisy(0.3, seed, |x| 2.0 * (x - 10.0).max(0.0));
            let rows = curve.rows().map(|row| row.iter().zip(X).map(|(y, x)| k * y + tilt * x).collect()).collect();
            let (one, other) = (of(&curve), of(&Curve::new(X.to_vec(), rows).unwrap()));
            prop_assert!((one.at.value - other.at.value).abs() < 1e-6);
            prop_assert_eq!(one.is_shown, other.is_shown);
        }
    }
}
