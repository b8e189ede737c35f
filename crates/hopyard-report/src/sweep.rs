//! Swept axes in grids: one axis down, another (or the paths) across. There is a grid of the main figure, one of the
//! CPU cost, and more for some loads. A third dimension has a pair of grids for each of its values.

mod curves;

use super::document::{Block, Cell, Column, Footnotes, Part, Row, Table, Tone};
use super::figures::figure;
use super::group::{Group, Layout, phrase, scale};
use super::notes;
use super::number::ABSENT;
use super::quantity::{
    self, LATENCY_P99, LOST, QUEUE_CHANGES, QUEUES_IN_USE, Scale, THROUGHPUT, THROUGHPUT_BITS,
    symbol,
};
use crate::plain;
pub(super) use curves::plots;

use crate::model::{Axis, CellReport, CellStatus, distinct};

/// Quantities of paths with several queues.
const OF_QUEUES: [&str; 2] = [QUEUE_CHANGES, QUEUES_IN_USE];

/// What distinguishes the cells of a group.
#[derive(Clone, Copy)]
enum Dimension {
    Axis(&'static Axis),
    Path,
}

impl Dimension {
    fn of(self, cell: &CellReport) -> String {
        match self {
            Self::Axis(axis) => axis
                .value(cell.load, &cell.axes)
                .map_or_else(|| ABSENT.to_owned(), |v| plain::line(&v)),
            Self::Path => plain::line(&cell.path),
        }
    }

    fn values(self, cells: &[&CellReport]) -> Vec<String> {
        distinct(cells.iter().map(|cell| self.of(cell)))
    }

    /// A value of it in a column of the group's tables.
    fn in_column(self, group: &Group<'_>, value: &str) -> String {
        match self {
            Self::Path => value.to_owned(),
            Self::Axis(axis) => group.in_column(axis, value.to_owned()),
        }
    }

