//! Two cells measured by turns, generation after generation, and reported as `hopyard run` does.

use std::time::{Duration, Instant};

use hopyard::assess::{self, cost, main_figure};
use hopyard::lab::Lab;
use hopyard::measure::{QuietReading, Sampler, turns};
use hopyard::model::{Cell, LoadKind, Outcome, RunReport, Sample, VerdictReport};
use hopyard::stats::{self, Estimate};
use hopyard::store::{End, Run};
use rand_chacha::ChaCha8Rng;

use crate::bench::on_its_way;
use crate::experiment::{Failure, Row, Verdict};
use crate::generation::lab_of;
use crate::two_runs::header;

/// Generations of a table of fixed size: as many as verdicts need.
pub(crate) const GENERATIONS: u32 = hopyard::model::FOR_A_VERDICT;
/// The window of the default plan, which decides the first number of rounds in a generation.
pub(crate) const WINDOW_MS: u64 = 200;
pub(crate) const WARM_UP_MS: u64 = 80;

/// What a table is measured of, and how.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The base, and another cell, which may be equal to it.
    pub(crate) cells: [Cell; 2],
    /// Margin of equivalence, as a share.
    pub(crate) margin: f64,
    /// How much is measured, and what is done to the cells.
    pub(crate) length: String,
}

impl Settings {
    /// A table of so many generations.
    pub(crate) fn of(cells: [Cell; 2], generations: u32) -> Self {
        Self {
            cells,
            margin: 0.0,
            length: format!("{generations} generations"),
        }
    }
}

/// The two cells of a table, and what was measured of them.
pub(crate) struct Pair<'a> {
    sampler: &'a Sampler,
    quiet: Option<QuietReading>,
    run: Run,
    began: Instant,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(sampler: &'a Sampler, settings: &Settings) -> Self {
        let base = &settings.cells[0];
        let mut header = header(sampler, &settings.cells);
        header.window_ns = u64::try_from(sampler.window.as_nanos()).unwrap_or(u64::MAX);
        header.turn_ns = base
            .load
            .turn()
            .and_then(|turn| u64::try_from(turn.as_nanos()).ok());
        header.base = Some(base.path.clone());
        header.margin = settings.margin;
        Self {
            sampler,
            quiet: None,
            run: Run {
                header,
                samples: Vec::new(),
                profiles: Vec::new(),
                end: Some(End::Complete),
            },
            began: Instant::now(),
        }
    }

    /// Measures this many generations.
    pub(crate) fn take(mut self, generations: u32, order: &mut ChaCha8Rng) -> Result<Run, Failure> {
        for _ in 0..generations {
            let labs = self.labs()?;
            self.generation(labs, order)?;
        }
        Ok(self.run)
    }

    /// A new lab for each cell.
    pub(crate) fn labs(&self) -> Result<[Lab; 2], Failure> {
        let [base, other] = [0, 1].map(|at| &self.run.header.cells[at].cell);
        Ok([lab_of(base)?, lab_of(other)?])
    }

    /// Whether another generation, as long as those so far, would end after the limit.
    pub(crate) fn next_is_too_late(&self, limit: Duration) -> bool {
        let spent = self.began.elapsed();
        let done = self.generations();
        done > 0 && spent + spent / done > limit
    }

    pub(crate) fn generations(&self) -> u32 {
        self.run.samples.last().map_or(0, |last| last.block + 1)
    }

    pub(crate) fn into_run(self) -> Run {
        self.run
    }

    /// Measures a generation in these labs, with as many rounds as the product would take.
    pub(crate) fn generation(
        &mut self,
        labs: [Lab; 2],
        order: &mut ChaCha8Rng,
    ) -> Result<(), Failure> {
        let block = self.generations();
        let cells: Vec<&Cell> = self.run.header.cells.iter().map(|c| &c.cell).collect();
        let samples: Vec<&Sample> = self.run.samples.iter().collect();
        let turns: Vec<turns::Participant<'_>> = cells.iter().map(|cell| (*cell).into()).collect();
        let cost = Sampler::generation_cost(&turns);
        let worth = assess::rounds_worth(&self.run.header, &samples, &[0, 1], cost);
        let rounds = turns::chosen_rounds(turns::rounds(cells[0], self.sampler.window), worth);
        let quiet = self.sampler.read_quiet(self.quiet)?;
        self.quiet = Some(quiet);
        let labs = cells.into_iter().zip(labs).collect();
        let measured = self.sampler.generation_in(
            labs,
            turns::Rounds {
                wanted: rounds,
                deadline: None,
            },
            quiet.cores,
            order,
        )?;
        for (cell, measured) in measured.into_iter().enumerate() {
            let outcome = match measured.map_err(Failure::from).and_then(on_its_way) {
                Ok(measurement) => Outcome::Measured(Box::new(measurement)),
                Err(failure) => Outcome::Failed {
                    cause: hopyard::chain(&failure),
                },
            };
            self.run.samples.push(Sample {
                block,
                attempt: 0,
                cell,
                order: u32::try_from(self.run.samples.len()).unwrap_or(u32::MAX),
                started_ns: 0,
                took_ns: 0,
                outcome,
            });
        }
        Ok(())
    }
}

