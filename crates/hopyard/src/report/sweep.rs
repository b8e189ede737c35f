//! One axis swept over several paths: a grid of the main figure, then one of the CPU cost.

use super::document::{Block, Cell, Column, Footnotes, Part, Row, Table, tame};
use super::figures::{figure, scale, symbol};
use super::group::{Group, Layout, distinct};
use super::notes;
use super::number::ABSENT;
use super::quantity::{self, Scale};
use crate::model::{CellReport, CellStatus};

/// Two headings, two grids and the footnotes of the cells.
pub(super) fn blocks(group: &Group<'_>, layout: &Layout<'_>) -> Vec<Block> {
    let mut footnotes = Footnotes::default();
    let marks: Vec<String> = group
        .cells
        .iter()
        .map(|cell| footnotes.mark(notes::doubts(cell)))
        .collect();
    let main = quantity::main_figure(group.load);
    let cpu = quantity::cpu_cost(group.load);
    let mut blocks = vec![Block::Heading(group.title.clone())];
    for name in [main, cpu] {
        let scale = scale(group, name);
        blocks.push(Block::Table(grid(group, layout, &marks, name, scale)));
    }
    blocks.extend(footnotes.block());
    blocks.extend(notes::no_base(group, layout));
    blocks
}

fn grid(
    group: &Group<'_>,
    layout: &Layout<'_>,
    marks: &[String],
    name: &'static str,
    scale: Scale,
) -> Table {
    let show = |cell: &CellReport| {
        let values = group.varying.iter().map(|axis| (axis.show)(&cell.axes));
        values
            .map(|v| v.map_or_else(|| ABSENT.to_owned(), |v| tame(&v)))
            .collect::<Vec<_>>()
    };
    let paths = group.paths();
    let what = format!("{} in {}", quantity::words(name), scale.unit);
    let axes: Vec<&str> = group.varying.iter().map(|axis| axis.name).collect();
    let mut columns = vec![Column::right(&[&what, &axes.join(", ")])];
    columns.extend(paths.iter().map(|&path| {
        if layout.base == Some(path) {
            Column::right(&[&tame(path), "(base)"])
        } else {
            Column::right(&[&tame(path)])
        }
    }));
    let rows = distinct(group.cells.iter().map(|cell| show(cell)))
        .into_iter()
        .map(|value| {
            let of_row = |cell: &&&CellReport| show(cell) == value;
            let is_base = group
                .cells
                .iter()
                .filter(of_row)
                .all(|cell| layout.is_base(cell));
            let base = if is_base { " (base)" } else { "" };
            let mut cells = vec![Cell::lone(format!("{}{base}", value.join(", ")))];
            cells.extend(paths.iter().map(|&path| {
                let here =
                    |(cell, _): &(&&CellReport, &String)| cell.path == path && show(cell) == value;
                let found = group.cells.iter().zip(marks).find(here);
                found.map_or_else(
                    || Cell::lone(ABSENT),
                    |(cell, mark)| field(cell, mark, name, scale),
                )
            }));
            Row::Cells(cells)
        })
        .collect();
    Table {
        columns,
        keys: 1,
        rows,
    }
}

fn field(cell: &CellReport, mark: &str, name: &str, scale: Scale) -> Cell {
    let estimate = match cell.status {
        CellStatus::Failed => return Cell::lone("failed"),
        CellStatus::Unsupported => return Cell::lone("unsupported"),
        CellStatus::Ok => cell.estimates.get(name),
    };
    let verdict = cell.verdicts.get(name).and_then(|v| v.verdict);
    estimate.map_or_else(
        || Cell::lone(ABSENT),
        |estimate| {
            let mut parts = figure(estimate, scale);
            parts.push(Part::Left(format!("{}{mark}", symbol(verdict))));
            Cell(parts)
        },
    )
}
