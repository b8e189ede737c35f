//! A run as a comment on a pull request: the answer, what differs from the base, and everything else folded by name.

use super::document::{Block, Cell, Column, Row, Table, Tone};
use super::gate;
use super::group::Layout;
use super::number::{chosen_percent, ratio, significant};
use super::quantity::{show_all, words};
use super::{Chapters, plain};
use crate::model::{CellReport, Observation, RunReport, VerdictReport};

/// The most rows that are not folded.
pub(super) const OPEN_ROWS: usize = 20;

/// A report for readers of a pull request: only the answer and the differences are not folded.
pub(super) struct Comment {
    /// One sentence.
    pub(super) answer: String,
    /// The part below it.
    pub(super) open: Vec<Block>,
    /// The folded parts by name; empty ones are left out.
    pub(super) folded: Vec<(String, Vec<Block>)>,
}

/// The comment on a run.
pub(super) fn of_run(report: &RunReport, observations: &[Observation]) -> Comment {
    let layout = Layout::of(&report.cells);
    let chapters = Chapters::of(report, observations);
    let answer = chapters.answer.into_iter().find_map(|block| match block {
        Block::Answer(text) => Some(text),
        _ => None,
    });
    let (mut open, more) = differing(different(report, &layout));
    open.extend(gate::of_run(report));
    let name = |name: &str| name.to_owned();
    let in_one = match &chapters.matrix[..] {
        [] => Vec::new(),
        matrix => [matrix, &chapters.legend].concat(),
    };
    Comment {
        answer: answer.unwrap_or_else(|| nothing_to_compare(report)),
        open,
        folded: vec![
            (name("Further differences"), more),
            (name("All comparisons in one table"), in_one),
            (
                name("What was measured, and all figures"),
                [chapters.title, chapters.opening, chapters.figures].concat(),
            ),
            (name("What the verdicts support"), chapters.conclusion),
            (name("Warnings and failures"), chapters.doubts),
            (name("Path proof"), chapters.proof),
            (
                name("Recommendation"),
                [chapters.conditions, chapters.recommendation].concat(),
            ),
        ],
    }
}

fn nothing_to_compare(report: &RunReport) -> String {
    let measured = report.cells.iter();
    let measured = measured.filter(|cell| cell.is_measured());
    format!(
        "{} of {} cells have figures; nothing is compared.",
        measured.count(),
        report.cells.len()
    )
}

/// Rows of differences, worst first: those shown, and those folded. Both are empty if nothing differs.
pub(super) fn differing(table: Table) -> (Vec<Block>, Vec<Block>) {
    let mut first = table;
    let rest = first.rows.split_off(first.rows.len().min(OPEN_ROWS));
    let more = Table {
        columns: first.columns.clone(),
        keys: first.keys,
        rows: rest,
    };
    let block = |table: Table| {
        let is_empty = table.rows.is_empty();
        (!is_empty)
            .then_some(Block::Table(table))
            .into_iter()
            .collect()
    };
    (block(first), block(more))
}

/// Every comparison that is shown to differ from the base, the greatest loss first.
fn different(report: &RunReport, layout: &Layout<'_>) -> Table {
    let all = report.cells.iter().filter(|cell| cell.way.proved);
    let mut rows: Vec<(Tone, f64, Row)> = all
        .flat_map(|cell| {
            cell.verdicts
                .iter()
                .map(move |(name, verdict)| (cell, name, verdict))
        })
        .filter_map(|(cell, name, verdict)| {
            let tone = Tone::of(name, verdict);
            let called = called(tone)?;
            let size = verdict.ratio.value.ln().abs();
            Some((tone, size, row(layout, cell, name, verdict, called)))
        })
        .collect();
    rows.sort_by(|(tone, size, _), (other, others, _)| {
        let order = rank(*tone).cmp(&rank(*other));
        order.then_with(|| others.total_cmp(size))
    });
    let base = layout.base.map_or_else(|| "base".to_owned(), plain::line);
    Table {
        columns: vec![
            Column::left(&["cell"]),
            Column::left(&["quantity"]),
            Column::right(&["value"]),
            Column::right(&[&format!("vs {base}")]),
            Column::left(&[&format!(
                "{} interval",
                chosen_percent(report.run.confidence)
            )]),
            Column::left(&["verdict"]),
        ],
        keys: 1,
        rows: rows.into_iter().map(|(_, _, row)| row).collect(),
    }
}

fn row(
    layout: &Layout<'_>,
    cell: &CellReport,
    name: &str,
    verdict: &VerdictReport,
    called: &str,
) -> Row {
    let value = cell
        .estimates
        .get(name)
        .map(|one| show_all(name, &[one.value]));
    let (low, high) = (verdict.ratio.low, verdict.ratio.high);
    let gate = if verdict.trips_gate == Some(true) {
        ", trips the gate"
    } else {
        ""
    };
    Row::Cells(vec![
        Cell::lone(layout.name(cell).replace(" · ", ", ")),
        Cell::lone(words(name)),
        Cell::lone(value.unwrap_or_default()),
        Cell::lone(ratio(verdict.ratio.value)),
        Cell::lone(format!("{} to {}", significant(low), significant(high))),
        Cell::lone(format!("{called}{gate}")),
    ])
}

/// Losses come first.
fn rank(tone: Tone) -> u8 {
    match tone {
        Tone::Worse => 0,
        Tone::Different => 1,
        Tone::Better => 2,
        Tone::Same | Tone::Open => 3,
    }
}

fn called(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Worse => Some("worse"),
        Tone::Different => Some("different"),
        Tone::Better => Some("better"),
        Tone::Same | Tone::Open => None,
    }
}
