//! Comparisons and the three verdicts.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::distribution::{t_quantile, t_two_sided};
use super::estimate::{Estimate, alpha};
use super::fdr::benjamini_hochberg;
use super::moments::{log_ratios, mean, sd};
use super::power::{detectable, detectable_noncentrality};

/// The power at which [`Judged::smallest_detectable`] is stated.
pub const POWER: f64 = 0.8;

/// Two groups of samples compared: paired within blocks ([`compare`]) or independent (`compare_unpaired`).
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
pub struct Comparison {
    /// a/b with its interval; `ratio.n` is the number of blocks; for independent groups, of the smaller one.
    pub ratio: Estimate,
    /// Two-sided p-value of the t test on ln(a/b), null hypothesis: the ratio is 1.
    pub p: f64,
    /// Standard error of ln(a/b); 0.01 is about 1 %.
    pub se_log: f64,
    /// Degrees of freedom of that test.
    pub df: f64,
}

impl Comparison {
    /// One group of `n` samples against a value that is known: from mean and standard deviation of their logarithms, as a query
    /// engine gives them. `None` with fewer than 2 samples, or a value not above 0.
    #[must_use]
    pub fn with_value(
        mean_log: f64,
        sd_log: f64,
        n: usize,
        value: f64,
        confidence: f64,
    ) -> Option<Self> {
        if n < 2 || value.is_nan() || value <= 0.0 {
            return None;
        }
        let se_log = sd_log / (n as f64).sqrt();
        Self::student(mean_log - value.ln(), se_log, n as f64 - 1.0, confidence, n)
    }

    /// From the mean of ln(a/b), its standard error and degrees of freedom. Without any spread p is 1
    /// if the ratio is 1, and 0 if it is not.
    pub(super) fn student(
        centre: f64,
        se_log: f64,
        df: f64,
        confidence: f64,
        n: usize,
    ) -> Option<Self> {
        let half = t_quantile(1.0 - alpha(confidence)? / 2.0, df)? * se_log;
        let ends = ((centre - half).exp(), (centre + half).exp());
        let p = if se_log > 0.0 {
            t_two_sided(centre / se_log, df)?
        } else {
            f64::from(u8::from(centre == 0.0))
        };
        Some(Self {
            ratio: Estimate::bounded(centre.exp(), ends, confidence, n)?,
            p,
            se_log,
            df,
        })
    }

    /// One-sided p-value of the same test, null hypothesis: the ratio is at most `bound`. A bound of 0 is always
    /// exceeded; a bound that is not a number, never.
    #[must_use]
    pub fn p_above(&self, bound: f64) -> f64 {
        self.p_beyond(self.ratio.value.ln() - bound.ln())
    }

    /// The same, null hypothesis: the ratio is at least `bound`.
    #[must_use]
    pub fn p_below(&self, bound: f64) -> f64 {
        self.p_beyond(bound.ln() - self.ratio.value.ln())
    }

    /// P(T > `distance`/se); 1 for a distance that is not a number.
    fn p_beyond(&self, distance: f64) -> f64 {
        let half = t_two_sided(distance / self.se_log, self.df).map(|p| p / 2.0);
        match half {
            Some(half) if distance > 0.0 => half,
            Some(half) => 1.0 - half,
            None => 1.0,
        }
    }
}

/// What a comparison shows.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The two differ.
    Different,
    /// The two are the same within the margin declared beforehand.
    Equivalent,
    /// Neither is shown.
    Inconclusive,
}

/// A comparison with its verdict.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
pub struct Judged {
    /// a/b with its interval.
    pub ratio: Estimate,
    /// The verdict.
    pub verdict: Verdict,
    /// The smallest |ratio − 1| this many blocks with this spread could have shown with 80 %
    /// power in a table of this size. Infinite, `null` in JSON, where they could show nothing.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub smallest_detectable: f64,
}

impl Judged {
    /// The smallest difference that could have been shown; `None` if there is none.
    #[must_use]
    pub fn detectable(&self) -> Option<f64> {
        Some(self.smallest_detectable).filter(|smallest| smallest.is_finite())
    }
}

