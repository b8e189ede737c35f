//! A comparison as a comment on a pull request.

use crate::comment::{Comment, differing};
use crate::document::{Block, Cell as Field, Column, Row, Table};
use crate::model::{CellDiff, Change, DiffReport, QuantityDiff};
use crate::number::chosen_percent;
use crate::quantity::show_all;
use crate::stats::Verdict;
use crate::units::counted;

use super::facts::{self, all};
use super::sentences::{self, size, what};
use super::tables::{self, Layout, exact};

/// One comparison and its cell.
type Compared<'a> = (&'a CellDiff, &'a str, &'a QuantityDiff);

/// The comment: the answer, the differences with the gate, and everything else folded by name.
pub(in crate::diff) fn compose(report: &DiffReport) -> Comment {
    let layout = Layout::of(report);
    let changed = changed(report);
    let rows = changed.iter().map(|one| row(&layout, one)).collect();
    let interval = format!("{} interval", chosen_percent(report.confidence));
    let (mut open, more) = differing(Table {
        columns: vec![
            Column::left(&["cell"]),
            Column::left(&["quantity"]),
            Column::right(&["A"]),
            Column::right(&["B"]),
            Column::right(&["B/A"]),
            Column::left(&[&interval]),
            Column::left(&["verdict"]),
        ],
        keys: 1,
        rows,
    });
    open.extend(sentences::gate(report));
    let left_out = facts::left_out(report);
    let warnings = facts::warnings(report);
    let what_differs = match report.differences.len() {
        0 => "Runs and machine: nothing else differs but the time".to_owned(),
        1 => "Runs and machine: 1 fact differs beside the time".to_owned(),
        n => format!(
            "Runs and machine: {} differ beside the time",
            counted(n, "fact")
        ),
    };
    let mut figures = tables::blocks(report);
    figures.push(facts::legend(report));
    let mut runs = facts::runs(report);
    runs.extend(facts::differences(report));
    runs.extend(facts::caution(report));
    let number = all(report).count();
    Comment {
        answer: answer(report, &layout, &changed),
        open,
        folded: vec![
            ("Further differences".to_owned(), more),
            (format!("All {}", counted(number, "comparison")), figures),
            (what_differs, runs),
            (
                format!("{} not made", counted(report.left_out.len(), "comparison")),
                left_out,
            ),
            (counted(warnings.len(), "warning"), listed(warnings)),
        ],
    }
}

/// The comparisons that are shown to differ: losses first, the greatest of them first.
fn changed(report: &DiffReport) -> Vec<Compared<'_>> {
    let cells = report.cells.iter();
    let compared = cells.flat_map(|cell| {
        let own = cell.comparisons.iter();
        own.map(move |(name, q)| (cell, name.as_str(), q))
    });
    let mut changed: Vec<Compared<'_>> = compared
        .filter(|(_, _, q)| q.verdict == Some(Verdict::Different))
        .collect();
    changed.sort_by(|(_, _, one), (_, _, other)| {
        let order = rank(one).cmp(&rank(other));
        let size = |q: &QuantityDiff| q.ratio.value.ln().abs();
        order.then_with(|| size(other).total_cmp(&size(one)))
    });
    changed
}

fn rank(q: &QuantityDiff) -> u8 {
    match (q.trips_gate, q.change) {
        (Some(true), _) => 0,
        (_, Some(Change::Worse)) => 1,
        (_, None) => 2,
        (_, Some(Change::Better)) => 3,
    }
}

fn row(layout: &Layout<'_>, (cell, name, q): &Compared<'_>) -> Row {
    let show = |value: f64| match cell.base {
        Some(_) => exact(value),
        None => show_all(name, &[value]),
    };
    let mut verdict = match q.change {
        Some(Change::Worse) => "worse",
        Some(Change::Better) => "better",
        None => "different",
    }
    .to_owned();
    if q.trips_gate == Some(true) {
        verdict.push_str(", trips the gate");
    }
    Row::Cells(
        [
            layout.full_name(&cell.cell),
            what(cell, name),
            show(q.a.value),
            show(q.b.value),
            exact(q.ratio.value),
            format!("{} to {}", exact(q.ratio.low), exact(q.ratio.high)),
            verdict,
        ]
        .map(Field::lone)
        .into(),
    )
}

/// One sentence: what changed, or why nothing can be said.
fn answer(report: &DiffReport, layout: &Layout<'_>, changed: &[Compared<'_>]) -> String {
    let number = all(report).count();
    let count = |wanted| all(report).filter(|q| q.verdict == wanted).count();
    if count(None) == number {
        return "No verdict on B against A: how much two runs of the same thing differ here is not known; repeat each side \
                at least three times."
            .to_owned();
    }
    let Some(first) = changed.first() else {
        return match count(Some(Verdict::Equivalent)) {
            same if same == number => format!(
                "B is as A: all {number} comparisons are equivalent within {}.",
                chosen_percent(report.margin)
            ),
            same => format!(
                "No difference between B and A is shown: of {number} comparisons {same} are equivalent, {} undecided.",
                number - same
            ),
        };
    };
    let of = |wanted| {
        let own = changed.iter().filter(|(_, _, q)| q.change == Some(wanted));
        own.count()
    };
    let (worse, better) = (of(Change::Worse), of(Change::Better));
    // What trips the gate stands first, though another loss may be greater.
    let losses = changed
        .iter()
        .filter(|(_, _, q)| q.change == Some(Change::Worse));
    let far = |(_, _, q): &Compared<'_>| q.ratio.value.ln().abs();
    let greatest = losses
        .rev()
        .max_by(|one, other| far(one).total_cmp(&far(other)));
    let (cell, name, q) = greatest.unwrap_or(first);
    let found = match (worse, better) {
        (0, 0) => format!("different in {}", changed.len()),
        (0, better) => format!("better in {better}"),
        (worse, 0) => format!("worse in {worse}"),
        (worse, better) => format!("worse in {worse} and better in {better}"),
    };
    format!(
        "B is {found} of {}; the greatest {}: {} of {}, {}.",
        counted(number, "comparison"),
        if worse > 0 { "loss" } else { "difference" },
        what(cell, name),
        layout.full_name(&cell.cell),
        size(&q.ratio)
    )
}

fn listed(items: Vec<String>) -> Vec<Block> {
    let is_empty = items.is_empty();
    (!is_empty)
        .then_some(Block::List(items))
        .into_iter()
        .collect()
}
