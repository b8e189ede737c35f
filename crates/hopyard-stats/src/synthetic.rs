//! Series with a known answer, to test the statistics with.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A kind of synthetic series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Synthetic {
    /// Independent, normal.
    Normal {
        /// True mean.
        mean: f64,
        /// True standard deviation.
        sd: f64,
    },
    /// Independent, lognormal: exp of a normal.
    LogNormal {
        /// True median, which is also the true geometric mean.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// First-order autoregressive, normal and stationary: each value depends on the previous one.
    Autoregressive {
        /// True mean.
        mean: f64,
        /// True standard deviation of a single value.
        sd: f64,
        /// Correlation of neighbours, between −1 and 1.
        rho: f64,
    },
}

impl Synthetic {
    /// `n` values in order.
    pub fn draw(&self, n: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        match *self {
            Self::Normal { mean, sd } => (0..n).map(|_| mean + sd * normal(rng)).collect(),
            Self::LogNormal { median, sigma } => (0..n)
                .map(|_| median * (sigma * normal(rng)).exp())
                .collect(),
            Self::Autoregressive { mean, sd, rho } => {
                let fresh = (1.0 - rho * rho).max(0.0).sqrt();
                let mut state = normal(rng);
                let mut step = || {
                    let now = state;
                    state = rho * state + fresh * normal(rng);
                    mean + sd * now
                };
                (0..n).map(|_| step()).collect()
            }
        }
    }
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // random() is in [0, 1), but the logarithm needs (0, 1].
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autocorrelation::lag1_autocorrelation;
    use crate::{geometric_mean, mean, sd};
    use rand::SeedableRng;

    #[test]
    fn series_are_what_they_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let x = Synthetic::Normal {
            mean: 100.0,
            sd: 10.0,
        }
        .draw(20_000, &mut rng);
        assert!((mean(&x).unwrap() - 100.0).abs() < 0.3 && (sd(&x).unwrap() - 10.0).abs() < 0.2);
        let x = Synthetic::LogNormal {
            median: 5.0,
            sigma: 0.3,
        }
        .draw(20_000, &mut rng);
        assert!((geometric_mean(&x).unwrap() - 5.0).abs() < 0.05);
        let x = Synthetic::Autoregressive {
            mean: 0.0,
            sd: 2.0,
            rho: 0.6,
        }
        .draw(20_000, &mut rng);
        assert!((sd(&x).unwrap() - 2.0).abs() < 0.1);
        assert!((lag1_autocorrelation(&x).unwrap() - 0.6).abs() < 0.03);
    }
}
