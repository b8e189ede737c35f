//! V20: the intervals that a run prints contain the mean of a run twenty times as long, on an undisturbed machine and
//! on one disturbed on purpose.
//!
//! There are 21 short runs of a load, one after another. Each is compared with all the others together, which are a run
//! twenty times as long that shares no sample with it.
//!
//! A cell's own figure is tested on runs of the same time besides: all generations are dealt out in turn, like cards, to as many
//! runs. Machines become faster and slower over minutes, which no short run can know; what is covered at the same time and not at
//! other times is missed for that reason, and not by the statistics.

use hopyard::assess::assess;
use hopyard::model::{Peer, RunReport};
use hopyard::store::Run;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::hog::{self, Pattern};
use crate::pair::{
    Fate, Figure, GENERATIONS, Pair, Settings, Share, WARM_UP_MS, WINDOW_MS, loads_by_turns,
};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V20",
    title: "printed intervals hold the mean of a run twenty times as long",
    only_when_named: true,
    run,
};

/// Runs of a load: each is compared with the twenty others.
const RUNS: usize = 21;
const PROMISE: f64 = 0.93;

/// How often intervals held the mean of the long run: those of the main figure and of service demand.
#[derive(Default)]
struct Tally {
    ratios: [Share; 2],
    /// Of the cells' own figures, in runs of the same time.
    own: [Share; 2],
    /// The same in runs of other times.
    own_later: [Share; 2],
    fate: Fate,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    bench.two_cpus()?;
    let sampler = bench.sampler(WINDOW_MS, WARM_UP_MS)?;
    let mut table_number = 0;
    let mut rows = Vec::new();
    for pattern in [None, Some(Pattern::RealTime)] {
        let mut tally = Tally::default();
        let (mut had, mut asked) = (0, 0);
        let when = pattern.map_or("left alone", Pattern::name);
        for load in loads_by_turns() {
            hopyard::note(format_args!("V20: {load}, {when}"));
            let mut hog = pattern
                .map(|pattern| hog::start(bench, pattern, bench.seed))
                .transpose()?;
            let word = pattern.map_or("left-alone", Pattern::word);
            let mut runs = Vec::new();
            let of_load = bench.tables(RUNS, 3).max(2);
            // A bridge beside a veth pair.
            let paths = ["veth", "bridge"];
            let cells = paths.map(|path| cells::cell(path, Peer::Local, load, |_| {}));
            let settings = Settings::of(cells, generations(bench));
            for nth in 0..of_load {
                let name = format!("V20-{word}-{load}-{nth:02}");
                let table = bench.table(&name, &settings, || {
                    let pair = Pair::new(&sampler, &settings);
                    let order = &mut bench.rng_of_table(20, table_number);
                    let taken = pair.take(generations(bench), order)?;
                    if let Some(hog) = &mut hog {
                        hog::check_still_runs(hog)?;
                    }
                    Ok(taken.into())
                })?;
                table_number += 1;
                runs.extend(table.map(|table| table.run));
            }
            (had, asked) = (had + runs.len(), asked + of_load);
            // One run has no others to be compared with.
            if runs.len() > 1 {
                tally.add(&runs);
            }
        }
        if tally.is_empty() {
            rows.push(Row::not_measured("V20", when.to_owned()));
            continue;
        }
        rows.extend(tally.rows(bench, pattern)?);
        rows.extend(Row::cut_short("V20", when.to_owned(), had, asked));
    }
    Ok(rows)
}

/// Generations of a short run.
fn generations(bench: &Bench) -> u32 {
    bench.pick(GENERATIONS, 3)
}

/// All runs but one, as one run.
fn others(runs: &[Run], without: usize) -> Run {
    let header = runs[without].header.clone();
    let mut samples = Vec::new();
    let rest = runs.iter().enumerate().filter(|(at, _)| *at != without);
    for (nth, (_, run)) in (0..).zip(rest) {
        samples.extend(run.samples.iter().cloned().map(|mut sample| {
            sample.block += nth * GENERATIONS;
            sample
        }));
    }
    Run {
        header,
        samples,
        profiles: Vec::new(),
        end: runs[without].end,
    }
}