/// JSON has no infinity; `serde_json` writes it as `null`.
fn null_is_infinite<'de, D: Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or(f64::INFINITY))
}

/// Compares `a` with `b`, measured in the same blocks. `None` as for [`super::paired_ratio`]: fewer than 2 blocks,
/// unequal lengths, or a value not above 0.
///
/// If all blocks have one and the same ratio, there is no spread to test against: p is then 1 if that ratio is 1, and 0
/// if it is not.
#[must_use]
pub fn compare(a: &[f64], b: &[f64], confidence: f64) -> Option<Comparison> {
    let logs = log_ratios(a, b)?;
    let n = logs.len() as f64;
    let se = sd(&logs)? / n.sqrt();
    Comparison::student(mean(&logs)?, se, n - 1.0, confidence, logs.len())
}

/// Judges all comparisons of one table together, in the table's order, on which the verdicts do not depend. With α = 1
/// − `confidence`:
///
/// - *equivalent*: both one-sided tests at α say that the ratio is inside 1/(1 + `margin`) to 1 + `margin`, that is,
///   the interval of confidence 1 − 2α is inside (Schuirmann 1987). The margin is the smallest difference that matters,
///   declared before measuring, so this is checked first: a difference that is significant but surely smaller than the
///   margin is *equivalent*. Each equivalence is judged alone at α; only differences are corrected over the table.
/// - *different*: rejected by Benjamini and Hochberg at rate α over all p-values of the table.
/// - *inconclusive*: neither.
///
/// `smallest_detectable` is stated at level α/m for m comparisons: a single difference among equals must pass that
/// level to survive Benjamini and Hochberg. It is computed from the observed spread, which may by chance be smaller
/// than the true one, with degrees of freedom rounded down to a whole number. A `confidence` that is not between 0 and
/// 1 makes everything inconclusive.
#[must_use]
pub fn judge(table: &[Comparison], margin: f64, confidence: f64) -> Vec<Judged> {
    let alpha = alpha(confidence);
    let p: Vec<f64> = table.iter().map(|c| c.p).collect();
    let rejected = benjamini_hochberg(&p, alpha.unwrap_or(-1.0));
    let table_confidence = 1.0 - alpha.unwrap_or(0.0) / table.len().max(1) as f64;
    let mut noncentralities = HashMap::new();
    table
        .iter()
        .zip(rejected)
        .map(|(c, rejected)| {
            let verdict = if alpha.is_some_and(|alpha| equivalent(c, margin, alpha)) {
                Verdict::Equivalent
            } else if rejected {
                Verdict::Different
            } else {
                Verdict::Inconclusive
            };
            let df = whole(c.df);
            let noncentrality = *noncentralities
                .entry(df.to_bits())
                .or_insert_with(|| detectable_noncentrality(df, table_confidence, POWER));
            let smallest_detectable = detectable(c.se_log, noncentrality);
            Judged {
                ratio: c.ratio.clone(),
                verdict,
                smallest_detectable,
            }
        })
        .collect()
}

/// Degrees of freedom rounded down, which makes the detectable difference larger rather than smaller. A table then has
/// few different ones, and each needs a search. Welch's are at least 1, apart from rounding.
pub(super) fn whole(df: f64) -> f64 {
    if df < 1.0 { df } else { (df + 1e-9).floor() }
}

