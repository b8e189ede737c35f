//! How the methods other than hopyard judge two lists of figures.

use hopyard::stats::{Estimate, Samples, Verdict, mean_interval};
use serde::Serialize;

/// Confidence of every interval, and of the test: benchstat's alpha is 0.05.
const CONFIDENCE: f64 = 0.95;
/// netperf: the interval of a mean must not be wider than ± this share of it.
const WIDTH: f64 = 0.025;
/// A ratio known to be within ± this of 1 is equivalent, as for `hopyard run`.
const MARGIN: f64 = 0.02;

/// A method's answer for a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    /// The ratio to the base; none if the method gives none.
    pub(super) ratio: Option<Ratio>,
}

/// A method's answers for every cell of a table but the base.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) all: Vec<Answer>,
    /// What was not measured, and why; there is no decision about it.
    pub(super) failed: Option<String>,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, serde::Deserialize)]
pub(super) struct Ratio {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Answer {
    pub(super) fn none() -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            ratio: None,
        }
    }
}

/// As benchstat: different if the Mann-Whitney U test rejects equality at 0.05, never equivalent. benchstat prints no
/// interval of the ratio. The one here belongs to its test: all ratios that the test would not reject (Hodges and
/// Lehmann 1963).
pub(super) fn benchstat(base: &[f64], other: &[f64]) -> Answer {
    let ratios_of = |a: &f64| other.iter().map(move |b| b / a).collect::<Vec<_>>();
    let mut ratios: Vec<f64> = base.iter().flat_map(ratios_of).collect();
    ratios.sort_by(f64::total_cmp);
    let rejected = rejected(base.len(), other.len());
    // Too few figures for the test to reject anything.
    if rejected == 0 {
        return Answer::none();
    }
    let last = ratios.len() - 1;
    let ratio = Ratio {
        value: ratios[last / 2].midpoint(ratios[last.div_ceil(2)]),
        low: ratios[rejected - 1],
        high: ratios[last + 1 - rejected],
    };
    // U counts the pairs in which the base is greater, ties by half; p is at least 0.05 exactly if the interval
    // contains 1.
    let is_different = ratio.high < 1.0 || ratio.low > 1.0;
    Answer {
        verdict: if is_different {
            Verdict::Different
        } else {
            Verdict::Inconclusive
        },
        ratio: Some(ratio),
    }
}

/// The number of values of U, from 0 on, that the two-sided test rejects: those with 2 P(U ≤ u) below 0.05.
fn rejected(n: usize, m: usize) -> usize {
    let counts = orders(n, m);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    let is_rejected = |count: &&f64| {
        below += **count;
        2.0 * below / all < 1.0 - CONFIDENCE
    };
    counts.iter().take_while(is_rejected).count()
}

