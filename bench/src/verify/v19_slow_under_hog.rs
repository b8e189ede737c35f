//! V19: a path that is slower by 3 % is found by turns within a set time, on a machine that a real-time hog disturbs.
//!
//! Both cells are the same, with V5's program on packets; on the slow cell it works longer by 3 % of the cell's own
//! service demand, which each table corrects for the next one. The time counts from the first lab of a table to its
//! verdict, and all of it is used: the verdict is read once.

use std::ops::RangeInclusive;
use std::time::Duration;

use hopyard::assess::assess;
use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Measurement, Placement, Sample};
use hopyard::stats::{self, Verdict as Judgement};
use hopyard::store::Run;
use rand_chacha::ChaCha8Rng;

use crate::bench::{Bench, median};
use crate::burn::{Burn, Ends};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::hog::{self, Pattern};
use crate::kept::Table;
use crate::pair::{Fate, Figure, Pair, Settings, Share, WARM_UP_MS, WINDOW_MS};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V19",
    title: "a path slowed by 3 %, found in time on a machine disturbed on purpose",
    only_when_named: true,
    run,
};

const TABLES: usize = 40;
const SLOWDOWN: f64 = 0.03;
/// What the slow cell's slowdown may be in the mean of the tables: within a tenth of the one that is to be found.
const TRUE_SLOWDOWN: RangeInclusive<f64> = 0.027..=0.033;
/// The default margin of `hopyard run`.
const MARGIN: f64 = 0.02;
const POWER: f64 = 0.80;

/// A load with the time for a table of it.
#[derive(Debug, Clone, Copy)]
struct Trial {
    load: LoadKind,
    limit_s: u64,
}

const TRIALS: [Trial; 4] = [
    Trial::new(LoadKind::TcpRr, 60),
    Trial::new(LoadKind::UdpRr, 60),
    Trial::new(LoadKind::UdpStream, 60),
    Trial::new(LoadKind::TcpStream, 120),
];

/// The programs of the two cells. The slow cell's is set anew after each measurement, because how long a run of it takes, and what a
/// unit of the load costs, are known only from cells that took turns.
struct Burns {
    idle: Burn,
    slow: Burn,
    /// Time that the slow one is set to spend, ns.
    set_ns: f64,
}

/// What the programs did to the cells of a run.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// How much longer a run of the slow cell's program took, ns.
    extra_ns: f64,
    /// Runs of it for a unit of the load.
    runs: f64,
    /// Service demand of the other cell, ns.
    demand_ns: f64,
}

impl Done {
    fn slowdown(self) -> f64 {
        self.extra_ns * self.runs / self.demand_ns
    }

    /// How much longer a run would have to take.
    fn lacking_ns(self) -> f64 {
        (SLOWDOWN - self.slowdown()) * self.demand_ns / self.runs
    }
}

impl Burns {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            idle: Burn::load(0)?,
            slow: Burn::load(0)?,
            set_ns: 0.0,
        })
    }

    /// Sets the slow cell's program by what it did.
    fn correct(&mut self, done: Done) -> Result<(), Failure> {
        self.set_ns = (self.set_ns + done.lacking_ns()).max(0.0);
        self.slow = Burn::load(self.set_ns.round() as u64)?;
        Ok(())
    }
}

/// Results of a load's tables.
#[derive(Default)]
struct Tally {
    found: [Share; 2],
    fate: Fate,
    generations: u32,
    /// Measured ratios of service demand, and the true ones by the kernel's record.
    seen: Vec<f64>,
    true_ratios: Vec<f64>,
    detectable: Vec<f64>,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    bench.two_cpus()?;
    let sampler = bench.sampler(WINDOW_MS, WARM_UP_MS)?;
    let mut rng = bench.rng(19);
    let mut rows = Vec::new();
    for trial in TRIALS {
        rows.extend(trial.rows(bench, &sampler, &mut rng)?);
    }
    Ok(rows)
}

impl Trial {
    const fn new(load: LoadKind, limit_s: u64) -> Self {
        Self { load, limit_s }
    }

    fn limit(self, bench: &Bench) -> Duration {
        Duration::from_secs(bench.pick(self.limit_s, self.limit_s / 4))
    }

    /// Request/response leaves one CPU no idle time; a stream needs two CPUs.
    fn cell(self) -> Cell {
        let placement = if self.load.is_stream() {
            Placement::Split
        } else {
            Placement::Same
        };
        cells::veth(self.load, placement)
    }