/// The generations of all runs, in the order of time, dealt out in turn to as many runs.
fn dealt(runs: &[Run]) -> Vec<Run> {
    let hands = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    let mut all = runs.to_vec();
    for run in &mut all {
        run.samples.clear();
    }
    for (nth, run) in (0..).zip(runs) {
        for sample in &run.samples {
            let generation = nth * GENERATIONS + sample.block;
            let mut sample = sample.clone();
            sample.block = generation / hands;
            all[(generation % hands) as usize].samples.push(sample);
        }
    }
    all
}

impl Tally {
    fn is_empty(&self) -> bool {
        self.own[0].of == 0
    }

    fn add(&mut self, runs: &[Run]) {
        each_beside_others(runs, |short, long| {
            self.fate.add(short);
            for (place, figure) in Figure::ALL.into_iter().enumerate() {
                self.ratios[place].add(ratio_covered(figure, short, long));
            }
            add_own(&mut self.own_later, short, long);
        });
        each_beside_others(&dealt(runs), |short, long| {
            add_own(&mut self.own, short, long);
        });
    }

    fn rows(&self, bench: &Bench, pattern: Option<Pattern>) -> Result<Vec<Row>, Failure> {
        let when = pattern.map_or("a machine left alone", Pattern::name);
        let mut rows = Vec::new();
        for (what, shares) in [
            ("ratio to veth", &self.ratios),
            ("cell's own, other times", &self.own_later),
            ("cell's own, the same time", &self.own),
        ] {
            for (figure, share) in Figure::ALL.into_iter().zip(shares) {
                let seen = share.estimate()?;
                rows.push(Row {
                    id: "V20",
                    what: format!(
                        "veth and bridge, every load that takes turns, {} generations, {when}: {what} {}",
                        generations(bench),
                        figure.name()
                    ),
                    promised: "covered ≥ 93 %, or not shown to be less".to_owned(),
                    seen: format!(
                        "{}{}; {}",
                        share.text()?,
                        bench.pick("", "; too few to tell"),
                        self.fate
                    ),
                    verdict: Verdict::of(seen.high >= PROMISE),
                });
            }
        }
        if pattern.is_some() {
            rows.extend(self.fate.too_quiet("V20", when.to_owned()));
        }
        Ok(rows)
    }
}

/// Looks at the report of each run beside that of all the others together.
fn each_beside_others(runs: &[Run], mut look: impl FnMut(&RunReport, &RunReport)) {
    for (at, run) in runs.iter().enumerate() {
        look(&assess(run), &assess(&others(runs, at)));
    }
}

/// Counts whether the intervals of both cells' own figures hold those of the long run.
fn add_own(shares: &mut [Share; 2], short: &RunReport, long: &RunReport) {
    for (share, figure) in shares.iter_mut().zip(Figure::ALL) {
        for cell in 0..2 {
            share.add(own_covered(figure, cell, short, long));
        }
    }
}

/// Does the short run's interval hold the long run's ratio? A ratio that is missing is not covered.
fn ratio_covered(figure: Figure, short: &RunReport, long: &RunReport) -> bool {
    let (short, long) = (figure.verdict(short), figure.verdict(long));
    short.zip(long).is_some_and(|(short, long)| {
        short.ratio.low <= long.ratio.value && long.ratio.value <= short.ratio.high
    })
}

fn own_covered(figure: Figure, cell: usize, short: &RunReport, long: &RunReport) -> bool {
    let (short, long) = (figure.estimate(short, cell), figure.estimate(long, cell));
    short
        .zip(long)
        .is_some_and(|(short, long)| short.low <= long.value && long.value <= short.high)
}
