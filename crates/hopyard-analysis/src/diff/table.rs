//! The table of comparisons: each cell and quantity by the figures of its runs.

use std::collections::BTreeMap;

use super::runs::{Absent, Figures, Found, Gap, Groups, all_cells};
use crate::gate::{Guarded, Ruling};
use crate::model::{
    Cell, CellDiff, Change, Gate, IntervalFrom, LeftOut, LoadKind, MeasuredIn, QuantityDiff,
};
use crate::quantities::{QUANTITIES, Quantity, is_said_twice};
use crate::stats::{self, Estimate, Judged, RunsCompared, Samples, Verdict};
use crate::units::float;

/// Everything that can be compared, the cells it belongs to, and what cannot be compared.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    pub(super) cells: Vec<CellDiff>,
    pub(super) left_out: Vec<LeftOut>,
    /// How many of them A has figures of, and B was asked for.
    pub(super) lost: usize,
    /// How many of them A has figures of, and a ratio that somebody asked for.
    pub(super) unseen: usize,
    /// Cells, and single quantities of a cell, that are compared although B's figures are not as good as A's.
    pub(super) doubtful: Vec<String>,
}

/// One comparison before its verdict.
struct Entry {
    cell: usize,
    quantity: &'static Quantity,
    /// The figure of each side.
    sides: [Estimate; 2],
    /// Runs of each side that have it.
    runs: [usize; 2],
    /// The scatter of ln(figure) between runs if only their blocks scattered.
    within_log: f64,
    /// The ratio with the scatter within these runs only.
    within: Estimate,
    /// The comparison by runs, if the scatter between runs is known.
    between: Option<RunsCompared>,
}

impl Entry {
    /// `None` if a side has no figure, or one that is not above 0.
    fn of(
        cell: usize,
        quantity: &'static Quantity,
        figures: &Figures,
        confidence: f64,
    ) -> Option<Self> {
        let [a, b] = &figures.sides;
        let values = |runs: &Vec<Estimate>| runs.iter().map(|run| run.value).collect::<Vec<_>>();
        let repeats: Vec<_> = figures.repeats.iter().map(values).collect();
        Some(Self {
            cell,
            quantity,
            sides: [together(a, confidence)?, together(b, confidence)?],
            runs: [a.len(), b.len()],
            within_log: within_log(&figures.sides)?,
            within: stats::ratio_within_runs(b, a, confidence)?,
            between: stats::compare_runs(&values(b), &values(a), &repeats, confidence),
        })
    }
}

/// The figure of a side: that of its only run, or the geometric mean of its runs with an interval over them.
fn together(runs: &[Estimate], confidence: f64) -> Option<Estimate> {
    match runs {
        [one] => one.at(confidence),
        _ => {
            let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
            stats::log_mean_interval(&Samples::new(&values).ok()?, confidence)
        }
    }
}

/// The root mean square of the standard errors within all runs.
fn within_log(sides: &[Vec<Estimate>; 2]) -> Option<f64> {
    let errors: Option<Vec<f64>> = sides.iter().flatten().map(stats::se_log_within).collect();
    let squares: Vec<f64> = errors?.iter().map(|se| se.powi(2)).collect();
    stats::mean(&squares).map(f64::sqrt)
}

impl Table {
    pub(super) fn of(groups: &Groups<'_>, relative: bool, confidence: f64) -> Self {
        let mut table = Self::default();
        for cell in all_cells(&groups.sides) {
            match groups.find(cell, relative) {
                Ok(found) => {
                    let is_doubtful = found.is_doubtful();
                    if is_doubtful {
                        table.doubtful.push(cell.to_string());
                    }
                    table.compare(&found, is_doubtful, confidence);
                }
                Err(gap) => table.leave_out(cell, gap),
            }
        }
        table
    }

    fn compare(&mut self, found: &Found<'_>, is_doubtful: bool, confidence: f64) {
        let before = self.entries.len();
        for quantity in quantities(found.cell.load) {
            if found.is_generator_limited(quantity) {
                let why = "no search of either side found a limit, so both figures are what the generator can send";
                let cause = format!("{}: {why}", quantity.name);
                let gap = Gap {
                    measured_in: MeasuredIn::Both,
                    why: Absent::Lost(cause.clone()),
                    cause,
                };
                self.leave_out(found.cell, gap);
                continue;
            }
            let figures = found.figures(quantity);
            match Entry::of(self.cells.len(), quantity, &figures, confidence) {
                Some(entry) => {
                    self.entries.push(entry);
                    if !is_doubtful && found.is_thinned(quantity) {
                        let of = format!("{} ({})", found.cell, quantity.name);
                        self.doubtful.push(of);
                    }
                }
                None if found.has(quantity) => {
                    let why = "in runs of one side only, or not above 0";
                    let cause = format!("{}: {why}", quantity.name);
                    let measured_in = match figures.sides.each_ref().map(Vec::is_empty) {
                        [true, false] => MeasuredIn::B,
                        [false, true] => MeasuredIn::A,
                        _ => MeasuredIn::Both,
                    };
                    let why = Absent::Lost(cause.clone());
                    let gap = Gap {
                        measured_in,
                        cause,
                        why,
                    };
                    self.leave_out(found.cell, gap);
                }
                // Too few observations for a percentile are not worth a message.
                None => {}
            }
        }
        if self.entries.len() > before {
            self.cells.push(CellDiff {
                cell: found.cell.clone(),
                base: found.base_name(),
                comparisons: BTreeMap::new(),
            });
        }
    }

