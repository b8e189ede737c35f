//! Runs as the unit of replication: a figure for each run, compared between two sides.
//!
//! Two runs of the same thing, hours apart, differ by more than their blocks show: neighbouring blocks are alike, and
//! what lasts as long as a run (a boot, a neighbour on the host) does not show in them. So the scatter between repeated
//! runs counts. A figure of a run already contains the scatter of its blocks.

use super::estimate::Estimate;
use super::moments::{logs, mean, sd};
use super::power::{fewest, reach};
use super::verdict::{Comparison, POWER};
use super::welch::compare_unpaired;

/// From this many runs, each side has a scatter of its own.
pub const RUNS_FOR_A_SCATTER: usize = 3;
/// Runs beyond the first of each group that a verdict needs. Take a machine that is in one of two states for a whole
/// run, each equally often. Both groups look uniform and different from each other with a probability of 2^-(this + 1):
/// 3 %.
pub(crate) const REPEATS_FOR_A_VERDICT: usize = 4;
/// An upper limit: nobody plans more runs.
const MOST_RUNS: u32 = 1000;

/// Two sides compared by their runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunsCompared {
    /// a/b; `ratio.n` is the number of runs of the smaller side.
    pub comparison: Comparison,
    /// Standard deviation of ln(figure) between runs of one thing; 0.01 is about 1 %.
    pub scatter_log: f64,
}

/// Compares the figures of runs of `a` with those of `b`, on the log scale. `repeats` are groups of figures of runs of
/// one thing each; only their scatter is used.
///
/// If each side has [`RUNS_FOR_A_SCATTER`] runs, this is Welch's test, whatever other groups are given. Otherwise the
/// scatter is assumed equal in all groups and pooled. `None` if there are fewer than [`REPEATS_FOR_A_VERDICT`] runs to
/// estimate it from, or a figure is not above 0.
#[must_use]
pub fn compare_runs(
    a: &[f64],
    b: &[f64],
    repeats: &[Vec<f64>],
    confidence: f64,
) -> Option<RunsCompared> {
    let groups = [a, b]
        .into_iter()
        .chain(repeats.iter().map(Vec::as_slice))
        .map(logs)
        .collect::<Option<Vec<_>>>()?;
    let known: usize = groups.iter().map(|group| group.len() - 1).sum();
    if known < REPEATS_FOR_A_VERDICT {
        return None;
    }
    let squares =
        |group: &Vec<f64>| sd(group).map_or(0.0, |sd| sd.powi(2) * (group.len() as f64 - 1.0));
    let known = known as f64;
    let scatter_log = (groups.iter().map(squares).sum::<f64>() / known).sqrt();
    let smaller = a.len().min(b.len());
    let comparison = if smaller >= RUNS_FOR_A_SCATTER {
        compare_unpaired(a, b, confidence)?
    } else {
        let se = scatter_log * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt();
        let centre = mean(&groups[0])? - mean(&groups[1])?;
        Comparison::student(centre, se, known, confidence, smaller)?
    };
    Some(RunsCompared {
        comparison,
        scatter_log,
    })
}

/// The ratio of two sides whose scatter between runs is unknown, from the estimates of their runs. The interval
/// contains only the scatter within these runs. `None` if an estimate is not above 0 or has fewer than 2 samples.
#[must_use]
pub fn ratio_within_runs(a: &[Estimate], b: &[Estimate], confidence: f64) -> Option<Estimate> {
    let (a, b) = (Within::of(a)?, Within::of(b)?);
    let variance = a.variance + b.variance;
    let df = if variance > 0.0 {
        variance.powi(2) / (a.over_df + b.over_df)
    } else {
        a.samples.min(b.samples) as f64 - 1.0
    };
    let se = variance.sqrt();
    let samples = a.samples.min(b.samples);
    let ratio = Comparison::student(a.centre - b.centre, se, df, confidence, samples)?;
    Some(ratio.ratio)
}

