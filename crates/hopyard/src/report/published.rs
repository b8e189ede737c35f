//! What was published, beside what was measured.

use super::document::{Block, Cell, Column, Part, Row, Table, tame};
use super::figures::{figure, verdict_mark};
use super::group::{Layout, distinct};
use super::number::{ABSENT, ratio, significant};
use super::quantity::{self, Scale};
use crate::model::{CellReport, Published, PublishedFigure, RunReport};

/// A heading, table and remark for each table that the plan has of a report.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let tables = report.published.iter();
    tables
        .flat_map(|published| one(published, report, layout))
        .collect()
}

fn one(published: &Published, report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let cells: Vec<Option<&CellReport>> = published
        .figures
        .iter()
        .map(|f| {
            let mut cells = report.cells.iter();
            cells.find(|c| f.is_of((&c.path, c.peer, c.load), &c.axes))
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
    let varied = distinct(published.figures.iter().flat_map(|f| f.set.keys()));
    let mut columns = vec![Column::left(&["load"])];
    columns.extend(varied.iter().map(|axis| Column::right(&[axis])));
    columns.extend([
        Column::left(&["path"]),
        Column::left(&["", "then called"]),
        Column::right(&["published", &tame(&published.what)]),
        Column::left(&[&versus]).following(),
        Column::right(&["measured here", scale.unit]),
        Column::left(&[&versus]).following(),
    ]);
    let rows = published.figures.iter().zip(cells);
    let rows = rows.map(|(then, now)| {
        let mut cells = vec![Cell::lone(whence(then))];
        cells.extend(varied.iter().map(|&axis| {
            let value = then.set.get(axis);
            Cell::lone(value.map_or_else(|| ABSENT.to_owned(), |v| tame(v)))
        }));
        cells.extend(row(published, then, now, scale, layout.base));
        Row::Cells(cells)
    });
    vec![
        Block::Heading(format!("As published: {}", tame(&published.source))),
        Block::Table(Table {
            keys: 2 + varied.len(),
            rows: rows.collect(),
            columns,
        }),
        Block::Notes(vec![tame(&published.remark)]),
    ]
}

/// The load, and whom it was with where that matters.
fn whence(then: &PublishedFigure) -> String {
    match then.peer {
        Some(peer) => format!("{} {peer}", then.load),
        None => then.load.to_string(),
    }
}

/// Path and figures, then and now.
fn row(
    published: &Published,
    then: &PublishedFigure,
    now: Option<&CellReport>,
    scale: Scale,
    base: Option<&str>,
) -> Vec<Cell> {
    let is_base = base == Some(then.path.as_str());
    let same =
        |f: &&PublishedFigure| f.load == then.load && f.peer == then.peer && f.set == then.set;
    let base_then = published
        .figures
        .iter()
        .find(|f| same(f) && Some(f.path.as_str()) == base);
    let ratio_then = match base_then {
        Some(_) if is_base => Cell::lone("base"),
        Some(base) => Cell(vec![Part::Point(ratio(then.value / base.value))]),
        None => Cell::lone(ABSENT),
    };
    let estimate = now.and_then(|cell| cell.estimates.get(&published.quantity));
    let verdict = now.and_then(|cell| cell.verdicts.get(&published.quantity));
    let half_width = then
        .half_width
        .map(|half| format!("±{}", significant(half)));
    vec![
        Cell::lone(tame(&then.path)),
        Cell::lone(tame(&then.called)),
        Cell(vec![
            Part::Point(significant(then.value)),
            Part::Right(half_width.unwrap_or_default()),
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
    ]
}
