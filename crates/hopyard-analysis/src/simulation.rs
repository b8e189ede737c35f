//! Generations of turns with a known ratio, to test the pairing and the intervals: experiment V7 of the method.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{quantity, rounds};
use crate::model::{
    Counted, CpuTolerance, CpuUse, Disturbance, LoadKind, Measurement, Turn, kept, takes_again,
    takes_another,
};
use crate::stats::{self, Coverage, standard_normal};

const CONFIDENCE: f64 = 0.95;
const LOAD: LoadKind = LoadKind::TcpRr;
/// Load and CPU tolerance; no figure here needs the latter.
const HOW: (LoadKind, CpuTolerance) = (LOAD, CpuTolerance(0.02));
const FIGURE: &str = "transactions_per_s";
const WINDOW_NS: u64 = 1_000_000_000;
/// Transactions of a turn: so many that rounding to whole ones adds no noise.
const TYPICAL: f64 = 1e9;
/// How much of a burst's effect on the whole machine remains one round later.
const LASTING: f64 = 0.7;

/// A run of two cells that take turns. All sizes are on the log scale: 0.01 is about 1 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnsSetup {
    pub generations: usize,
    /// Undisturbed turns wanted of each cell in a generation.
    pub rounds: u32,
    /// Turns that the base has in each round, 1 or more.
    pub base_turns: u32,
    /// True ln of the ratio of the cells.
    pub log_ratio: f64,
    /// Standard deviation of that ratio from one generation to another.
    pub between: f64,
    /// Standard deviation of a turn within its generation.
    pub within: f64,
    /// Correlation of a cell's turn with its turn one round before.
    pub rho: f64,
    /// What disturbs the machine.
    pub bursts: Bursts,
}

/// Disturbances that last for several rounds. In each of these rounds some turns are hit, by a size that is exponentially
/// distributed with mean 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Share of the rounds, below 1.
    pub share: f64,
    /// Probability that a turn is hit in one of them.
    pub hit: f64,
    /// Mean length, rounds; 1 or more.
    pub length: f64,
    /// Sizes from this on are noticed; smaller ones stay in the figures.
    pub noticed: f64,
    /// By how much a hit of size 1 slows its turn.
    pub slowdown: f64,
    /// By how much a burst slows all turns of its rounds, hit or not; the effect decays over the rounds after the
    /// burst.
    pub shared: f64,
}

/// Simulates `runs` runs and compares their two cells with the product's own functions: disturbed turns are repeated,
/// the ratio of a generation is located among its rounds, and the 95 % interval is over generations. Counts are runs.
#[must_use]
pub fn simulate_turns(setup: TurnsSetup, runs: usize, seed: u64) -> Coverage {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = Coverage::default();
    for _ in 0..runs {
        let logs: Vec<f64> = (0..setup.generations)
            .filter_map(|_| setup.log_ratio_seen(&mut random))
            .collect();
        let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let compared = stats::compare(&values, &vec![1.0; values.len()], CONFIDENCE);
        let truth = setup.log_ratio.exp();
        let covered = compared.is_some_and(|c| c.ratio.low <= truth && truth <= c.ratio.high);
        let warned = stats::dependence(&[logs]).is_some();
        counts.runs += 1;
        counts.covered += u64::from(covered);
        counts.warned += u64::from(warned);
        counts.covered_or_warned += u64::from(covered || warned);
    }
    counts
}

impl TurnsSetup {
    /// The product's result for one generation: ln of the ratio of the two cells.
    fn log_ratio_seen(&self, random: &mut ChaCha8Rng) -> Option<f64> {
        let [own, base] = self.generation(random);
        let (own, base) = rounds::pair(&own, &base, quantity(FIGURE).ok()?, HOW)?;
        Some((own / base).ln())
    }

