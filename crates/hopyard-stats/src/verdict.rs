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
mod tests;
