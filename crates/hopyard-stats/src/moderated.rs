//! Comparisons that scatter alike share their estimate of scatter.

use statrs::function::gamma::digamma;

use super::moments::{mean, sd};
use super::verdict::Comparison;

/// Fewer comparisons than this do not show how alike they scatter.
const FEWEST: usize = 3;
/// The common scatter adds at most this many times a comparison's own degrees of freedom. Comparisons with one base
/// share its scatter, so together they know less than as many independent ones: if the base makes a share ρ of their
/// variance, at most 1/ρ² times what one of them knows. So 1 is right up to ρ = 0.7. ρ is 0.5 if the base has as many
/// turns as a cell that scatters alike, and 0.25 if it has three times as many.
const MOST: f64 = 1.0;
/// More degrees of freedom make no difference.
const UNLIMITED: f64 = 1e6;

/// The comparisons with moderated standard errors: the variance of each is drawn towards the common one, the more so
/// the more alike they are, and its degrees of freedom grow by the information of the others (Smyth, "Linear models and
/// empirical Bayes methods for assessing differential expression in microarray experiments", Stat. Appl. Genet. Mol.
/// Biol. 3, 2004, sections 3 and 6.2).
///
/// They must be of one quantity under one load. Comparisons without scatter stay unchanged, and so do all if fewer than
/// three have scatter.
#[must_use]
pub fn moderated(comparisons: &[Comparison]) -> Vec<Comparison> {
    let scatters: Vec<Scatter> = comparisons.iter().filter_map(Scatter::of).collect();
    let Some(common) = Common::of(&scatters) else {
        return comparisons.to_vec();
    };
    let moderate = |one: &Comparison| {
        let own = Scatter::of(one)?;
        let from_others = common.df.min(MOST * own.df);
        let df = own.df + from_others;
        let variance = (own.df * own.variance + from_others * common.variance) / df;
        let se_log = one.se_log * (variance / own.variance).sqrt();
        let centre = one.ratio.value.ln();
        Comparison::student(centre, se_log, df, one.ratio.confidence, one.ratio.n)
    };
    comparisons
        .iter()
        .map(|one| moderate(one).unwrap_or_else(|| one.clone()))
        .collect()
}

/// How ln(a/b) scatters from block to block.
struct Scatter {
    variance: f64,
    df: f64,
}

impl Scatter {
    fn of(comparison: &Comparison) -> Option<Self> {
        let variance = comparison.se_log.powi(2) * comparison.ratio.n as f64;
        let is_known = variance > 0.0 && variance.is_finite() && comparison.df > 0.0;
        is_known.then_some(Self {
            variance,
            df: comparison.df,
        })
    }

    /// ln of the variance, corrected for bias, and the variance that chance alone gives it.
    fn log(&self) -> (f64, f64) {
        let half = self.df / 2.0;
        let unbiased = self.variance.ln() - digamma(half) + half.ln();
        (unbiased, trigamma(half))
    }
}

/// The distribution of the variances: a scaled inverse χ² with this many degrees of freedom.
struct Common {
    variance: f64,
    df: f64,
}

impl Common {
    /// Fitted by the mean and the variance of the logarithms.
    fn of(scatters: &[Scatter]) -> Option<Self> {
        if scatters.len() < FEWEST {
            return None;
        }
        let (logs, by_chance): (Vec<f64>, Vec<f64>) = scatters.iter().map(Scatter::log).unzip();
        let centre = mean(&logs)?;
        let beyond_chance = sd(&logs)?.powi(2) - mean(&by_chance)?;
        if beyond_chance <= 0.0 {
            return Some(Self {
                variance: centre.exp(),
                df: UNLIMITED,
            });
        }
        let half = inverse_trigamma(beyond_chance);
        Some(Self {
            variance: (centre + digamma(half) - half.ln()).exp(),
            df: 2.0 * half,
        })
    }
}

/// Second derivative of ln Γ for x > 0 (Abramowitz and Stegun, 6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += x.powi(-2);
        x += 1.0;
    }
    let square = x.powi(-2);
    sum + 1.0 / x
        + square / 2.0
        + square / x * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0)))
}

