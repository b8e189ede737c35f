//! The results as text, based only on verdicts.

use crate::document::Block;
use crate::gate;
use crate::model::{CellDiff, Change, DiffReport, IntervalFrom, QuantityDiff};
use crate::number::rough;
use crate::plain;
use crate::quantity::{show_all, words};
use crate::stats::{Estimate, Verdict};

use super::facts::all;
use super::tables::{Layout, exact};

/// A sentence per regression and per improvement, regressions first, then a summary of the rest.
pub(super) fn changes(report: &DiffReport) -> Vec<Block> {
    if all(report).all(|q| q.verdict.is_none()) {
        return Vec::new();
    }
    let layout = Layout::of(report);
    let mut lines = Vec::new();
    for wanted in [Change::Worse, Change::Better] {
        for cell in &report.cells {
            let changed = cell
                .comparisons
                .iter()
                .filter(|(_, q)| q.change == Some(wanted));
            lines.extend(changed.map(|(name, q)| sentence(&layout, cell, name, q, wanted)));
        }
    }
    lines.push(tally(report));
    vec![
        Block::Heading("What the verdicts support, B against A".to_owned()),
        Block::List(lines),
    ]
}

fn sentence(
    layout: &Layout<'_>,
    cell: &CellDiff,
    name: &str,
    q: &QuantityDiff,
    change: Change,
) -> String {
    let what = what(cell, name);
    let values = match &cell.base {
        Some(_) => format!("{} -> {}", exact(q.a.value), exact(q.b.value)),
        None => show_all(name, &[q.a.value, q.b.value]).replacen(" and ", " -> ", 1),
    };
    let change = match change {
        Change::Worse => "worse",
        Change::Better => "better",
    };
    let gate = if q.trips_gate == Some(true) {
        "; trips the gate"
    } else {
        ""
    };
    let size = size(&q.ratio);
    format!(
        "{}: {what} {change}, {size}, {values}{gate}.",
        layout.full_name(&cell.cell)
    )
}

/// The text for a quantity, with its base if ratios to a base are compared.
pub(super) fn what(cell: &CellDiff, name: &str) -> String {
    match &cell.base {
        Some(base) => format!("{} over {}'s", words(name), plain::line(base)),
        None => words(name),
    }
}

/// `-3.8 % (-4.9 to -2.7 %)`.
pub(super) fn size(ratio: &Estimate) -> String {
    let percent = |ratio: f64| {
        let sign = if ratio < 1.0 { "-" } else { "+" };
        format!("{sign}{}", rough(100.0 * (ratio - 1.0).abs()))
    };
    format!(
        "{} % ({} to {} %)",
        percent(ratio.value),
        percent(ratio.low),
        percent(ratio.high)
    )
}

fn tally(report: &DiffReport) -> String {
    let count = |wanted| all(report).filter(|q| q.verdict == wanted).count();
    let unknown = match count(None) {
        0 => String::new(),
        unknown => format!(", {unknown} without a verdict"),
    };
    format!(
        "Of {} comparisons {} are different, {} equivalent, {} inconclusive{unknown}.",
        all(report).count(),
        count(Some(Verdict::Different)),
        count(Some(Verdict::Equivalent)),
        count(Some(Verdict::Inconclusive))
    )
}

/// The result of the gate, and the losses it could detect.
pub(super) fn gate(report: &DiffReport) -> Option<Block> {
    let gate = report.gate.as_ref()?;
    let caught: Vec<f64> = all(report).filter_map(|q| q.gate_catches_ratio).collect();
    let is_known = all(report).all(|q| q.interval_from == IntervalFrom::Runs);
    let way_out = match gate.runs_needed {
        Some(runs) if is_known => format!(" Some {runs} runs of each side would be enough."),
        Some(runs) => format!(
            " How much two runs of the same thing differ here is not known: it takes at least {runs} runs of each side."
        ),
        None if is_known => String::new(),
        None => " How much two runs of the same thing differ here is not known.".to_owned(),
    };
    Some(gate::block(gate, &way_out, &caught))
}