/// In how many orders of n and m figures each value of U occurs (Mann and Whitney 1947): the coefficients of the
/// product of (1 − qᵐ⁺ⁱ)/(1 − qⁱ) for i from 1 to n, exact up to twenty figures each.
fn orders(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n * m + 1];
    counts[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..counts.len()).rev() {
            counts[u] -= counts[u - m - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    counts
}

/// Whether the mean is as precise as `netperf -I 95,5` requires.
pub(super) fn is_known(figures: &[f64]) -> bool {
    interval(figures).is_some_and(|e| (e.high - e.low) / 2.0 <= WIDTH * e.value)
}

/// As users of netperf's intervals do: both means must be precise enough. They differ if their intervals do not
/// overlap, and are equivalent if no ratio of values in them is outside the margin.
pub(super) fn netperf(base: &[f64], other: &[f64]) -> Answer {
    let (Some(a), Some(b)) = (interval(base), interval(other)) else {
        return Answer::none();
    };
    // A few wild figures: the mean may be anything above 0.
    if a.low <= 0.0 || b.low <= 0.0 {
        return Answer::none();
    }
    let ratio = Ratio {
        value: b.value / a.value,
        low: b.low / a.high,
        high: b.high / a.low,
    };
    let verdict = if !is_known(base) || !is_known(other) {
        Verdict::Inconclusive
    } else if ratio.high < 1.0 || ratio.low > 1.0 {
        Verdict::Different
    } else if ratio.low >= 1.0 - MARGIN && ratio.high <= 1.0 + MARGIN {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    };
    Answer {
        verdict,
        ratio: Some(ratio),
    }
}

fn interval(figures: &[f64]) -> Option<Estimate> {
    mean_interval(&Samples::new(figures).ok()?, CONFIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of U at 0.05, two-sided, from published tables: none for 3 and 3, 0 for 4 and 4, 2 for 5 and 5,
    /// 5 for 6 and 6, 23 for 10 and 10, 127 for 20 and 20. All values up to the critical one are rejected.
    #[test]
    fn published_critical_values() {
        for (n, m, values) in [
            (3, 3, 0),
            (4, 4, 1),
            (5, 5, 3),
            (6, 6, 6),
            (5, 8, 7),
            (10, 10, 24),
            (20, 20, 128),
        ] {
            assert_eq!(rejected(n, m), values, "{n} and {m}");
        }
    }

    /// The 6 orders of two and two figures.
    #[test]
    fn orders_of_few() {
        assert_eq!(orders(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(orders(0, 3), [1.0]);
        let all: f64 = orders(20, 20).iter().sum();
        assert_eq!(all, 137_846_528_820.0);
    }

    #[test]
    fn benchstat_tells_lists_that_are_apart() {
        let base = [100.0, 101.0, 102.0, 103.0, 104.0];
        let slower = base.map(|x| x * 0.9);
        let answer = benchstat(&base, &slower);
        assert_eq!(answer.verdict, Verdict::Different);
        let ratio = answer.ratio.unwrap();
        assert!(ratio.low < 0.9 && 0.9 < ratio.high && ratio.high < 1.0);
        assert!((ratio.value - 0.9).abs() < 0.005, "{ratio:?}");
    }

    #[test]
    fn benchstat_never_calls_anything_equivalent() {
        let base = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0];
        let alike = base.map(|x| x + 0.01);
        let answer = benchstat(&base, &alike);
        assert_eq!(answer.verdict, Verdict::Inconclusive);
        let ratio = answer.ratio.unwrap();
        assert!(ratio.low < 1.0 && 1.0 < ratio.high, "{ratio:?}");
    }

    #[test]
    fn three_figures_each_decide_nothing() {
        let answer = benchstat(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0]);
        assert_eq!(answer, Answer::none());
        assert_eq!(benchstat(&[], &[1.0]), Answer::none());
    }

    #[test]
    fn ties_are_no_failure() {
        let answer = benchstat(&[5.0; 6], &[5.0; 6]);
        assert_eq!(answer.verdict, Verdict::Inconclusive);
    }

    /// The interval covers as often as it states: five normal figures each, 4 orders of 252 excluded on either side.
    #[test]
    fn the_interval_of_the_test_covers() {
        use hopyard::stats::standard_normal;
        use rand::SeedableRng;
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let mut draw = || -> Vec<f64> {
            let normal = |_| 100.0 + 5.0 * standard_normal(&mut random);
            (0..5).map(normal).collect()
        };
        let covered = (0..2000)
            .filter(|_| {
                let ratio = benchstat(&draw(), &draw()).ratio.unwrap();
                ratio.low <= 1.0 && 1.0 <= ratio.high
            })
            .count();
        assert!((1900..=1980).contains(&covered), "{covered}");
    }

    #[test]
    fn netperf_wants_both_means_known() {
        let (good, wild) = ([100.0, 100.5, 101.0], [20.0, 100.0, 180.0]);
        assert!(is_known(&good) && !is_known(&wild));
        assert!(!is_known(&[100.0]));
        assert_eq!(netperf(&good, &wild), Answer::none());
        let loose = [90.0, 100.0, 110.0];
        assert_eq!(netperf(&good, &loose).verdict, Verdict::Inconclusive);
        let slower = good.map(|x| x * 0.9);
        let answer = netperf(&good, &slower);
        assert_eq!(answer.verdict, Verdict::Different);
        assert!(answer.ratio.unwrap().high < 1.0);
    }

    #[test]
    fn netperf_calls_equivalent_what_is_known_well() {
        let base = [100.0, 100.1, 100.2, 100.1];
        let other = base.map(|x| x * 1.001);
        assert_eq!(netperf(&base, &other).verdict, Verdict::Equivalent);
        let wider = [98.0, 100.0, 102.0, 100.0];
        assert_eq!(netperf(&base, &wider).verdict, Verdict::Inconclusive);
        assert_eq!(netperf(&base, &[1.0]), Answer::none());
    }
}
