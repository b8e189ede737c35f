//! Randomised blocks: every tool of every scenario once per block, in an order of its own.

use std::time::{Duration, Instant};

use hopyard::measure::{self, QuietCores};
use hopyard::{note, signals};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::sample::{Figures, Sampler};
use crate::scenario::Scenario;
use crate::tools::Tool;

/// The most attempts at a sample that fails or is disturbed.
const ATTEMPTS: u32 = 3;

/// One sample of the run.
#[derive(Debug, Serialize)]
pub(crate) struct Taken {
    pub(crate) block: u32,
    /// Index in the order of the run.
    pub(crate) order: usize,
    pub(crate) scenario: &'static str,
    pub(crate) tool: Tool,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// The result of a sample.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Measured(Figures),
    Failed(String),
}

impl Taken {
    pub(crate) fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Failed(_) => None,
        }
    }
}

/// Takes all samples.
pub(crate) fn run(
    sampler: &Sampler,
    scenarios: &[&'static Scenario],
    blocks: u32,
    seed: u64,
) -> Result<Vec<Taken>> {
    let mut cells: Vec<(&'static Scenario, Tool)> = scenarios
        .iter()
        .flat_map(|&scenario| scenario.tools.iter().map(move |&tool| (scenario, tool)))
        .collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let idle = measure::Sampler::new(sampler.window, Duration::ZERO)?;
    let began = Instant::now();
    let mut taken = Vec::new();
    for block in 0..blocks {
        cells.shuffle(&mut random);
        let quiet = idle.quiet_cores()?;
        for (scenario, tool) in &cells {
            let outcome = attempt(sampler, scenario, *tool, quiet)?;
            if let Outcome::Failed(why) = &outcome {
                note(format_args!(
                    "block {}, {}, {tool}: {why}",
                    block + 1,
                    scenario.name
                ));
            }
            taken.push(Taken {
                block,
                order: taken.len(),
                scenario: scenario.name,
                tool: *tool,
                outcome,
            });
        }
        let left = began.elapsed() / (block + 1) * (blocks - block - 1);
        note(format_args!(
            "block {} of {blocks} done; the machine alone used {:.1} % of a CPU at most; {} s to go",
            block + 1,
            quiet.most * 100.0,
            left.as_secs()
        ));
    }
    Ok(taken)
}

/// A failure is part of the result; only the user's wish to stop is an error.
fn attempt(
    sampler: &Sampler,
    scenario: &Scenario,
    tool: Tool,
    quiet: QuietCores,
) -> Result<Outcome> {
    let mut last = Outcome::Failed(String::new());
    for _ in 0..ATTEMPTS {
        match sampler.measure(scenario, tool, quiet) {
            Ok(figures) if figures.disturbed => last = Outcome::Measured(figures),
            Ok(figures) => return Ok(Outcome::Measured(figures)),
            Err(_) if signals::interrupted() => return Err(Error::Interrupted),
            Err(error) => last = Outcome::Failed(hopyard::chain(&error)),
        }
    }
    Ok(last)
}
