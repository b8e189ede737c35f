//! V18: equal cells, measured by turns on a machine that is disturbed on purpose, are called different as often as
//! expected by chance.
//!
//! Each comparison is judged as a table of its own and without a margin, so that neither the correction over a table
//! nor *equivalent* hides an alarm. More than 7 % misses the promise; less than 3 % is reported, because intervals are
//! then wider than needed.

use hopyard::assess::assess;
use hopyard::measure::Sampler;
use hopyard::model::{LoadKind, Peer, RunReport};
use hopyard::stats::Verdict as Judgement;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::hog::{self, Pattern};
use crate::kept::Table;
use crate::pair::{Fate, Figure, GENERATIONS, Pair, Share, WARM_UP_MS, WINDOW_MS, loads_by_turns};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V18",
    title: "equal cells by turns on a machine disturbed on purpose",
    only_when_named: true,
    run,
};

/// Each has two comparisons.
const TABLES: usize = 210;
const FEWEST: f64 = 0.03;
const MOST: f64 = 0.07;

/// The report about one pair of equal cells.
struct Said {
    load: LoadKind,
    pattern: Pattern,
    report: RunReport,
}

impl Said {
    /// How often the interval of a figure's ratio does not contain 1; figures without a comparison are left out.
    fn alarms(&self, figures: &[Figure]) -> Share {
        let mut share = Share::default();
        for verdict in figures.iter().filter_map(|f| f.verdict(&self.report)) {
            share.add(verdict.ratio.low > 1.0 || verdict.ratio.high < 1.0);
        }
        share
    }

    /// Whether anything is called different in the table that the run prints.
    fn is_alarmed(&self) -> bool {
        let cells = self.report.cells.iter();
        let mut verdicts = cells.flat_map(|cell| cell.verdicts.values());
        verdicts.any(|one| one.verdict == Some(Judgement::Different))
    }
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    bench.two_cpus()?;
    let sampler = bench.sampler(WINDOW_MS, WARM_UP_MS)?;
    let mut rng = bench.rng(18);
    let tables = bench.tables(TABLES, 14);
    let mut todo: Vec<(LoadKind, Pattern)> = loads_by_turns()
        .flat_map(|load| Pattern::ALL.map(|pattern| (load, pattern)))
        .cycle()
        .take(tables)
        .collect();
    todo.shuffle(&mut rng);
    let mut all = Vec::with_capacity(tables);
    for (done, (load, pattern)) in (0_u64..).zip(todo) {
        if done % 10 == 0 {
            hopyard::note(format_args!("V18: table {done} of {tables}"));
        }
        let name = format!("V18-{done:03}-{load}-{}", pattern.word());
        let table = bench.table(&name, || {
            let _hog = hog::start(bench, pattern, bench.seed + done)?;
            equal(&sampler, load, &mut rng)
        })?;
        // Later ones may have been kept, where the random order was another.
        let Some(table) = table else { continue };
        all.push(Said {
            load,
            pattern,
            report: assess(&table.run),
        });
    }
    let mut rows = rows(bench, &all)?;
    rows.extend(Row::cut_short(
        "V18",
        "all tables".to_owned(),
        all.len(),
        tables,
    ));
    Ok(rows)
}

fn equal(sampler: &Sampler, load: LoadKind, rng: &mut ChaCha8Rng) -> Result<Table, Failure> {
    let cell = cells::cell("veth", Peer::Local, load, |_| {});
    Ok(Pair::new(sampler, &cell, &cell, 0.0)
        .take(GENERATIONS, rng)?
        .into())
}

fn rows(bench: &Bench, all: &[Said]) -> Result<Vec<Row>, Failure> {
    let alarms = |figures: &[Figure], is_meant: &dyn Fn(&Said) -> bool| {
        let meant = all.iter().filter(|said| is_meant(said));
        meant.fold(Share::default(), |sum, said| sum.plus(said.alarms(figures)))
    };
    let mut fate = Fate::default();
    for said in all {
        fate.add(&said.report);
    }
    let mut rows = vec![promised(bench, alarms(&Figure::ALL, &|_| true), fate)?];
    let mut state = |what: String, share: Share| -> Result<(), Failure> {
        if share.of > 0 {
            rows.push(Row {
                id: "V18",
                what,
                promised: String::new(),
                seen: share.text()?,
                verdict: Verdict::Stated,
            });
        }
        Ok(())
    };
    for pattern in Pattern::ALL {
        for figure in Figure::ALL {
            let share = alarms(&[figure], &|said| said.pattern == pattern);
            state(
                format!("of these, {}: {}", pattern.name(), figure.name()),
                share,
            )?;
        }
    }
    for load in loads_by_turns() {
        let share = alarms(&Figure::ALL, &|said| said.load == load);
        state(format!("of these, {load}"), share)?;
    }
    let mut tables = Share::default();
    for said in all {
        tables.add(said.is_alarmed());
    }
    state(
        "tables of these runs with any 'different'".to_owned(),
        tables,
    )?;
    Ok(rows)
}

fn promised(bench: &Bench, alarms: Share, fate: Fate) -> Result<Row, Failure> {
    let share = alarms.estimate()?;
    let fewer = if share.value < FEWEST {
        "; fewer than 3 %: intervals are wider than they need be"
    } else {
        ""
    };
    // A quick look has too few comparisons to distinguish 7 % from more.
    let seen = bench.pick(share.value, share.low);
    Ok(Row {
        id: "V18",
        what: format!(
            "equal cells of veth, every load that takes turns, {GENERATIONS} generations, two patterns of disturbance: intervals without 1"
        ),
        promised: "5 ± 2 %".to_owned(),
        seen: format!("{}{fewer}; {fate}", alarms.text()?),
        verdict: Verdict::of(seen <= MOST),
    })
}
