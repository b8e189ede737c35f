//! A quantity as a function of a count, block by block.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::distribution::{normal_cdf, t_quantile};
use super::estimate::{Estimate, alpha};
use super::moments::logs;

/// Fewest blocks for resampling.
pub(super) const LEAST: usize = 6;

/// Resamples of an interval.
const RESAMPLES: usize = 1000;

/// Values at rising x, a row for each block; every block has a value at every x.
///
/// The block is the replicate: resampling draws whole rows, so that the cells of a block stay together.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    x: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

impl Curve {
    /// `None` unless x is finite and rising, there is a block, and each has a finite value at every x.
    #[must_use]
    pub fn new(x: Vec<f64>, rows: Vec<Vec<f64>>) -> Option<Self> {
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let rises = x.windows(2).all(|pair| pair[0] < pair[1]);
        let whole = |row: &Vec<f64>| row.len() == x.len() && finite(row);
        let fits =
            !x.is_empty() && finite(&x) && rises && !rows.is_empty() && rows.iter().all(whole);
        fits.then_some(Self { x, rows })
    }

    /// The values of the count.
    #[must_use]
    pub fn x(&self) -> &[f64] {
        &self.x
    }

    #[must_use]
    pub fn blocks(&self) -> usize {
        self.rows.len()
    }

    /// Each block's values.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// The values of all blocks at one x, in their order.
    #[must_use]
    pub fn at(&self, index: usize) -> Vec<f64> {
        self.rows
            .iter()
            .filter_map(|row| row.get(index).copied())
            .collect()
    }

    /// The mean over blocks.
    #[must_use]
    pub fn mean(&self) -> Vec<f64> {
        mean_of(self.rows())
    }

    /// The curve of the logarithms of its values; `None` if a value is not above 0.
    #[must_use]
    pub fn ln(&self) -> Option<Self> {
        let rows = self.rows().map(logs).collect::<Option<_>>()?;
        Some(Self {
            x: self.x.clone(),
            rows,
        })
    }

    /// [`Self::ln`] against the logarithms of x.
    pub(super) fn log_log(&self) -> Option<Self> {
        Some(Self {
            x: logs(&self.x)?,
            ..self.ln()?
        })
    }

    /// A figure of the mean curve for each of many resamples of whole blocks, drawn with ChaCha8 from `seed`.
    pub(super) fn resampled<T>(&self, seed: u64, mut figure: impl FnMut(&[f64]) -> T) -> Vec<T> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let n = self.rows.len();
        let mut draw = || mean_of((0..n).map(|_| &*self.rows[rng.random_range(0..n)]));
        (0..RESAMPLES).map(|_| figure(&draw())).collect()
    }

    /// A figure of the mean curve with its interval by resampling blocks ([`percentiles`]). `None` with fewer than
    /// [`LEAST`] blocks, or if the figure is undefined, also for some resamples.
    pub(super) fn estimate(
        &self,
        confidence: f64,
        seed: u64,
        mut figure: impl FnMut(&[f64]) -> Option<f64>,
    ) -> Option<Estimate> {
        let value = figure(&self.mean())?;
        let drawn: Option<Vec<f64>> = self.resampled(seed, figure).into_iter().collect();
        let ends = percentiles(drawn?, self.blocks(), confidence)?;
        Estimate::bounded(value, ends, confidence, self.blocks())
    }
}

/// The mean of rows, value by value.
fn mean_of<'a>(rows: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    let mut count = 0.0;
    for row in rows {
        sum.resize(row.len(), 0.0);
        sum.iter_mut()
            .zip(row)
            .for_each(|(sum, value)| *sum += value);
        count += 1.0;
    }
    sum.iter().map(|sum| sum / count).collect()
}

/// The ends of an interval from the values of resamples: the expanded percentile interval (Hesterberg 2015, "What
/// teachers should know about the bootstrap"). Plain percentiles are too narrow for few blocks, like an interval with
/// the normal quantile and divisor n; this one widens them to where Student's t and n − 1 would put them. `None` with
/// fewer than [`LEAST`] blocks or too few values.
///
/// Percentiles rather than a studentised bootstrap (Efron and Tibshirani 1993, section 12.5): breakpoints and the first
/// N beyond a threshold take few values, for which a standard error means nothing.
pub(super) fn percentiles(
    mut drawn: Vec<f64>,
    blocks: usize,
    confidence: f64,
) -> Option<(f64, f64)> {
    let alpha = alpha(confidence)?;
    if blocks < LEAST || drawn.iter().any(|v| v.is_nan()) {
        return None;
    }
    let n = blocks as f64;
    let reach = (n / (n - 1.0)).sqrt() * t_quantile(1.0 - alpha / 2.0, n - 1.0)?;
    drawn.sort_by(f64::total_cmp);
    let k = (normal_cdf(-reach) * (drawn.len() + 1) as f64).floor() as usize;
    (k > 0).then(|| (drawn[k - 1], drawn[drawn.len() - k]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::normal;
    use proptest::prelude::*;

    #[test]
    fn garbage_is_no_curve() {
        let curve = |x: &[f64], rows: &[&[f64]]| {
            Curve::new(x.to_vec(), rows.iter().map(|row| row.to_vec()).collect())
        };
        assert!(curve(&[1.0, 2.0], &[&[5.0, 6.0]]).is_some());
        assert_eq!(curve(&[2.0, 1.0], &[&[5.0, 6.0]]), None);
        assert_eq!(curve(&[1.0, 1.0], &[&[5.0, 6.0]]), None);
        assert_eq!(curve(&[1.0, 2.0], &[&[5.0]]), None);
        assert_eq!(curve(&[1.0, 2.0], &[&[5.0, f64::NAN]]), None);
        assert_eq!(curve(&[1.0], &[]), None);
        assert_eq!(curve(&[], &[&[]]), None);
    }

    /// The mean of normal values: the interval covers it about as often as stated, while plain percentiles of 8 blocks
    /// cover some 90 %.
    #[test]
    fn intervals_cover() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let covered = (0..300)
            .filter(|seed| {
                let rows = (0..8).map(|_| vec![10.0 + normal(&mut rng)]).collect();
                let curve = Curve::new(vec![1.0], rows).unwrap();
                let e = curve.estimate(0.95, *seed, |mean| Some(mean[0])).unwrap();
                e.low <= 10.0 && 10.0 <= e.high
            })
            .count();
        assert!((276..=296).contains(&covered), "{covered} of 300");
    }

    #[test]
    fn few_blocks_have_no_interval() {
        let curve = Curve::new(vec![1.0], vec![vec![1.0]; 5]).unwrap();
        assert_eq!(curve.estimate(0.95, 1, |mean| Some(mean[0])), None);
        assert_eq!(curve.mean(), [1.0]);
        assert_eq!(curve.ln().unwrap().mean(), [0.0]);
        assert_eq!(Curve::new(vec![1.0], vec![vec![0.0]]).unwrap().ln(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn resampled_means_stay_within_the_blocks(rows in prop::collection::vec(prop::collection::vec(-1e3..1e3f64, 3), 1..9), seed: u64) {
            let curve = Curve::new(vec![1.0, 2.0, 3.0], rows).unwrap();
            for mean in curve.resampled(seed, <[f64]>::to_vec) {
                for (i, value) in mean.iter().enumerate() {
                    let all = curve.at(i);
                    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    prop_assert!(least - 1e-9 <= *value && *value <= most + 1e-9);
                }
            }
        }
    }
}
