//! The point from which a curve is at its limit.

use super::curve::{Curve, LEAST, percentiles};

/// The first x at which a curve has reached a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    /// The largest x below `first` at which it had not; `None` if it had from the start.
    pub last_before: Option<f64>,
    /// The first x at which it has; `None` if it never does.
    pub first: Option<f64>,
    /// The interval of `first` by resampling blocks; `None` with too few of them.
    pub interval: Option<ReachedInterval>,
}

/// The interval of the first x that has reached the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReachedInterval {
    /// Lower end; `None` if it is beyond the last x.
    pub low: Option<f64>,
    /// Upper end; `None` if it is beyond the last x.
    pub high: Option<f64>,
}

/// The first x at which the mean of all blocks is at least `limit`. It may fall below again later.
#[must_use]
pub fn reached(curve: &Curve, limit: f64, confidence: f64, seed: u64) -> Reached {
    let x = curve.x();
    let place = |mean: &[f64]| mean.iter().position(|value| *value >= limit);
    let first = place(&curve.mean());
    // "Beyond the last x" sorts after every x.
    let beyond = |place: Option<usize>| place.map_or(f64::INFINITY, |i| x[i]);
    let known = |end: f64| end.is_finite().then_some(end);
    let interval = (curve.blocks() >= LEAST).then(|| {
        let drawn = curve.resampled(seed, |mean| beyond(place(mean)));
        let (low, high) = percentiles(drawn, curve.blocks(), confidence)?;
        Some(ReachedInterval {
            low: known(low),
            high: known(high),
        })
    });
    Reached {
        last_before: first.unwrap_or(x.len()).checked_sub(1).map(|i| x[i]),
        first: first.map(|i| x[i]),
        interval: interval.flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::normal;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const X: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

    fn noisy(blocks: usize, sd: f64, seed: u64, of: impl Fn(f64) -> f64) -> Reached {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || X.iter().map(|x| of(*x) + sd * normal(&mut rng)).collect();
        let rows = (0..blocks).map(|_| row()).collect();
        reached(&Curve::new(X.to_vec(), rows).unwrap(), 0.99, 0.95, seed)
    }

    #[test]
    fn bracket_start_and_never() {
        let at = noisy(8, 0.0005, 1, |x| (0.06 * x).min(1.0));
        assert_eq!((at.last_before, at.first), (Some(16.0), Some(32.0)));
        let interval = at.interval.unwrap();
        assert_eq!((interval.low, interval.high), (Some(32.0), Some(32.0)));
        let from_start = noisy(8, 0.0005, 1, |_| 0.999);
        assert_eq!(
            (from_start.last_before, from_start.first),
            (None, Some(1.0))
        );
        let never = noisy(8, 0.0005, 1, |_| 0.6);
        assert_eq!((never.last_before, never.first), (Some(32.0), None));
        assert_eq!(never.interval.unwrap().low, None);
        assert_eq!(noisy(5, 0.0, 1, |_| 1.0).interval, None);
    }

    /// Near the limit noise decides, and the interval is wide.
    #[test]
    fn near_the_limit_the_interval_is_wide() {
        let near = noisy(8, 0.01, 3, |_| 0.988);
        let interval = near.interval.unwrap();
        assert!(
            interval.low < interval.high || interval.high.is_none(),
            "{near:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// A known answer: a curve that rises in proportion until it is full. The bracket contains that x.
        #[test]
        fn a_ramp_is_full_where_it_is(full_at in 1.2..31.0f64, seed: u64) {
            let at = noisy(8, 1e-6, seed, |x| if x >= full_at { 1.0 } else { 0.9 * x / full_at });
            prop_assert!(at.last_before.unwrap() < full_at && full_at <= at.first.unwrap(), "{at:?}");
        }
    }
}