    fn settings(self, limit: Duration) -> Settings {
        let (limit, slower) = (limit.as_secs(), 100.0 * SLOWDOWN);
        Settings {
            cells: [self.cell(), self.cell()],
            margin: MARGIN,
            length: format!("{limit} s, the other cell slowed by {slower} %"),
        }
    }

    /// The ends with work: all senders of data.
    fn ends(self) -> Ends {
        if self.load.is_stream() {
            Ends::Client
        } else {
            Ends::Both
        }
    }

    /// Runs of the program for a unit of the load.
    fn packets(self, m: &Measurement) -> Result<f64, Failure> {
        match self.load {
            LoadKind::TcpStream => m
                .arrived
                .filter(|arrived| arrived.bytes > 0)
                .map(|arrived| arrived.skbs as f64 / arrived.bytes as f64)
                .ok_or(Failure::NoFigure("a stream without counted packets")),
            load if load.is_stream() => Ok(1.0),
            _ => Ok(2.0),
        }
    }

    /// The programs, set by trials without a disturbance: the first says what a unit costs, the second how much longer than set a
    /// run takes.
    fn burns(self, sampler: &Sampler, rng: &mut ChaCha8Rng) -> Result<Burns, Failure> {
        const TRIALS: usize = 2;
        const TRIAL: Duration = Duration::from_secs(8);
        let mut burns = Burns::new()?;
        for _ in 0..TRIALS {
            let (_, done) = self.measure(sampler, &mut burns, TRIAL, rng)?;
            burns.correct(done)?;
        }
        Ok(burns)
    }