    fn leave_out(&mut self, cell: &Cell, gap: Gap) {
        let Gap {
            measured_in,
            cause,
            why,
        } = gap;
        let is_in_a = matches!(measured_in, MeasuredIn::A | MeasuredIn::Both);
        self.lost += usize::from(is_in_a && why.was_asked_for());
        self.unseen += usize::from(is_in_a && why != Absent::NoBase);
        self.left_out.push(LeftOut {
            cell: cell.clone(),
            measured_in,
            cause,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Judges the comparisons with a known scatter between runs as one table, and puts all comparisons into their
    /// cells. Returns the gate, if an allowed loss was given.
    pub(super) fn judge(
        &mut self,
        loss: Option<f64>,
        margin: f64,
        confidence: f64,
    ) -> Option<Gate> {
        let entries = std::mem::take(&mut self.entries);
        let known = || {
            entries
                .iter()
                .filter_map(|entry| Some((entry, entry.between.as_ref()?)))
        };
        let comparisons: Vec<_> = known().map(|(_, runs)| runs.comparison.clone()).collect();
        let judged = stats::judge(&comparisons, margin, confidence);
        let ruling = loss.map(|loss| {
            let detectable: Vec<f64> = judged.iter().map(|j| j.smallest_detectable).collect();
            let guarded: Vec<_> = known()
                .map(|(entry, runs)| Guarded {
                    quantity: entry.quantity,
                    comparison: &runs.comparison,
                })
                .collect();
            Ruling::of(&guarded, &detectable, loss, confidence)
        });
        let lost = self.lost + self.doubtful.len();
        let gate = loss
            .zip(ruling.as_ref())
            .map(|(loss, ruling)| gate((&entries, lost), ruling, loss, confidence));
        let mut judged = judged.into_iter().enumerate();
        for entry in entries {
            let answer = entry.between.is_some().then(|| judged.next()).flatten();
            let ruled = ruling.as_ref().zip(answer.as_ref().map(|(at, _)| *at));
            let compared = QuantityDiff {
                trips_gate: ruled.map(|(ruling, at)| ruling.tripped[at]),
                gate_catches_ratio: ruled.and_then(|(ruling, at)| ruling.catches[at]),
                ..compared(&entry, answer.map(|(_, judged)| judged))
            };
            let into = &mut self.cells[entry.cell].comparisons;
            into.insert(entry.quantity.name.to_owned(), compared);
        }
        gate
    }
}

/// The gate over all comparisons. It is blind to those whose scatter between runs is not known, to the cells and figures that B
/// lost, and to cells whose figures of B are doubtful.
fn gate((entries, lost): (&[Entry], usize), ruling: &Ruling, loss: f64, confidence: f64) -> Gate {
    let unknown = entries.iter().filter(|e| e.between.is_none()).count();
    let mut gate = ruling.report(lost, unknown);
    gate.blocks_needed = None;
    let mut seen = ruling.blind.iter();
    let is_blind = |entry: &&Entry| match entry.between {
        Some(_) => seen.next() == Some(&true),
        None => true,
    };
    let blind: Vec<&Entry> = entries.iter().filter(is_blind).collect();
    let table_confidence = 1.0 - (1.0 - confidence) / float(entries.len() as u64);
    gate.runs_needed = runs_needed(&blind, loss, table_confidence);
    gate
}

/// How many runs of each side would show the loss in all of these: more than there are.
fn runs_needed(blind: &[&Entry], loss: f64, confidence: f64) -> Option<u32> {
    // If the scatter between runs is not known, it is at least that of the blocks.
    let scatter = |e: &&Entry| e.between.as_ref().map_or(e.within_log, |c| c.scatter_log);
    let most = blind.iter().map(scatter).reduce(f64::max)?;
    let judged = blind.iter().filter(|e| e.between.is_some());
    let there = judged.map(|e| e.runs[0].min(e.runs[1])).max().unwrap_or(0);
    let more = u32::try_from(there + 1).ok()?;
    Some(stats::runs_needed(most, loss, confidence)?.max(more))
}

/// The quantities of a load that are compared: those of a run's own verdicts, each once.
fn quantities(load: LoadKind) -> impl Iterator<Item = &'static Quantity> {
    QUANTITIES
        .iter()
        .filter(move |q| q.compared && q.applies(load) && !is_said_twice(q, load))
}

/// A comparison with its verdict, or without one if the scatter between runs is not known.
fn compared(entry: &Entry, judged: Option<Judged>) -> QuantityDiff {
    let [a, b] = entry.sides.clone();
    let [runs_a, runs_b] = entry.runs;
    let verdict = judged.as_ref().map(|judged| judged.verdict);
    let smallest_detectable = judged.as_ref().and_then(Judged::detectable);
    let (ratio, interval_from) = match judged {
        Some(judged) => (judged.ratio, IntervalFrom::Runs),
        None => (entry.within.clone(), IntervalFrom::Blocks),
    };
    let up = ratio.value > 1.0;
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
        runs_a,
        runs_b,
        ratio,
        interval_from,
        run_scatter: entry.between.as_ref().map(|runs| runs.scatter_log.exp_m1()),
        change: change.filter(|_| verdict == Some(Verdict::Different)),
        verdict,
        smallest_detectable,
        trips_gate: None,
        gate_catches_ratio: None,
    }
}
