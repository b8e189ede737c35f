//! False alarms and power of the verdicts, by simulation: experiments V6 and V11 of the method
//! without a kernel.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::moderated::moderated;
use super::synthetic::normal;
use super::verdict::{Comparison, Verdict, compare, judge};

const CONFIDENCE: f64 = 0.95;

/// The order in which a drifting machine runs the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Every cell once per block, in a new random order each time: what hopyard does.
    RandomBlocks,
    /// All runs of one cell, then all of the next: what most published tables do.
    Sequential,
}

/// A simulated run of a table. Cell 0 is the base all others are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Number of cells, the base among them; 2 or more.
    pub cells: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Standard deviation of the logarithm of one run; 0.03 is about 3 %.
    pub noise: f64,
    /// By how much each run is slower than the run before it, as the machine drifts; 0.01 for 1 %.
    pub drift: f64,
    /// Order of the runs.
    pub order: Order,
}

/// Counts of an A/A experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FalseAlarms {
    /// Tables in which any equal cell was called different.
    pub alarmed: u64,
    /// All tables.
    pub runs: u64,
}

/// Counts of an experiment with one cell that is really slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Power {
    /// Tables whose stated smallest detectable effect was at most the true one.
    pub stated: u64,
    /// Those among them that called the slower cell different.
    pub found: u64,
    /// All tables.
    pub runs: u64,
}

/// Runs `runs` tables of equal cells and counts those that call any of them different. No margin
/// is declared, so that no false difference can hide behind *equivalent*.
#[must_use]
pub fn simulate_false_alarms(setup: Setup, runs: usize, seed: u64) -> FalseAlarms {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = FalseAlarms::default();
    for _ in 0..runs {
        let judged = judge(&table(setup, 0.0, &mut rng), 0.0, CONFIDENCE);
        counts.runs += 1;
        counts.alarmed += u64::from(judged.iter().any(|j| j.verdict == Verdict::Different));
    }
    counts
}

/// Runs `runs` tables whose last cell costs `slowdown` more (0.03 for 3 %) and judges them with
/// `margin`.
#[must_use]
pub fn simulate_power(setup: Setup, slowdown: f64, margin: f64, runs: usize, seed: u64) -> Power {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = Power::default();
    for _ in 0..runs {
        let judged = judge(&table(setup, slowdown, &mut rng), margin, CONFIDENCE);
        counts.runs += 1;
        if let Some(last) = judged.last().filter(|j| j.smallest_detectable <= slowdown) {
            counts.stated += 1;
            let is_found = last.verdict == Verdict::Different && last.ratio.value > 1.0;
            counts.found += u64::from(is_found);
        }
    }
    counts
}

/// One table: costs of all cells in all blocks, each cell but the base compared with the base, with the scatter that they
/// share, as the comparisons of a run.
fn table(setup: Setup, slowdown: f64, rng: &mut ChaCha8Rng) -> Vec<Comparison> {
    let mut costs = vec![vec![0.0; setup.blocks]; setup.cells];
    for (age, (cell, block)) in schedule(setup, rng).into_iter().enumerate() {
        let extra = if cell + 1 == setup.cells {
            slowdown.ln_1p()
        } else {
            0.0
        };
        let aged = age as f64 * setup.drift.ln_1p();
        costs[cell][block] = (extra + aged + setup.noise * normal(rng)).exp();
    }
    let Some((base, others)) = costs.split_first() else {
        return Vec::new();
    };
    let compared = others.iter();
    let compared: Vec<Comparison> = compared
        .filter_map(|cell| compare(cell, base, CONFIDENCE))
        .collect();
    moderated(&compared)
}

/// (cell, block) in the order they are run.
fn schedule(setup: Setup, rng: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    match setup.order {
        Order::Sequential => (0..setup.cells)
            .flat_map(|cell| (0..setup.blocks).map(move |block| (cell, block)))
            .collect(),
        Order::RandomBlocks => (0..setup.blocks)
            .flat_map(|block| {
                let mut cells: Vec<usize> = (0..setup.cells).collect();
                cells.shuffle(rng);
                cells
                    .into_iter()
                    .map(move |cell| (cell, block))
                    .collect::<Vec<_>>()
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFTING: Setup = Setup {
        cells: 2,
        blocks: 10,
        noise: 0.03,
        drift: 0.01,
        order: Order::RandomBlocks,
    };

    #[test]
    fn random_blocks_survive_drift() {
        let c = simulate_false_alarms(DRIFTING, 800, 1);
        assert!(
            c.alarmed * 100 <= 7 * c.runs && c.alarmed * 100 >= 3 * c.runs,
            "{c:?}"
        );
        let many = Setup {
            cells: 8,
            ..DRIFTING
        };
        let c = simulate_false_alarms(many, 200, 2);
        assert!(c.alarmed * 100 <= 7 * c.runs, "{c:?}");
    }

    #[test]
    fn sequential_order_does_not() {
        let c = simulate_false_alarms(
            Setup {
                order: Order::Sequential,
                ..DRIFTING
            },
            200,
            1,
        );
        assert!(c.alarmed * 100 >= 90 * c.runs, "{c:?}");
    }

    #[test]
    fn one_slow_cell_of_many_is_found() {
        let setup = Setup {
            cells: 8,
            blocks: 20,
            noise: 0.015,
            ..DRIFTING
        };
        let setup = Setup {
            drift: 0.0,
            ..setup
        };
        let c = simulate_power(setup, 0.03, 0.02, 150, 3);
        assert!(c.stated * 2 >= c.runs, "{c:?}");
        assert!(c.found * 100 >= 80 * c.stated, "{c:?}");
    }

    #[test]
    fn nonsense_setups_do_not_panic() {
        for (cells, blocks) in [(0, 0), (1, 10), (2, 0), (2, 1)] {
            let setup = Setup {
                cells,
                blocks,
                ..DRIFTING
            };
            assert_eq!(simulate_false_alarms(setup, 2, 1).alarmed, 0);
            assert_eq!(simulate_power(setup, 0.03, 0.02, 2, 1).stated, 0);
        }
    }
}