/// The standard error of ln(estimate) within its run.
#[must_use]
pub fn se_log_within(estimate: &Estimate) -> Option<f64> {
    let Estimate {
        value, low, high, ..
    } = *estimate;
    // An interval made on the log scale, as those of ratios are, is as wide above as below there alone.
    let by_logs = low > 0.0 && (low * high / value.powi(2) - 1.0).abs() < 1e-6;
    let se = if by_logs {
        let of_log = Estimate {
            value: value.ln(),
            low: low.ln(),
            high: high.ln(),
            ..estimate.clone()
        };
        of_log.standard_error()?
    } else {
        estimate.standard_error()? / value
    };
    (se.is_finite() && se >= 0.0).then_some(se)
}

/// The figure of a side from its runs, each with its own interval.
struct Within {
    /// ln of the geometric mean.
    centre: f64,
    variance: f64,
    /// The sum of squared variances over their degrees of freedom (Satterthwaite 1946).
    over_df: f64,
    /// Samples of the smallest run.
    samples: usize,
}

impl Within {
    fn of(runs: &[Estimate]) -> Option<Self> {
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let count = runs.len() as f64;
        let (mut variance, mut over_df) = (0.0, 0.0);
        for run in runs {
            let own = (se_log_within(run)? / count).powi(2);
            variance += own;
            over_df += own.powi(2) / (run.n as f64 - 1.0);
        }
        Some(Self {
            centre: mean(&logs(&values)?)?,
            variance,
            over_df,
            samples: runs.iter().map(|run| run.n).min()?,
        })
    }
}