/// The x above 0 at which trigamma, which falls from ∞ to 0, has this value; at most half of [`UNLIMITED`].
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6_f64, UNLIMITED / 2.0);
    // Each step halves the distance on the log scale, so the last is far below rounding.
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Verdict, compare, judge, standard_normal};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn trigamma_at_known_places() {
        let pi_squared = std::f64::consts::PI.powi(2);
        for (x, value) in [
            (1.0, pi_squared / 6.0),
            (0.5, pi_squared / 2.0),
            (2.0, pi_squared / 6.0 - 1.0),
            (50.0, 0.020_201_333_226_697),
        ] {
            assert!((trigamma(x) - value).abs() < 1e-10, "{x}: {}", trigamma(x));
            assert!((inverse_trigamma(value) / x - 1.0).abs() < 1e-8, "{x}");
        }
    }

    /// A table of cells compared with one base.
    struct Table {
        blocks: usize,
        /// Turns of the base for each turn of a cell.
        base_turns: f64,
        /// Scatter of each cell, and its true ln(ratio).
        cells: Vec<(f64, f64)>,
    }

    const BASE: f64 = 0.1;

    impl Table {
        fn draw(&self, random: &mut ChaCha8Rng) -> Vec<Comparison> {
            let spread = BASE / self.base_turns.sqrt();
            let base: Vec<f64> = (0..self.blocks)
                .map(|_| (spread * standard_normal(random)).exp())
                .collect();
            let mut of = |&(scatter, truth): &(f64, f64)| {
                let own: Vec<f64> = (0..self.blocks)
                    .map(|_| (truth + scatter * standard_normal(random)).exp())
                    .collect();
                compare(&own, &base, 0.95).unwrap()
            };
            self.cells.iter().map(&mut of).collect()
        }
    }

    /// Over `runs` tables: the share of intervals that contain the true ratio, of tables with a wrong "different", and
    /// of true differences found.
    fn tried(
        table: &Table,
        runs: usize,
        how: impl Fn(&[Comparison]) -> Vec<Comparison>,
    ) -> [f64; 3] {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let (mut covered, mut alarms, mut found) = (0, 0, 0);
        for _ in 0..runs {
            let all = how(&table.draw(&mut random));
            let truths = || table.cells.iter().map(|(_, truth)| *truth);
            let holds = |(one, truth): (&Comparison, f64)| {
                one.ratio.low.ln() <= truth && truth <= one.ratio.high.ln()
            };
            covered += all.iter().zip(truths()).filter(|pair| holds(*pair)).count();
            let judged = judge(&all, 0.02, 0.95);
            let different = |is_true: bool| {
                let pairs = judged.iter().zip(truths());
                let such = pairs.filter(|(j, truth)| {
                    j.verdict == Verdict::Different && (*truth != 0.0) == is_true
                });
                such.count()
            };
            alarms += usize::from(different(false) > 0);
            found += different(true);
        }
        let true_ones = table
            .cells
            .iter()
            .filter(|(_, truth)| *truth != 0.0)
            .count();
        [
            covered as f64 / (runs * table.cells.len()) as f64,
            alarms as f64 / runs as f64,
            found as f64 / (runs * true_ones.max(1)) as f64,
        ]
    }

    fn unmoderated(all: &[Comparison]) -> Vec<Comparison> {
        all.to_vec()
    }

    /// Cells that scatter alike, cells that do not, and one that scatters far more; with as many turns of the base as
    /// of a cell, and with three times as many.
    fn tables() -> Vec<(&'static str, Table)> {
        let alike = vec![(0.1, 0.0); 11];
        let unlike: Vec<(f64, f64)> = (0..11).map(|i| (0.04 * 1.2_f64.powi(i), 0.0)).collect();
        let mut one = alike.clone();
        one[7].0 = 0.5;
        let mut all = Vec::new();
        for (name, cells) in [("alike", alike), ("unlike", unlike), ("one is wild", one)] {
            for (blocks, base_turns) in [(8, 1.0), (10, 3.0)] {
                let table = Table {
                    blocks,
                    base_turns,
                    cells: cells.clone(),
                };
                all.push((name, table));
            }
        }
        all
    }

    #[test]
    fn intervals_hold_the_truth_and_equal_cells_are_not_called_different() {
        for (name, table) in tables() {
            let [covered, alarms, _] = tried(&table, 1000, moderated);
            let what = format!("{name}, {} blocks, {}", table.blocks, table.base_turns);
            // The promise is 93 % and 7 % (V6, V7). In 2000 tables the worst was 94.6 % and 6.1 %.
            assert!(covered >= 0.935, "{what}: {covered}");
            assert!(alarms <= 0.07, "{what}: {alarms}");
        }
    }

    #[test]
    fn few_blocks_show_more() {
        let mut cells = vec![(0.1, 0.0); 11];
        for at in [2, 5] {
            cells[at].1 = -0.15;
        }
        let table = Table {
            blocks: 8,
            base_turns: 3.0,
            cells,
        };
        let [_, _, before] = tried(&table, 1000, unmoderated);
        let [_, _, after] = tried(&table, 1000, moderated);
        assert!(after > before + 0.1, "{before} {after}");
    }

    #[test]
    fn few_or_none_stay_as_they_are() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let table = Table {
            blocks: 8,
            base_turns: 1.0,
            cells: vec![(0.1, 0.0); 3],
        };
        let mut all = table.draw(&mut random);
        assert_ne!(moderated(&all), all);
        assert_eq!(moderated(&all[..2]), all[..2]);
        let still = compare(&[2.0; 8], &[1.0; 8], 0.95).unwrap();
        all.push(still.clone());
        assert_eq!(moderated(&all)[3], still);
        assert!(moderated(&[]).is_empty());
    }

    proptest! {
        /// Order and location do not matter. Only the scatter is moderated, to a value between its own and the common
        /// one.
        #[test]
        fn only_the_scatter_is_moderated(seed in 0_u64..1000, cells in 3_usize..12, blocks in 2_usize..20) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let cells = (0..cells).map(|i| (0.02 * (i + 1) as f64, 0.1)).collect();
            let all = Table { blocks, base_turns: 1.0, cells }.draw(&mut random);
            let after = moderated(&all);
            for (before, after) in all.iter().zip(&after) {
                prop_assert!((before.ratio.value / after.ratio.value - 1.0).abs() < 1e-12);
                prop_assert_eq!(before.ratio.n, after.ratio.n);
                prop_assert!(after.df >= before.df && after.df <= (1.0 + MOST) * before.df);
            }
            let backwards: Vec<Comparison> = all.iter().rev().cloned().collect();
            for (one, other) in moderated(&backwards).iter().rev().zip(&after) {
                prop_assert!((one.se_log / other.se_log - 1.0).abs() < 1e-9);
            }
        }
    }
}
