//! The ratios: a table for the main figure and one for the CPU cost of each load and peer.

use crate::document::{Block, Cell as Field, Column, Part, Row, Table};
use crate::group::{Kind, kind, phrase};
use crate::model::{AXES, Axis, Cell, CellDiff, Change, DiffReport, QuantityDiff, distinct};
use crate::number::{chosen_percent, percent, significant};
use crate::plain;
use crate::quantity::{cpu_cost, main_figure, scale, words};
use crate::stats::Verdict;

/// Which cells belong together, and their names.
pub(super) struct Layout<'a> {
    /// Axis values that all cells share, as text.
    pub(super) shared: Vec<String>,
    groups: Vec<Vec<&'a CellDiff>>,
    /// The axes that distinguish cells of a kind, including cells that are named only in sentences.
    telling: Vec<(Kind, Vec<&'static Axis>)>,
}

impl<'a> Layout<'a> {
    /// Cells by their kind, in the plan's order.
    pub(super) fn of(report: &'a DiffReport) -> Self {
        let kinds = distinct(report.cells.iter().map(|c| kind_of(&c.cell)));
        let of_kind = |kind| {
            let own = report
                .cells
                .iter()
                .filter(move |c| kind_of(&c.cell) == kind);
            own.collect()
        };
        let all: Vec<&CellDiff> = report.cells.iter().collect();
        Self {
            shared: AXES.iter().filter_map(|axis| common(axis, &all)).collect(),
            groups: kinds.into_iter().map(of_kind).collect(),
            telling: telling(report),
        }
    }

    /// Load, peer, and the axis values that this group shares but others do not.
    fn title(&self, group: &[&CellDiff]) -> String {
        let first = group
            .iter()
            .take(1)
            .map(|c| format!("{}, {}", c.cell.load, c.cell.peer));
        let values = AXES.iter().filter_map(|axis| common(axis, group));
        let own = values.filter(|value| !self.shared.contains(value));
        first.chain(own).collect::<Vec<_>>().join(", ")
    }

    /// Path, and the axis values that distinguish it within its group.
    fn row_name(group: &[&CellDiff], cell: &Cell) -> String {
        let varying = AXES.iter().filter(|axis| common(axis, group).is_none());
        let values = varying.filter_map(|axis| spoken(axis, cell));
        let path = std::iter::once(plain::line(&cell.path));
        path.chain(values).collect::<Vec<_>>().join(", ")
    }

    /// The name of a cell in a sentence: path, load, peer, and the axis values that distinguish it.
    pub(super) fn full_name(&self, cell: &Cell) -> String {
        let own = self
            .telling
            .iter()
            .filter(|(kind, _)| *kind == kind_of(cell));
        let values = own
            .flat_map(|(_, axes)| axes)
            .filter_map(|axis| spoken(axis, cell));
        let facts = [
            plain::line(&cell.path),
            cell.load.to_string(),
            cell.peer.to_string(),
        ];
        facts
            .into_iter()
            .chain(values)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// For each kind of cells, the axes with more than one value.
fn telling(report: &DiffReport) -> Vec<(Kind, Vec<&'static Axis>)> {
    let compared = report.cells.iter().map(|c| &c.cell);
    let all: Vec<&Cell> = compared
        .chain(report.left_out.iter().map(|l| &l.cell))
        .collect();
    let of_kind = |kind: Kind| {
        let own: Vec<&Cell> = all.iter().copied().filter(|c| kind_of(c) == kind).collect();
        let varies = |axis: &&Axis| {
            let mut values = own.iter().map(|c| (axis.show)(&c.axes));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        (kind, AXES.iter().filter(varies).collect())
    };
    let kinds = distinct(all.iter().map(|c| kind_of(c)));
    kinds.into_iter().map(of_kind).collect()
}

fn kind_of(cell: &Cell) -> Kind {
    kind(cell.load, cell.peer, &cell.axes)
}

fn spoken(axis: &Axis, cell: &Cell) -> Option<String> {
    (axis.show)(&cell.axes).map(|value| phrase(axis.name, &plain::line(&value)))
}

/// The text for an axis' value if all these cells share it.
fn common(axis: &Axis, cells: &[&CellDiff]) -> Option<String> {
    match distinct(cells.iter().map(|c| spoken(axis, &c.cell))).as_slice() {
        [Some(value)] => Some(value.clone()),
        _ => None,
    }
}

/// Title and tables of each group; other quantities are in sentences if they changed.
pub(super) fn blocks(report: &DiffReport) -> Vec<Block> {
    let layout = Layout::of(report);
    let mut blocks = Vec::new();
    for group in &layout.groups {
        blocks.push(Block::Heading(layout.title(group)));
        let first = group.first().map(|c| &c.cell);
        let names = first.map(|c| [main_figure(c.load, &c.axes), cpu_cost(c.load)]);
        for name in names.iter().flatten() {
            blocks.extend(table(report, group, name).map(Block::Table));
        }
    }
    blocks
}

fn table(report: &DiffReport, group: &[&CellDiff], name: &str) -> Option<Table> {
    let rows: Vec<(&CellDiff, &QuantityDiff)> = group
        .iter()
        .filter_map(|cell| Some((*cell, cell.comparisons.get(name)?)))
        .collect();
    let values = rows.iter().flat_map(|(_, q)| [q.a.value, q.b.value]);
    let greatest = values.map(f64::abs).fold(0.0, f64::max);
    let scale = scale(name, greatest);
    let unit = if report.relative {
        "x base"
    } else {
        scale.unit
    };
    let show = |value: f64| {
        Field(vec![Part::Point(if report.relative {
            exact(value)
        } else {
            scale.show(value)
        })])
    };
    let interval = format!("{} interval", chosen_percent(report.confidence));
    let columns = vec![
        Column::left(&[&words(name), "path"]),
        Column::right(&["A", unit]),
        Column::right(&["B", unit]).following(),
        Column::right(&["B/A"]),
        Column::left(&[&interval]).following(),
        Column::left(&["verdict"]).following(),
    ];
    let row = |(cell, q): &(&CellDiff, &QuantityDiff)| {
        Row::Cells(vec![
            Field::lone(Layout::row_name(group, &cell.cell)),
            show(q.a.value),
            show(q.b.value),
            Field::lone(exact(q.ratio.value)),
            Field::lone(format!("{} to {}", exact(q.ratio.low), exact(q.ratio.high))),
            Field::lone(verdict(q)),
        ])
    };
    (!rows.is_empty()).then(|| Table {
        rows: rows.iter().map(row).collect(),
        columns,
        keys: 1,
    })
}

/// A ratio near 1 to a tenth of a per cent: three digits would be too few above 1.
pub(super) fn exact(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio)
    }
}

fn verdict(q: &QuantityDiff) -> String {
    let size = || {
        q.smallest_detectable
            .map_or_else(|| "any".to_owned(), percent)
    };
    match (q.verdict, q.change) {
        (None, _) => "none".to_owned(),
        (Some(Verdict::Different), Some(Change::Worse)) => "worse".to_owned(),
        (Some(Verdict::Different), Some(Change::Better)) => "better".to_owned(),
        (Some(Verdict::Different), None) => "different".to_owned(),
        (Some(Verdict::Equivalent), _) => "equivalent".to_owned(),
        (Some(Verdict::Inconclusive), _) => format!("? {}", size()),
    }
}