/// The figures that are checked: the main figure and the service demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Main,
    Demand,
}

impl Figure {
    pub(crate) const ALL: [Self; 2] = [Self::Main, Self::Demand];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main figure",
            Self::Demand => "service demand",
        }
    }

    fn key(self, report: &RunReport) -> Option<&'static str> {
        let base = report.cells.first()?;
        Some(match self {
            Self::Main => main_figure(base.load, &base.axes),
            Self::Demand => cost(base.load),
        })
    }

    /// The comparison of the second cell with the base.
    pub(crate) fn verdict(self, report: &RunReport) -> Option<&VerdictReport> {
        report.cells.get(1)?.verdicts.get(self.key(report)?)
    }

    /// The estimate of a cell.
    pub(crate) fn estimate(self, report: &RunReport, cell: usize) -> Option<&Estimate> {
        report.cells.get(cell)?.estimates.get(self.key(report)?)
    }
}

/// Counts of turns and samples of several runs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Fate {
    turns: u64,
    disturbed: u64,
    failed: u64,
}

impl Fate {
    pub(crate) fn add(&mut self, report: &RunReport) {
        if let Some(turns) = &report.run.turns {
            self.turns += u64::from(turns.taken);
            self.disturbed += turns.disturbed.values().map(|n| u64::from(*n)).sum::<u64>();
        }
        let failed = report.cells.iter().map(|cell| cell.failed_samples);
        self.failed += failed.map(u64::from).sum::<u64>();
    }

    /// A failed row if hardly any turn was disturbed, although a hog ran.
    pub(crate) fn too_quiet(&self, id: &'static str, what: String) -> Option<Row> {
        /// Least share of the turns.
        const LEAST: f64 = 0.01;
        let is_quiet = (self.disturbed as f64) < LEAST * self.turns as f64 || self.turns == 0;
        let why = format!("hardly disturbed, so they prove nothing: {self}");
        is_quiet.then(|| Row::without_figures(id, what, Verdict::Failed(why)))
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = 100.0 * self.disturbed as f64 / self.turns.max(1) as f64;
        write!(f, "{share:.0} % of {} turns disturbed", self.turns)?;
        if self.failed > 0 {
            write!(f, ", {} samples failed", self.failed)?;
        }
        Ok(())
    }
}

/// A count of successes among tries.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) hits: u64,
    pub(crate) of: u64,
}

impl Share {
    pub(crate) fn add(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.of += 1;
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            of: self.of + other.of,
        }
    }

    /// With its 95 % interval.
    pub(crate) fn estimate(self) -> Result<Estimate, Failure> {
        stats::binomial_interval(self.hits, self.of, 0.95)
            .ok_or(Failure::NoFigure("an experiment without a table"))
    }

    /// As text for people.
    pub(crate) fn text(self) -> Result<String, Failure> {
        let share = self.estimate()?;
        Ok(format!(
            "{} of {}: {:.1} % ({:.1} to {:.1} %)",
            self.hits,
            self.of,
            100.0 * share.value,
            100.0 * share.low,
            100.0 * share.high
        ))
    }
}

/// The loads whose cells can take turns.
pub(crate) fn loads_by_turns() -> impl Iterator<Item = LoadKind> + Clone {
    LoadKind::ALL.into_iter().filter(|load| load.pauses())
}
