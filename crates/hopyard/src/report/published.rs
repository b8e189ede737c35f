//! What was published, beside what was measured.

use super::document::{Block, Cell, Column, Part, Row, Table, tame};
use super::figures::{figure, verdict_mark};
use super::group::Layout;
use super::number::{ABSENT, ratio, significant};
use super::quantity::{self, Scale};
use crate::model::{CellReport, Published, PublishedFigure, RunReport};

/// Heading, table and remark, where the plan has figures of a report.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let Some(published) = &report.published else {
        return Vec::new();
    };
    let cells: Vec<Option<&CellReport>> = published
        .figures
        .iter()
        .map(|f| {
            report
                .cells
                .iter()
                .find(|c| (&c.path, c.load) == (&f.path, f.load))
        })
        .collect();
    let values = cells
        .iter()
        .flatten()
        .filter_map(|cell| cell.estimates.get(&published.quantity));
    let greatest = values.map(|e| e.value.abs()).fold(0.0, f64::max);
    let scale = quantity::scale(&published.quantity, greatest);
    let base = layout.base.map_or_else(|| "base".to_owned(), tame);
    let versus = format!("vs {base}");
    let table = Table {
        columns: vec![
            Column::left(&["load"]),
            Column::left(&["path"]),
            Column::left(&["", "then called"]),
            Column::right(&["published", &tame(&published.what)]),
            Column::left(&[&versus]).following(),
            Column::right(&["measured here", scale.unit]),
            Column::left(&[&versus]).following(),
        ],
        keys: 2,
        rows: published
            .figures
            .iter()
            .zip(cells)
            .map(|(then, now)| row(published, then, now, scale, layout.base))
            .collect(),
    };
    vec![
        Block::Heading(format!("As published: {}", tame(&published.source))),
        Block::Table(table),
        Block::Notes(vec![tame(&published.remark)]),
    ]
}

fn row(
    published: &Published,
    then: &PublishedFigure,
    now: Option<&CellReport>,
    scale: Scale,
    base: Option<&str>,
) -> Row {
    let is_base = base == Some(then.path.as_str());
    let base_then = published
        .figures
        .iter()
        .find(|f| f.load == then.load && Some(f.path.as_str()) == base);
    let ratio_then = match base_then {
        Some(_) if is_base => Cell::lone("base"),
        Some(base) => Cell(vec![Part::Point(ratio(then.value / base.value))]),
        None => Cell::lone(ABSENT),
    };
    let estimate = now.and_then(|cell| cell.estimates.get(&published.quantity));
    let verdict = now.and_then(|cell| cell.verdicts.get(&published.quantity));
    Row::Cells(vec![
        Cell::lone(then.load.to_string()),
        Cell::lone(tame(&then.path)),
        Cell::lone(tame(&then.called)),
        Cell(vec![
            Part::Point(significant(then.value)),
            Part::Right(format!("±{}", significant(then.half_width))),
        ]),
        ratio_then,
        estimate.map_or_else(|| Cell::lone(ABSENT), |e| Cell(figure(e, scale))),
        match verdict {
            Some(verdict) => Cell(vec![
                Part::Point(ratio(verdict.ratio.value)),
                Part::Left(verdict_mark(verdict)),
            ]),
            None if is_base => Cell::lone("base"),
            None => Cell::lone(ABSENT),
        },
    ])
}
