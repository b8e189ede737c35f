//! How often intervals contain the true value, by simulation: experiment V7 of the method.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::autocorrelation::dependence;
use super::interval::{log_mean_interval, mean_interval};
use super::samples::Samples;
use super::synthetic::Synthetic;

/// Counts of a coverage experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Series whose interval contained the true value.
    pub covered: u64,
    /// Series of runs with a warning: blocks are not independent, or this cannot be known.
    pub warned: u64,
    /// Series with at least one of the two: what the promise counts.
    pub covered_or_warned: u64,
    /// All series.
    pub runs: u64,
}

impl Coverage {
    /// Share of series whose interval contained the true value or that had a warning; 0 without runs.
    #[must_use]
    pub fn promised(&self) -> f64 {
        self.covered_or_warned as f64 / self.runs.max(1) as f64
    }
}

/// Draws `runs` runs of `series` series of `n` values each and computes 95 % intervals with the product's own
/// functions: [`log_mean_interval`] of the geometric mean for lognormal series, [`mean_interval`] for the others, and
/// [`dependence`] for a warning about the run. Counts are series. The same seed gives the same counts. A series without
/// an interval (n < 2) counts as not covered.
#[must_use]
pub fn simulate_coverage(
    kind: Synthetic,
    n: usize,
    series: usize,
    runs: usize,
    seed: u64,
) -> Coverage {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = Coverage::default();
    for _ in 0..runs {
        let all: Vec<Vec<f64>> = (0..series).map(|_| kind.draw(n, &mut rng)).collect();
        let warned = dependence(&all).is_some();
        for x in all {
            let covered = is_covered(kind, x);
            counts.runs += 1;
            counts.covered += u64::from(covered);
            counts.warned += u64::from(warned);
            counts.covered_or_warned += u64::from(covered || warned);
        }
    }
    counts
}

fn is_covered(kind: Synthetic, x: Vec<f64>) -> bool {
    let interval = Samples::try_from(x).ok().and_then(|x| match kind {
        Synthetic::LogNormal { .. } => log_mean_interval(&x, 0.95),
        Synthetic::Normal { .. } | Synthetic::Autoregressive { .. } => mean_interval(&x, 0.95),
    });
    let truth = match kind {
        Synthetic::LogNormal { median, .. } => median,
        Synthetic::Normal { mean, .. } | Synthetic::Autoregressive { mean, .. } => mean,
    };
    interval.is_some_and(|e| e.low <= truth && truth <= e.high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio_of_sums;

    #[test]
    fn independent_samples_are_covered() {
        for n in [3, 8, 10, 40] {
            for kind in [
                Synthetic::Normal {
                    mean: 100.0,
                    sd: 10.0,
                },
                Synthetic::LogNormal {
                    median: 100.0,
                    sigma: 0.5,
                },
            ] {
                let c = simulate_coverage(kind, n, 1, 1500, 42);
                assert!(c.covered * 100 >= 93 * c.runs, "{kind:?} n {n}: {c:?}");
                assert!(c.covered * 100 <= 97 * c.runs, "{kind:?} n {n}: {c:?}");
            }
        }
    }

    #[test]
    fn correlated_samples_are_covered_or_warned_about() {
        for (n, series) in [(8, 1), (8, 8), (10, 8), (20, 1), (40, 1)] {
            for rho in [0.0, 0.2, 0.3, 0.5, 0.9] {
                let kind = Synthetic::Autoregressive {
                    mean: 100.0,
                    sd: 10.0,
                    rho,
                };
                let c = simulate_coverage(kind, n, series, 2000 / series, 42);
                assert!(c.promised() >= 0.93, "n {n} of {series} rho {rho}: {c:?}");
            }
        }
    }

    #[test]
    fn the_warning_is_not_always_on() {
        let kind = Synthetic::Normal {
            mean: 100.0,
            sd: 10.0,
        };
        for (n, series, share) in [
            (8, 8, 0.16),
            (10, 60, 0.01),
            (20, 1, 0.25),
            (40, 1, 0.14),
            (80, 1, 0.08),
        ] {
            let c = simulate_coverage(kind, n, series, 1000, 42);
            assert!((c.warned as f64) < share * c.runs as f64, "n {n}: {c:?}");
        }
    }

    #[test]
    fn same_seed_same_counts() {
        let kind = Synthetic::Autoregressive {
            mean: 1.0,
            sd: 1.0,
            rho: 0.5,
        };
        assert_eq!(
            simulate_coverage(kind, 10, 1, 50, 1),
            simulate_coverage(kind, 10, 1, 50, 1)
        );
        assert_eq!(simulate_coverage(kind, 0, 1, 2, 1).covered, 0);
    }

    /// Service demand of blocks that did different amounts of work, true demand 2.
    #[test]
    fn ratio_of_sums_covers() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let covered = (0..1500)
            .filter(|_| {
                let den = Synthetic::LogNormal {
                    median: 1e6,
                    sigma: 0.1,
                }
                .draw(10, &mut rng);
                let noise = Synthetic::Normal { mean: 2.0, sd: 0.1 }.draw(10, &mut rng);
                let num: Vec<f64> = den.iter().zip(&noise).map(|(d, e)| d * e).collect();
                let e = ratio_of_sums(&num, &den, 0.95).expect("positive sums");
                e.low <= 2.0 && 2.0 <= e.high
            })
            .count();
        assert!((1395..=1455).contains(&covered), "{covered} of 1500");
    }
}
