//! Two runs compared cell by cell.
//!
//! They were made one after the other, so nothing pairs their samples, and a machine that was faster on the
//! second day looks like a change in every cell. Ratios to the base of each run's own do not: there, samples
//! of one block are set against each other first.

mod apart;
mod facts;
mod samples;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeMap;

use crate::model::{
    Cell, CellDiff, CellReport, Change, DiffReport, LeftOut, LoadKind, MeasuredIn, Pairing,
    QuantityDiff, RunReport,
};
use crate::stats::{self, Comparison, Judged, Verdict};
use crate::store::Run;

use super::gate::{Guarded, Ruling};
use super::quantities::{QUANTITIES, Quantity, is_said_twice};
use super::verdicts::verdict_of;
use samples::{Found, Series, Side};

/// What is asked of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ask {
    /// Compare ratios to the base of each run's own.
    pub relative: bool,
    /// Fail where a cell is worse by more than this share.
    pub fail_on: Option<f64>,
}

/// Why two runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// One run twice.
    #[error("both directories hold run `{0}`: name two different runs")]
    SameRun(String),
    /// Nothing to compare.
    #[error("the runs have no cell in common: {0}")]
    NothingInCommon(
        /// The nearest cells, what differs between them, and what to do.
        String,
    ),
    /// Cells in common, of which none can be compared; the reason for the first.
    #[error("no cell can be compared: {0}")]
    NoFigures(String),
    /// A gate without verdicts.
    #[error(
        "--fail-on needs verdicts, and run `{run}` has {blocks} whole blocks of at least {least}: \
         give it more blocks"
    )]
    TooShort {
        /// The run.
        run: String,
        /// Its whole blocks.
        blocks: u32,
        /// How many it takes.
        least: u32,
    },
}

/// One comparison of the table on its way to a verdict.
struct Entry {
    cell: usize,
    quantity: &'static Quantity,
    series: [Series; 2],
    comparison: Comparison,
}

impl Entry {
    fn guarded(&self) -> Guarded<'_> {
        Guarded {
            quantity: self.quantity,
            comparison: &self.comparison,
        }
    }
}

/// Compares run `b` with run `a`.
///
/// # Errors
/// They are one run, have nothing in common, or are too short for what is asked.
pub fn diff(a: &Run, b: &Run, ask: &Ask) -> Result<DiffReport, Refused> {
    refuse_same(a, b)?;
    let reports = [super::assess(a), super::assess(b)];
    let confidence = a.header.confidence.max(b.header.confidence);
    let margin = a.header.margin.min(b.header.margin);
    let quick_look = reports.iter().any(|r| r.run.quick_look);
    if ask.fail_on.is_some() {
        refuse_quick_look(&reports)?;
    }
    let matched = matched(&reports)?;
    let sides = [Side::of(a, &reports[0]), Side::of(b, &reports[1])];
    let Table {
        entries,
        mut cells,
        left_out,
    } = Table::of(&sides, &matched, ask.relative, confidence);
    if entries.is_empty() {
        return Err(Refused::NoFigures(first_cause(&left_out)));
    }
    let comparisons: Vec<Comparison> = entries.iter().map(|e| e.comparison.clone()).collect();
    let judged = stats::judge(&comparisons, margin, confidence);
    let gate = ask.fail_on.map(|loss| {
        let detectable: Vec<f64> = judged.iter().map(|j| j.smallest_detectable).collect();
        let guarded: Vec<Guarded<'_>> = entries.iter().map(Entry::guarded).collect();
        Ruling::of(&guarded, &detectable, loss, confidence)
    });
    for (at, (entry, judged)) in entries.into_iter().zip(judged).enumerate() {
        let name = entry.quantity.name.to_owned();
        let into = &mut cells[entry.cell].comparisons;
        let mut compared = compared(entry, judged, quick_look);
        if let Some(gate) = &gate {
            compared.trips_gate = Some(gate.tripped[at]);
            compared.gate_catches_ratio = gate.catches[at];
        }
        into.insert(name, compared);
    }
    let differences = facts::differences([&a.header, &b.header], &reports, &matched);
    let gate = gate.map(|gate| gate.report());
    let warnings = warnings::all(&reports, quick_look, gate.as_ref(), &left_out);
    let [a, b] = reports.map(|r| r.run);
    Ok(DiffReport {
        schema: "hopyard/diff/1".to_owned(),
        a,
        b,
        differences,
        pairing: Pairing::Unpaired,
        relative: ask.relative,
        confidence,
        margin,
        quick_look,
        cells,
        left_out,
        gate,
        warnings,
    })
}

/// A copy of a run is that run.
fn refuse_same(a: &Run, b: &Run) -> Result<(), Refused> {
    let identity = |run: &Run| {
        let header = &run.header;
        let host = header.environment.hostname.clone();
        (header.id.clone(), header.seed, header.started.clone(), host)
    };
    if identity(a) == identity(b) {
        return Err(Refused::SameRun(a.header.id.clone()));
    }
    Ok(())
}