/// Two one-sided tests at `alpha`, as the equivalent interval.
fn equivalent(c: &Comparison, margin: f64, alpha: f64) -> bool {
    let Some(t) = t_quantile(1.0 - alpha, c.df) else {
        return false;
    };
    let half = t.max(0.0) * c.se_log;
    // NaN from a comparison made by hand fails the test below.
    c.ratio.value.ln().abs() + half <= margin.ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn logs_to_pairs(d: &[f64]) -> (Vec<f64>, Vec<f64>) {
        (
            d.iter().map(|d| 1000.0 * d.exp()).collect(),
            vec![1000.0; d.len()],
        )
    }

    fn comparison(d: &[f64]) -> Comparison {
        let (a, b) = logs_to_pairs(d);
        compare(&a, &b, 0.95).unwrap()
    }

    fn verdict(d: &[f64]) -> Verdict {
        judge(&[comparison(d)], 0.02, 0.95)[0].verdict
    }

    const SPREAD: [f64; 10] = [-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5];

    fn around(centre: f64, scale: f64) -> Vec<f64> {
        SPREAD.iter().map(|s| centre + scale * s).collect()
    }

    /// Student's sleep data (1908): t = 4.0621 with 9 degrees of freedom, p = 0.002833.
    #[test]
    fn moments_of_the_logarithms_say_what_the_samples_do() {
        let a = [90.0, 105.0, 97.0, 110.0, 101.0];
        let logs: Vec<f64> = a.iter().map(|a: &f64| a.ln()).collect();
        let (mean, sd) = (mean(&logs).unwrap(), sd(&logs).unwrap());
        let of_moments = Comparison::with_value(mean, sd, 5, 95.0, 0.95).unwrap();
        let of_samples = compare(&a, &[95.0; 5], 0.95).unwrap();
        assert!((of_moments.ratio.low - of_samples.ratio.low).abs() < 1e-12);
        assert!((of_moments.p - of_samples.p).abs() < 1e-12);
        assert_eq!(Comparison::with_value(mean, sd, 1, 95.0, 0.95), None);
        assert_eq!(Comparison::with_value(mean, sd, 5, 0.0, 0.95), None);
    }

    #[test]
    fn student_sleep_p() {
        let c = comparison(&[1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]);
        assert!((c.p - 0.002_833).abs() < 1e-6, "{}", c.p);
        assert!((c.se_log * 10.0_f64.sqrt() - 1.229_995).abs() < 1e-6);
    }

    #[test]
    fn three_verdicts() {
        assert_eq!(verdict(&around(0.05, 0.01)), Verdict::Different);
        assert_eq!(verdict(&around(0.002, 0.01)), Verdict::Equivalent);
        assert_eq!(verdict(&around(0.02, 0.05)), Verdict::Inconclusive);
        // Significant, but surely below the margin, which was declared first.
        let small = around(0.01, 0.002);
        assert!(comparison(&small).p < 1e-4);
        assert_eq!(verdict(&small), Verdict::Equivalent);
    }

    /// Schuirmann (1987): the rule on the 1 − 2α interval is the pair of one-sided t tests.
    #[test]
    fn interval_rule_is_two_one_sided_tests() {
        for step in 0..60 {
            let c = comparison(&around(f64::from(step) * 0.0005, 0.012));
            let below = (0.02_f64.ln_1p() - c.ratio.value.ln()) / c.se_log;
            let above = (c.ratio.value.ln() + 0.02_f64.ln_1p()) / c.se_log;
            let both = [below, above]
                .iter()
                .all(|t| *t > 0.0 && t_two_sided(*t, 9.0).unwrap() / 2.0 <= 0.05);
            assert_eq!(equivalent(&c, 0.02, 0.05), both, "step {step}");
        }
    }

    /// A p-value of 0.03 is a difference when alone, but not among twenty equals.
    #[test]
    fn the_whole_table_counts() {
        let mut c = comparison(&around(0.03, 0.04));
        c.p = 0.03;
        assert_eq!(
            judge(std::slice::from_ref(&c), 0.02, 0.95)[0].verdict,
            Verdict::Different
        );
        let mut table = vec![c];
        table.extend((0..19).map(|_| comparison(&around(0.0, 0.04))));
        let judged = judge(&table, 0.02, 0.95);
        assert_eq!(judged[0].verdict, Verdict::Inconclusive);
        let alone = judge(&table[..1], 0.02, 0.95)[0].smallest_detectable;
        assert!(judged[0].smallest_detectable > alone);
    }

    /// A two-sided p-value is twice the one-sided one, and at the ends of a 95 % interval that is 2.5 %.
    #[test]
    fn one_sided_tests() {
        let c = comparison(&around(0.05, 0.01));
        assert!((2.0 * c.p_above(1.0) - c.p).abs() < 1e-12);
        assert!((c.p_above(c.ratio.low) - 0.025).abs() < 1e-6);
        assert!((c.p_below(c.ratio.high) - 0.025).abs() < 1e-6);
        assert!((c.p_above(1.02) + c.p_below(1.02) - 1.0).abs() < 1e-12);
        let exact = compare(&[2.0; 8], &[1.0; 8], 0.95).unwrap();
        assert_eq!((exact.p_above(1.9), exact.p_above(2.1)), (0.0, 1.0));
        assert_eq!(exact.p_above(2.0), 1.0, "at the bound is not beyond it");
        assert_eq!((c.p_above(f64::NAN), c.p_below(0.0)), (1.0, 1.0));
    }

    #[test]
    fn no_spread() {
        let same = comparison(&[0.0; 8]);
        assert_eq!((same.p, same.se_log), (1.0, 0.0));
        let judged = judge(&[same], 0.02, 0.95);
        assert_eq!(
            (judged[0].verdict, judged[0].smallest_detectable),
            (Verdict::Equivalent, 0.0)
        );
        let doubled = compare(&[2.0; 8], &[1.0; 8], 0.95).unwrap();
        assert_eq!(doubled.p, 0.0);
        assert_eq!(judge(&[doubled], 0.02, 0.95)[0].verdict, Verdict::Different);
    }

    #[test]
    fn garbage_is_inconclusive() {
        assert_eq!(compare(&[1.0], &[1.0], 0.95), None);
        assert_eq!(compare(&[1.0, 0.0], &[1.0, 1.0], 0.95), None);
        assert_eq!(compare(&[], &[], 0.95), None);
        let estimate = |n| Estimate {
            value: 1.0,
            low: 1.0,
            high: 1.0,
            confidence: 0.95,
            n,
        };
        let one = Comparison {
            ratio: estimate(1),
            p: 1.0,
            se_log: 0.0,
            df: 0.0,
        };
        let nan = Comparison {
            ratio: estimate(8),
            p: f64::NAN,
            se_log: f64::NAN,
            df: 7.0,
        };
        for judged in judge(&[one, nan], 0.02, 0.95) {
            assert_eq!(judged.verdict, Verdict::Inconclusive);
            assert_eq!(judged.smallest_detectable, f64::INFINITY);
        }
        let fine = comparison(&around(0.05, 0.01));
        let judged = judge(&[fine], 0.02, f64::NAN);
        assert_eq!(judged[0].verdict, Verdict::Inconclusive);
        assert_eq!(judged[0].smallest_detectable, f64::INFINITY);
        assert!(judge(&[], 0.02, 0.95).is_empty());
    }

    #[test]
    fn survives_json() {
        let mut judged = judge(&[comparison(&around(0.05, 0.01))], 0.02, 0.95).remove(0);
        judged.smallest_detectable = f64::INFINITY;
        let text = serde_json::to_string(&judged).unwrap();
        assert!(text.contains("\"verdict\":\"different\""), "{text}");
        let back: Judged = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (back.verdict, back.smallest_detectable),
            (Verdict::Different, f64::INFINITY)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn order_of_the_table_does_not_matter(
            rows in prop::collection::vec((-0.05..0.05_f64, 0.001..0.05_f64), 1..12),
            turn in 0..12_usize,
        ) {
            let table: Vec<Comparison> =
                rows.iter().map(|(c, s)| comparison(&around(*c, *s))).collect();
            let mut turned = table.clone();
            turned.rotate_left(turn % table.len());
            let mut expected = judge(&table, 0.02, 0.95);
            expected.rotate_left(turn % table.len());
            prop_assert_eq!(judge(&turned, 0.02, 0.95), expected);
        }

        #[test]
        fn swapping_the_paths_keeps_p_and_verdict(
            pairs in prop::collection::vec((0.1..10.0_f64, 0.1..10.0_f64), 2..12),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (one, other) = (compare(&a, &b, 0.95).unwrap(), compare(&b, &a, 0.95).unwrap());
            prop_assert!((one.p - other.p).abs() < 1e-9);
            let judged = [judge(&[one], 0.02, 0.95).remove(0), judge(&[other], 0.02, 0.95).remove(0)];
            prop_assert_eq!(judged[0].verdict, judged[1].verdict);
        }
    }
}