    /// Both cells in one generation, with as many rounds as the product takes.
    fn generation(&self, random: &mut ChaCha8Rng) -> [Measurement; 2] {
        let offset = self.log_ratio + self.between * standard_normal(random);
        let mut machine = Machine::new(self.bursts, random);
        let mut noise = [(); 2].map(|()| standard_normal(random));
        let mut turns: [Vec<Turn>; 2] = Default::default();
        let mut round = 0;
        while self.takes_another(&turns) {
            machine.next(random);
            for (cell, turns) in turns.iter_mut().enumerate() {
                let own = if cell == 0 { offset } else { 0.0 };
                for _ in 0..self.turns_of(cell) {
                    let mut attempt = 1;
                    loop {
                        let fresh = (1.0 - self.rho * self.rho).max(0.0).sqrt();
                        noise[cell] = self.rho * noise[cell] + fresh * standard_normal(random);
                        let (slower, disturbance) = machine.hit(random);
                        let log = own + self.within * noise[cell] - slower;
                        turns.push(turn(round, log, disturbance));
                        let taken = count(turns.len()) / self.turns_of(cell);
                        if disturbance.is_none() || !takes_again(attempt, taken, self.rounds) {
                            break;
                        }
                        attempt += 1;
                    }
                }
            }
            round += 1;
        }
        turns.map(together)
    }

    /// How many turns one of the two cells has in each round.
    fn turns_of(&self, cell: usize) -> u32 {
        if cell == 1 { self.base_turns } else { 1 }
    }

    fn takes_another(&self, turns: &[Vec<Turn>; 2]) -> bool {
        let each = || turns.iter().enumerate();
        let taken = each().map(|(cell, turns)| count(turns.len()) / self.turns_of(cell));
        let fewest_quiet = each().map(|(_, turns)| quiet_rounds(turns)).min();
        takes_another(
            taken.max().unwrap_or(0),
            self.rounds,
            fewest_quiet.unwrap_or(0),
        )
    }
}

fn quiet_rounds(turns: &[Turn]) -> usize {
    let quiet = turns.iter().filter(|turn| turn.is_quiet());
    let rounds: BTreeSet<u32> = quiet.map(|turn| turn.round).collect();
    rounds.len()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The machine that both cells share.
struct Machine {
    bursts: Bursts,
    in_burst: bool,
    /// Current fraction of a burst's effect on all turns, 0 to 1.
    slowed: f64,
}

impl Machine {
    fn new(bursts: Bursts, random: &mut ChaCha8Rng) -> Self {
        let in_burst = random.random::<f64>() < bursts.share;
        Self {
            bursts,
            in_burst,
            slowed: f64::from(u8::from(in_burst)),
        }
    }

    /// Goes on to the next round.
    fn next(&mut self, random: &mut ChaCha8Rng) {
        let Bursts { share, length, .. } = self.bursts;
        let changes = if self.in_burst {
            1.0 / length
        } else {
            share / (1.0 - share) / length
        };
        self.in_burst ^= random.random::<f64>() < changes;
        let now = f64::from(u8::from(self.in_burst));
        self.slowed = LASTING * self.slowed + (1.0 - LASTING) * now;
    }

    /// By how much the next turn is slowed, and whether that is noticed.
    fn hit(&self, random: &mut ChaCha8Rng) -> (f64, Option<Disturbance>) {
        let hit = random.random::<f64>() < self.bursts.hit;
        let size = -(1.0 - random.random::<f64>()).ln();
        let size = if hit && self.in_burst { size } else { 0.0 };
        let noticed = size > 0.0 && size >= self.bursts.noticed;
        let slower = self.bursts.slowdown * size + self.bursts.shared * self.slowed;
        (slower, noticed.then_some(Disturbance::Steal))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are positive and far below 2^53"
)]
fn turn(round: u32, log: f64, disturbance: Option<Disturbance>) -> Turn {
    Turn {
        round,
        window_ns: WINDOW_NS,
        received: Counted {
            transactions: (TYPICAL * log.exp()).round() as u64,
            ..Counted::default()
        },
        sent: Counted::default(),
        cpu: CpuUse {
            elapsed_ns: 1e9,
            cpus: 2,
            busy_ns: 1e9,
            closure: 1.0,
            ..CpuUse::default()
        },
        disturbance,
    }
}

/// The sample that these turns make.
fn together(turns: Vec<Turn>) -> Measurement {
    let counted = kept(turns.clone(), Turn::is_quiet);
    let received = counted
        .iter()
        .map(|turn| turn.received)
        .fold(Counted::default(), Counted::plus);
    let whole = turn(0, 0.0, None).measurement();
    Measurement {
        window_ns: WINDOW_NS * counted.len() as u64,
        received,
        turns,
        ..whole
    }
}

#[cfg(test)]
mod tests;