    /// A value of it as text.
    fn phrase(self, value: &str) -> String {
        match self {
            Self::Path => value.to_owned(),
            Self::Axis(axis) if value == ABSENT => format!("{} left alone", axis.name),
            Self::Axis(axis) => phrase(axis.name, value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Axis(axis) => axis.name,
            Self::Path => "path",
        }
    }
}

/// Assignment of dimensions.
struct Plane {
    down: Dimension,
    across: Dimension,
    /// Each of its values has grids of its own.
    slices: Option<Dimension>,
}

impl Plane {
    /// The paths go across if there are several, the axis with the most values goes down, and a third dimension is the
    /// one with the fewest. More than three dimensions are a list.
    fn of(group: &Group<'_>) -> Option<Self> {
        let many = |axis: &Dimension| axis.values(&group.cells).len();
        let mut axes: Vec<Dimension> = group.varying.iter().map(|a| Dimension::Axis(a)).collect();
        // A stable sort: of axes with equally many values, the registry's first comes first.
        axes.sort_by_key(|axis| std::cmp::Reverse(many(axis)));
        let several_paths = group.paths().len() > 1;
        let (down, across, slices) = match (several_paths, &axes[..]) {
            (true, &[down]) => (down, Dimension::Path, None),
            (true, &[down, slices]) => (down, Dimension::Path, Some(slices)),
            (false, &[down, across]) => (down, across, None),
            (false, &[down, across, slices]) => (down, across, Some(slices)),
            _ => return None,
        };
        Some(Self {
            down,
            across,
            slices,
        })
    }
}

/// Whether the group fits into grids.
pub(super) fn fits(group: &Group<'_>) -> bool {
    Plane::of(group).is_some()
}

/// A heading, the grids and the footnotes of the cells; empty if the group is not a sweep.
pub(super) fn blocks(group: &Group<'_>, layout: &Layout<'_>) -> Vec<Block> {
    let Some(plane) = Plane::of(group) else {
        return Vec::new();
    };
    let mut footnotes = Footnotes::default();
    let marked: Vec<(&CellReport, String)> = group
        .cells
        .iter()
        .map(|cell| (*cell, footnotes.mark(notes::doubts(cell))))
        .collect();
    let slices = match plane.slices {
        Some(slices) => slices.values(&group.cells).into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut blocks = vec![Block::Heading(group.title.clone())];
    for slice in &slices {
        let within = |(cell, _): &&(&CellReport, String)| match (plane.slices, slice) {
            (Some(dimension), Some(value)) => dimension.of(cell) == *value,
            _ => true,
        };
        let cells: Vec<_> = marked.iter().filter(within).cloned().collect();
        if let (Some(dimension), Some(value)) = (plane.slices, slice) {
            blocks.push(Block::Subheading(dimension.phrase(value)));
        }
        for name in quantities(group) {
            let scale = scale(group, name);
            let mut cells = cells.clone();
            if OF_QUEUES.contains(&name) {
                // Paths without queues would be lines of dashes.
                cells.retain(|(cell, _)| cell.estimates.contains_key(name));
            }
            if !cells.is_empty() {
                let table = grid(group, &plane, layout, &cells, name, scale);
                blocks.push(Block::Table(table));
            }
        }
    }
    let numbers = group.told_numbers();
    blocks.extend((!numbers.is_empty()).then_some(Block::Notes(numbers)));
    blocks.extend(footnotes.block());
    blocks.extend(notes::no_base(group, layout));
    blocks
}

/// The quantities with a grid: main figure and CPU cost, those that only numbered datagrams have, and counts.
fn quantities(group: &Group<'_>) -> Vec<&'static str> {
    let load = group.load;
    let own: &[&str] = if group.main == THROUGHPUT {
        &[THROUGHPUT_BITS, LATENCY_P99]
    } else {
        load.info().shown.grids
    };
    let measured = |name: &&str| group.cells.iter().any(|c| c.estimates.contains_key(*name));
    let own = own.iter().copied().chain(OF_QUEUES).filter(measured);
    [group.main, quantity::cpu_cost(load)]
        .into_iter()
        .chain(own)
        .collect()
}

fn grid(
    group: &Group<'_>,
    plane: &Plane,
    layout: &Layout<'_>,
    marked: &[(&CellReport, String)],
    name: &'static str,
    scale: Scale,
) -> Table {
    let cells: Vec<&CellReport> = marked.iter().map(|(cell, _)| *cell).collect();
    // A line of the table in which every cell is a base.
    let is_base = |dimension: Dimension, value: &str| {
        let own = cells.iter().filter(|cell| dimension.of(cell) == value);
        own.clone().count() > 0 && own.clone().all(|cell| layout.is_base(cell))
    };
    let down = plane.down.values(&cells);
    let across = plane.across.values(&cells);
    let what = match (quantity::words(name), scale.unit) {
        (words, "") => words,
        (words, unit) => format!("{words} in {unit}"),
    };
    let corner = match plane.across {
        Dimension::Path => plane.down.name().to_owned(),
        Dimension::Axis(axis) => format!("{} \\ {}", plane.down.name(), axis.name),
    };
    let mut columns = vec![Column::right(&[&what, &corner])];
    columns.extend(across.iter().map(|value| {
        let shown = plane.across.in_column(group, value);
        if is_base(plane.across, value) {
            Column::right(&[&shown, "(base)"])
        } else {
            Column::right(&[&shown])
        }
    }));
    let rows = down.iter().map(|value| {
        let base = if is_base(plane.down, value) {
            " (base)"
        } else {
            ""
        };
        let fields = across.iter().map(|other| {
            let here = |(cell, _): &&(&CellReport, String)| {
                plane.down.of(cell) == *value && plane.across.of(cell) == *other
            };
            match marked.iter().find(here) {
                Some((cell, mark)) => field(cell, mark, name, scale),
                None => Cell::lone(ABSENT),
            }
        });
        let shown = plane.down.in_column(group, value);
        let key = Cell::lone(format!("{shown}{base}"));
        Row::Cells(std::iter::once(key).chain(fields).collect())
    });
    Table {
        rows: rows.collect(),
        columns,
        keys: 1,
    }
}

fn field(cell: &CellReport, mark: &str, name: &str, scale: Scale) -> Cell {
    let estimate = match cell.status {
        _ if cell.is_measured() => cell.estimates.get(name),
        CellStatus::Unsupported => return Cell::lone("unsupported"),
        CellStatus::Failed | CellStatus::Ok => return Cell::lone("failed"),
    };
    let verdict = cell.verdicts.get(name);
    let tone = verdict.map_or(Tone::Open, |v| Tone::of(name, v));
    let sign = symbol(verdict.and_then(|v| v.verdict));
    estimate.map_or_else(
        || Cell::lone(ABSENT),
        |estimate| {
            let mut parts = match name {
                // It is usually 0, which has no half-width.
                LOST => vec![Part::Point(scale.show(estimate.value))],
                _ => figure(estimate, scale),
            };
            parts.push(Part::Verdict(format!("{sign}{mark}"), tone));
            Cell(parts)
        },
    )
}