    fn rows(
        self,
        bench: &Bench,
        sampler: &Sampler,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Row>, Failure> {
        // Set by trials, which a table that was kept does without.
        let mut burns = None;
        let tables = bench.tables(TABLES, 2);
        let mut tally = Tally::default();
        let mut had = 0;
        for done in 0..tables {
            if done % 5 == 0 {
                hopyard::note(format_args!("V19: {}, table {done} of {tables}", self.load));
            }
            let name = format!("V19-{}-{done:02}", self.load);
            let settings = self.settings(self.limit(bench));
            let table = bench.table(&name, &settings, || {
                let burns = match &mut burns {
                    Some(burns) => burns,
                    none => none.insert(self.burns(sampler, rng)?),
                };
                let mut hog = hog::start(bench, Pattern::RealTime, bench.seed + done as u64)?;
                let order = &mut bench.rng_of_table(19, self.number(done));
                let table = self.table(bench, sampler, burns, order)?;
                hog::check_still_runs(&mut hog)?;
                Ok(table)
            })?;
            if let Some(table) = table {
                had += 1;
                tally.add(&table);
            }
        }
        if tally.generations == 0 {
            return Ok(vec![Row::not_measured("V19", self.load.to_string())]);
        }
        let mut rows = self.told(bench, &tally)?;
        rows.extend(Row::cut_short("V19", self.load.to_string(), had, tables));
        Ok(rows)
    }

    /// Generations of the two cells until the time is used.
    fn measure(
        self,
        sampler: &Sampler,
        burns: &mut Burns,
        limit: Duration,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Run, Done), Failure> {
        let mut pair = Pair::new(sampler, &self.settings(limit));
        let before = [burns.idle.account()?, burns.slow.account()?];
        while !pair.next_is_too_late(limit) {
            let labs = pair.labs()?;
            let _idle = burns.idle.attach(&labs[0], self.ends())?;
            let _slow = burns.slow.attach(&labs[1], self.ends())?;
            pair.generation(labs, rng)?;
        }
        let idle_ns = burns.idle.account()?.per_run_since(before[0]);
        let slow_ns = burns.slow.account()?.per_run_since(before[1]);
        let run = pair.into_run();
        let done = self.done(&run, slow_ns - idle_ns)?;
        Ok((run, done))
    }

    fn done(self, run: &Run, extra_ns: f64) -> Result<Done, Failure> {
        let of_base = run.samples.iter().filter(|sample| sample.cell == 0);
        let measured: Vec<&Measurement> = of_base.filter_map(Sample::measurement).collect();
        if measured.is_empty() {
            return Err(Failure::NoFigure("a table without a sample of its base"));
        }
        let demands = measured.iter().map(|m| cells::demand_ns(self.load, m));
        let runs = measured.iter().map(|m| self.packets(m));
        Ok(Done {
            extra_ns,
            runs: median(runs.collect::<Result<Vec<_>, _>>()?.into_iter()),
            demand_ns: median(demands),
        })
    }

    /// One table on the disturbed machine, by which the programs are set for the next.
    fn table(
        self,
        bench: &Bench,
        sampler: &Sampler,
        burns: &mut Burns,
        rng: &mut ChaCha8Rng,
    ) -> Result<Table, Failure> {
        let (run, done) = self.measure(sampler, burns, self.limit(bench), rng)?;
        burns.correct(done)?;
        Ok(Table {
            run,
            true_ratio: Some(1.0 + done.slowdown()),
        })
    }

    /// Number of a table among those of all loads.
    fn number(self, table: usize) -> u64 {
        let load = TRIALS.iter().position(|trial| trial.load == self.load);
        (load.unwrap_or_default() * TABLES + table) as u64
    }

    fn told(self, bench: &Bench, tally: &Tally) -> Result<Vec<Row>, Failure> {
        let [main, demand] = tally.found;
        let share = demand.estimate()?;
        let seen = 100.0 * (stats::mean(&tally.seen).unwrap_or(f64::NAN) - 1.0);
        let mut rows = vec![
            Row {
                id: "V19",
                what: format!(
                    "veth {}, {} s a table, {}: 3 % more service demand",
                    self.load,
                    self.limit(bench).as_secs(),
                    Pattern::RealTime.name()
                ),
                promised: "found in ≥ 80 % of the tables".to_owned(),
                seen: demand.text()?,
                // A quick look has too few tables to distinguish 80 % from less.
                verdict: Verdict::of(bench.pick(share.value, share.high) >= POWER),
            },
            tally.known_answer(self.load),
            Row {
                id: "V19",
                what: "the same tables".to_owned(),
                promised: String::new(),
                seen: format!(
                    "found in the main figure: {}; {:+.2} % seen; detectable {:.1} % in the median, {:.0} generations a table, {}",
                    main.text()?,
                    seen,
                    100.0 * median(tally.detectable.iter().copied()),
                    f64::from(tally.generations) / demand.of.max(1) as f64,
                    tally.fate
                ),
                verdict: Verdict::Stated,
            },
        ];
        rows.extend(tally.seen_and_true(self.load));
        rows.extend(
            tally
                .fate
                .too_quiet("V19", format!("the tables of {}", self.load)),
        );
        Ok(rows)
    }
}

impl Tally {
    /// Whether the tables saw the true slowdown. Streams have no such row: their cost rises by more than the program's own time: each end
    /// has a CPU of its own, and sleeps more often beside a slower one (docs/method.md).
    fn seen_and_true(&self, load: LoadKind) -> Option<Row> {
        /// Of the true slowdown.
        const TOLERANCE: f64 = 0.15;
        let [seen, known] = [&self.seen, &self.true_ratios].map(|all| stats::mean(all));
        let (seen, known) = (seen? - 1.0, known? - 1.0);
        (!load.is_stream()).then(|| Row {
            id: "V19",
            what: format!("the slow cell of these tables of {load}: slowdown seen"),
            promised: format!(
                "{:.2} % by the kernel's account, ± 15 % of it",
                100.0 * known
            ),
            seen: format!("{:+.2} %", 100.0 * seen),
            verdict: Verdict::of((seen - known).abs() <= TOLERANCE * known),
        })
    }

    /// The answer that the tables are to find, by the kernel's account.
    fn known_answer(&self, load: LoadKind) -> Row {
        let slowdowns: Vec<f64> = self.true_ratios.iter().map(|ratio| ratio - 1.0).collect();
        let what = format!("the slow cell of these tables of {load}");
        Row::true_slowdown("V19", what, &slowdowns, TRUE_SLOWDOWN)
    }

    /// A figure that could not be compared was not found.
    fn add(&mut self, table: &Table) {
        let report = assess(&table.run);
        self.generations += table.run.samples.last().map_or(0, |last| last.block + 1);
        self.fate.add(&report);
        self.true_ratios.extend(table.true_ratio);
        for (found, figure) in self.found.iter_mut().zip(Figure::ALL) {
            let verdict = figure.verdict(&report);
            let is_worse = |ratio: f64| (ratio > 1.0) == (figure == Figure::Demand);
            found.add(verdict.is_some_and(|v| {
                v.verdict == Some(Judgement::Different) && is_worse(v.ratio.value)
            }));
        }
        if let Some(verdict) = Figure::Demand.verdict(&report) {
            self.seen.push(verdict.ratio.value);
            self.detectable.extend(verdict.smallest_detectable);
        }
    }
}

#[cfg(test)]
mod tests;