/// How many runs each side needs to find a difference of this size four times out of five, if runs of one thing scatter
/// by `scatter_log`: at least [`RUNS_FOR_A_SCATTER`]. `None` if 1000 are too few, or the arguments are invalid.
#[must_use]
pub fn runs_needed(scatter_log: f64, difference: f64, confidence: f64) -> Option<u32> {
    fewest(RUNS_FOR_A_SCATTER as u32..=MOST_RUNS, |runs| {
        let runs = f64::from(runs);
        let reach = reach(2.0 * runs - 2.0, confidence, POWER)?;
        Some(reach * scatter_log * (2.0 / runs).sqrt() <= difference.ln_1p())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Samples, log_mean_interval, standard_normal};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn figures(runs: usize, scatter: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        (0..runs)
            .map(|_| 100.0 * (scatter * standard_normal(rng)).exp())
            .collect()
    }

    /// By hand, on the log scale: a = 1, 2, b = 3, 5, 7 and a third group of the scatter of a have a pooled variance of 9/4 at four
    /// degrees of freedom, so t = 3.5/(1.5·√(1/2 + 1/3)) = 2.5560, and p = 0.0629 by the closed form for four.
    #[test]
    fn pooled_where_a_side_borrows() {
        let (a, b) = ([1.0_f64, 2.0, 3.0], [3.0_f64, 5.0, 7.0]);
        let (a, b) = (a.map(f64::exp), b.map(f64::exp));
        let c = compare_runs(&b, &a[..2], &[a[1..].to_vec()], 0.95).unwrap();
        assert_eq!(c.comparison.df, 4.0);
        assert!((c.scatter_log - 1.5).abs() < 1e-12);
        assert!((c.comparison.ratio.value.ln() / c.comparison.se_log - 2.5560).abs() < 1e-4);
        assert!((c.comparison.p - 0.0629).abs() < 1e-4, "{}", c.comparison.p);
        // Three on each side: Welch's test, which has fewer degrees of freedom if scatters differ. Others' scatter does not make it less.
        for repeats in [vec![], vec![vec![1.0; 20]]] {
            let c = compare_runs(&b, &a, &repeats, 0.95).unwrap();
            assert!(
                (c.comparison.df - 2.9412).abs() < 1e-4,
                "{}",
                c.comparison.df
            );
            assert_eq!(c.comparison.ratio.n, 3);
        }
    }

    #[test]
    fn too_few_repeats_have_no_answer() {
        let enough = |a, b, repeats: &[usize]| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let repeats: Vec<_> = repeats.iter().map(|n| figures(*n, 0.1, &mut rng)).collect();
            let (a, b) = (figures(a, 0.1, &mut rng), figures(b, 0.1, &mut rng));
            compare_runs(&a, &b, &repeats, 0.95).is_some()
        };
        assert!(!enough(1, 1, &[]) && !enough(2, 3, &[]) && !enough(1, 4, &[]));
        assert!(!enough(1, 1, &[4]) && !enough(0, 5, &[]));
        assert!(enough(3, 3, &[]) && enough(1, 5, &[]) && enough(2, 4, &[]));
        assert!(enough(1, 1, &[5]) && enough(1, 1, &[3, 3]));
        assert_eq!(compare_runs(&[1.0, 0.0, 1.0], &[1.0; 3], &[], 0.95), None);
    }

    /// Whatever the scatter between runs is, and wherever it is estimated from.
    #[test]
    fn runs_of_one_thing_rarely_alarm() {
        for (a, b, repeats) in [(3, 3, 0), (5, 5, 0), (1, 5, 0), (1, 1, 6), (2, 3, 4)] {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let alarms = (0..2000)
                .filter(|_| {
                    let repeats = (repeats > 0).then(|| figures(repeats, 0.1, &mut rng));
                    let repeats: Vec<_> = repeats.into_iter().collect();
                    let (a, b) = (figures(a, 0.1, &mut rng), figures(b, 0.1, &mut rng));
                    compare_runs(&a, &b, &repeats, 0.95).unwrap().comparison.p < 0.05
                })
                .count();
            // Welch's test of three runs a side is slightly conservative: 3.4 %.
            assert!(
                (50..=130).contains(&alarms),
                "{a}, {b}, {repeats}: {alarms} of 2000"
            );
        }
    }

    /// The number of runs that it states finds the difference as often as it states.
    #[test]
    fn enough_runs_are_enough() {
        let runs = runs_needed(0.04, 0.05, 0.95).unwrap();
        assert!((10..=13).contains(&runs), "{runs}");
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let found = (0..500)
            .filter(|_| {
                let [a, b] = [1.0, 1.05].map(|speed| {
                    let mut own = figures(runs as usize, 0.04, &mut rng);
                    own.iter_mut().for_each(|v| *v *= speed);
                    own
                });
                compare_runs(&b, &a, &[], 0.95).unwrap().comparison.p < 0.05
            })
            .count();
        assert!((380..=470).contains(&found), "{found} of 500");
        assert_eq!(runs_needed(0.0, 0.05, 0.95), Some(3));
        assert_eq!(runs_needed(0.5, 0.001, 0.95), None);
        assert_eq!(runs_needed(0.1, 0.0, 0.95), None);
        assert_eq!(runs_needed(f64::NAN, 0.05, 0.95), None);
    }

    /// For one run on each side it is Welch's interval of their blocks.
    #[test]
    fn within_two_runs_it_is_the_interval_of_their_blocks() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (a, b) = (figures(10, 0.01, &mut rng), figures(12, 0.01, &mut rng));
        let estimate = |values: &[f64]| log_mean_interval(&Samples::new(values).unwrap(), 0.95);
        let ratio = ratio_within_runs(&[estimate(&b).unwrap()], &[estimate(&a).unwrap()], 0.95);
        let (ratio, welch) = (
            ratio.unwrap(),
            compare_unpaired(&b, &a, 0.95).unwrap().ratio,
        );
        assert_eq!(ratio.n, 10);
        for (own, theirs) in [
            (ratio.value, welch.value),
            (ratio.low, welch.low),
            (ratio.high, welch.high),
        ] {
            assert!((own / theirs - 1.0).abs() < 1e-4, "{own} {theirs}");
        }
    }

    #[test]
    fn garbage_has_no_ratio() {
        let estimate = |value: f64| Estimate {
            value,
            low: value - 0.1,
            high: value + 0.1,
            confidence: 0.95,
            n: 8,
        };
        assert!(ratio_within_runs(&[estimate(1.0)], &[estimate(2.0)], 0.95).is_some());
        assert_eq!(ratio_within_runs(&[], &[estimate(1.0)], 0.95), None);
        assert_eq!(
            ratio_within_runs(&[estimate(0.0)], &[estimate(1.0)], 0.95),
            None
        );
        assert_eq!(
            ratio_within_runs(&[estimate(1.0)], &[estimate(1.0)], 1.0),
            None
        );
    }
}
