//! V18: equal cells, measured by turns on a machine that is disturbed on purpose, are called different as often as
//! expected by chance.
//!
//! Each comparison is judged as a table of its own and without a margin, so that neither the correction over a table
//! nor *equivalent* hides an alarm. More than 7 % misses the promise; less than 3 % is reported, because intervals are
//! then wider than needed.

use hopyard::assess::assess;
use hopyard::model::{LoadKind, Peer, RunReport};
use hopyard::stats::Verdict as Judgement;
use rand::seq::SliceRandom;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::hog::{self, Pattern};
use crate::pair::{
    Fate, Figure, GENERATIONS, Pair, Settings, Share, WARM_UP_MS, WINDOW_MS, loads_by_turns,
};

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
    /// How often the interval of a figure's ratio does not contain 1; figures without a comparison are left out, and
    /// [`missing`] counts them.
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
        let cell = cells::cell("veth", Peer::Local, load, |_| {});
        let settings = Settings::of([cell.clone(), cell], GENERATIONS);
        let table = bench.table(&name, &settings, || {
            let mut hog = hog::start(bench, pattern, bench.seed + done)?;
            let pair = Pair::new(&sampler, &settings);
            let taken = pair.take(GENERATIONS, &mut bench.rng_of_table(18, done))?;
            hog::check_still_runs(&mut hog)?;
            Ok(taken.into())
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

fn rows(bench: &Bench, all: &[Said]) -> Result<Vec<Row>, Failure> {
    let alarms = |figures: &[Figure], is_meant: &dyn Fn(&Said) -> bool| {
        let meant = all.iter().filter(|said| is_meant(said));
        meant.fold(Share::default(), |sum, said| sum.plus(said.alarms(figures)))
    };
    let mut fate = Fate::default();
    for said in all {
        fate.add(&said.report);
    }
    let asked = (all.len() * Figure::ALL.len()) as u64;
    let whole = alarms(&Figure::ALL, &|_| true);
    let mut rows = vec![promised(bench, whole, asked, fate)?];
    rows.extend(missing(all));
    rows.extend(fate.too_quiet("V18", "these tables".to_owned()));
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

/// A failed row for each figure that some tables do not compare.
fn missing(all: &[Said]) -> Vec<Row> {
    let mut rows = Vec::new();
    for pattern in Pattern::ALL {
        for figure in Figure::ALL {
            let tables = all.iter().filter(|said| said.pattern == pattern);
            let is_missing = |said: &&Said| figure.verdict(&said.report).is_none();
            let missing = tables.clone().filter(is_missing).count();
            if missing > 0 {
                rows.push(Row::without_figures(
                    "V18",
                    format!("of these, {}: {}", pattern.name(), figure.name()),
                    Verdict::Failed(format!(
                        "not measured in {missing} of {} tables",
                        tables.count()
                    )),
                ));
            }
        }
    }
    rows
}

/// Alarms of comparisons that are missing are not known, so that the promise is not shown to be kept.
fn judged(seen: f64, had: u64, asked: u64) -> Verdict {
    match Verdict::of(seen <= MOST) {
        Verdict::Within if had < asked => Verdict::Failed(format!(
            "{} of {asked} comparisons are missing",
            asked - had
        )),
        verdict => verdict,
    }
}

/// The row of the promise; `asked` comparisons make it whole.
fn promised(bench: &Bench, alarms: Share, asked: u64, fate: Fate) -> Result<Row, Failure> {
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
        verdict: judged(seen, alarms.of, asked),
    })
}

#[cfg(test)]
mod tests {
    use hopyard_analysis::testing;

    use super::*;

    fn said(pattern: Pattern, report: RunReport) -> Said {
        Said {
            load: LoadKind::TcpStream,
            pattern,
            report,
        }
    }

    #[test]
    fn a_comparison_that_is_missing_keeps_no_promise() {
        assert_eq!(judged(0.05, 420, 420), Verdict::Within);
        assert_eq!(judged(0.08, 418, 420), Verdict::Missed);
        let Verdict::Failed(why) = judged(0.05, 418, 420) else {
            panic!("two comparisons are missing");
        };
        assert_eq!(why, "2 of 420 comparisons are missing");
    }

    #[test]
    fn each_missing_figure_has_a_row() {
        let whole = || assess(&testing::compared(1.0));
        let mut without = whole();
        without.cells[1].verdicts.clear();
        let [one, other] = Pattern::ALL;
        assert!(missing(&[said(one, whole()), said(other, whole())]).is_empty());
        let rows = missing(&[said(one, whole()), said(one, without), said(other, whole())]);
        assert_eq!(rows.len(), Figure::ALL.len());
        for (row, figure) in rows.iter().zip(Figure::ALL) {
            let what = format!("of these, {}: {}", one.name(), figure.name());
            assert_eq!(row.what, what);
            let why = "not measured in 1 of 2 tables".to_owned();
            assert_eq!(row.verdict, Verdict::Failed(why));
        }
    }
}