fn refuse_quick_look(reports: &[RunReport; 2]) -> Result<(), Refused> {
    match reports.iter().find(|r| r.run.quick_look) {
        Some(short) => Err(Refused::TooShort {
            run: short.run.id.clone(),
            blocks: short.run.blocks,
            least: crate::plan::FOR_A_VERDICT,
        }),
        None => Ok(()),
    }
}

/// A cell of either plan, and its place in each.
struct Matched {
    cell: Cell,
    at: [Option<usize>; 2],
}

/// All cells of A in its order, then what only B has.
fn matched(reports: &[RunReport; 2]) -> Result<Vec<Matched>, Refused> {
    let cells = reports
        .each_ref()
        .map(|r| r.cells.iter().map(cell_of).collect::<Vec<_>>());
    let [a, b] = &cells;
    let place = |list: &[Cell], cell: &Cell| list.iter().position(|c| c == cell);
    let of_a = a.iter().enumerate().map(|(at, cell)| Matched {
        cell: cell.clone(),
        at: [Some(at), place(b, cell)],
    });
    let of_b = b.iter().enumerate().filter(|(_, cell)| !a.contains(cell));
    let all: Vec<Matched> = of_a
        .chain(of_b.map(|(at, cell)| Matched {
            cell: cell.clone(),
            at: [None, Some(at)],
        }))
        .collect();
    if all.iter().any(|m| m.at.iter().all(Option::is_some)) {
        return Ok(all);
    }
    Err(Refused::NothingInCommon(apart::why(a, b)))
}

fn cell_of(report: &CellReport) -> Cell {
    Cell {
        path: report.path.clone(),
        peer: report.peer,
        load: report.load,
        axes: report.axes.clone(),
    }
}

fn first_cause(left_out: &[LeftOut]) -> String {
    left_out.first().map_or_else(
        || "there are no samples".to_owned(),
        |out| format!("{}: {}", out.cell, out.cause),
    )
}

/// Everything that can be compared, the cells it belongs to, and what cannot.
#[derive(Default)]
struct Table {
    entries: Vec<Entry>,
    cells: Vec<CellDiff>,
    left_out: Vec<LeftOut>,
}

impl Table {
    fn of(sides: &[Side<'_>; 2], matched: &[Matched], relative: bool, confidence: f64) -> Self {
        let mut table = Self::default();
        for one in matched {
            match samples::of_cell(sides, one.at, relative) {
                Ok(found) => table.compare(&one.cell, &found, confidence),
                Err((measured_in, cause)) => table.leave_out(&one.cell, measured_in, cause),
            }
        }
        table
    }

    fn compare(&mut self, cell: &Cell, found: &Found<'_>, confidence: f64) {
        let before = self.entries.len();
        for quantity in quantities(cell.load) {
            let entry = found
                .series(quantity, cell.load, confidence)
                .and_then(|series| {
                    let [a, b] = &series;
                    let comparison = stats::compare_unpaired(&b.values, &a.values, confidence)?;
                    Some(Entry {
                        cell: self.cells.len(),
                        quantity,
                        series,
                        comparison,
                    })
                });
            match entry {
                Some(entry) => self.entries.push(entry),
                None if found.has(quantity) => {
                    let why = "in one run only, or not above 0 in every sample";
                    let cause = format!("{}: {why}", quantity.name);
                    self.leave_out(cell, MeasuredIn::Both, cause);
                }
                // Too few observations for a percentile are no news.
                None => {}
            }
        }
        if self.entries.len() > before {
            self.cells.push(CellDiff {
                cell: cell.clone(),
                base: found.base.clone(),
                comparisons: BTreeMap::new(),
            });
        }
    }

    fn leave_out(&mut self, cell: &Cell, measured_in: MeasuredIn, cause: String) {
        self.left_out.push(LeftOut {
            cell: cell.clone(),
            measured_in,
            cause,
        });
    }
}

/// What is compared of a load: what the verdicts of a run are about, each once.
fn quantities(load: LoadKind) -> impl Iterator<Item = &'static Quantity> {
    QUANTITIES
        .iter()
        .filter(move |q| q.compared && q.applies(load) && !is_said_twice(q, load))
}

fn compared(entry: Entry, judged: Judged, quick_look: bool) -> QuantityDiff {
    let [a, b] = entry.series.map(|series| series.estimate);
    let verdict = verdict_of(&judged, quick_look);
    let up = judged.ratio.value > 1.0;
    let change = entry.quantity.more_is_better().map(|more| {
        if more == up {
            Change::Better
        } else {
            Change::Worse
        }
    });
    QuantityDiff {
        a,
        b,
        change: change.filter(|_| verdict == Some(Verdict::Different)),
        verdict,
        smallest_detectable: judged.detectable(),
        ratio: judged.ratio,
        trips_gate: None,
        gate_catches_ratio: None,
    }
}
