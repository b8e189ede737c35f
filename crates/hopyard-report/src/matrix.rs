//! The whole run in one table: a row for each path, a column for each load, speed and CPU cost relative to the base.

use super::document::{Block, Cell, Column, Part, Row, Table, Tone};
use super::group::{Group, Layout, phrase};
use super::notes;
use super::number::{ABSENT, percent};
use super::quantity::{self, symbol};
use crate::model::{AXES, Base, CellReport, RunReport, VerdictReport, distinct};
use crate::plain;
use crate::stats::Verdict;

/// The table needs at least this many loads, ...
const LOADS: usize = 2;
/// ... or this many paths.
const PATHS: usize = 3;
/// With more loads the table would be too wide to read.
const MOST: usize = 12;

/// Heading and table, if the run compares enough paths or loads with a base path, each at one setting.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let Some(base) = layout.base.filter(|_| fits(report, layout)) else {
        return Vec::new();
    };
    let cells = || layout.groups.iter().flat_map(|group| &group.cells);
    let names = distinct(cells().map(|cell| name(cell, layout)));
    let rows = names.into_iter().map(|name| row(name, layout)).collect();
    let columns = std::iter::once(Column::left(&["path"]))
        .chain(layout.groups.iter().map(|group| column(group, layout)))
        .collect();
    let table = Table {
        columns,
        keys: 1,
        rows,
    };
    let heading = format!("Speed and CPU cost relative to {}", plain::line(base));
    vec![Block::Heading(heading), Block::Table(table)]
}

/// A sweep has tables of its own, and a quick look has no verdicts.
fn fits(report: &RunReport, layout: &Layout<'_>) -> bool {
    let based = matches!(layout.base.map(Base::parse), Some(Ok(Base::Path(_))));
    let swept = |group: &Group<'_>| group.varying.iter().any(|axis| !axis.of_path);
    let paths = distinct(report.cells.iter().map(|cell| &cell.path)).len();
    let judged = report
        .cells
        .iter()
        .flat_map(|cell| cell.verdicts.values())
        .any(|verdict| verdict.verdict.is_some());
    based
        && judged
        && !report.run.quick_look
        && report.offloads.is_none()
        && (layout.groups.len() >= LOADS || paths >= PATHS)
        && layout.groups.len() <= MOST
        && !layout.groups.iter().any(swept)
}

/// A path and the values of its own axes.
fn name(cell: &CellReport, layout: &Layout<'_>) -> String {
    let varies = |name: &str| {
        let mut axes = layout.groups.iter().flat_map(|group| &group.varying);
        axes.any(|axis| axis.name == name)
    };
    let own = AXES.iter().filter(|axis| axis.of_path && varies(axis.name));
    let values = own.filter_map(|axis| Some(phrase(axis.name, &(axis.show)(&cell.axes)?)));
    std::iter::once(plain::line(&cell.path))
        .chain(values)
        .collect::<Vec<_>>()
        .join(", ")
}

fn column(group: &Group<'_>, layout: &Layout<'_>) -> Column {
    let load = group.load.to_string();
    let peer = group.peer.to_string();
    let speed = match group.main {
        quantity::LATENCY_P99 => "p99 / CPU",
        quantity::LATENCY_P50 => "p50 / CPU",
        _ => "speed / CPU",
    };
    let one_peer = layout.groups.iter().all(|other| other.peer == group.peer);
    if one_peer {
        Column::left(&[&load, speed])
    } else {
        Column::left(&[&load, &peer, speed])
    }
}

fn row(name_of_row: String, layout: &Layout<'_>) -> Row {
    let fields = layout.groups.iter().map(|group| {
        let own = |cell: &&&CellReport| name(cell, layout) == name_of_row;
        let cell = group.cells.iter().find(own);
        cell.map_or_else(|| Cell::lone(ABSENT), |cell| field(group, cell, layout))
    });
    let fields: Vec<Cell> = fields.collect();
    Row::Cells([vec![Cell::lone(name_of_row)], fields].concat())
}

fn field(group: &Group<'_>, cell: &CellReport, layout: &Layout<'_>) -> Cell {
    if notes::instead(cell).is_some() {
        return Cell::lone("no figures");
    }
    if !cell.way.proved {
        return Cell::lone("not proved");
    }
    if layout.is_base(cell) {
        return Cell::lone("base");
    }
    let part = |name: &str| match cell.verdicts.get(name) {
        Some(verdict) => Part::Verdict(short(verdict), Tone::of(name, verdict)),
        None => Part::Left(ABSENT.to_owned()),
    };
    let cost = quantity::cpu_cost(group.load);
    match (cell.verdicts.get(group.main), cell.verdicts.get(cost)) {
        (None, None) => Cell::lone(ABSENT),
        _ => Cell(vec![
            part(group.main),
            Part::Left("/".to_owned()),
            part(cost),
        ]),
    }
}

/// The ratio and the sign of its verdict, `0.92≠`; without a verdict, the smallest detectable difference: `?35%`.
fn short(verdict: &VerdictReport) -> String {
    match verdict.verdict {
        Some(Verdict::Inconclusive) | None => {
            let size = verdict.smallest_detectable.map(percent);
            format!("?{}", size.unwrap_or_default())
        }
        decided if (0.0995..9.995).contains(&verdict.ratio.value) => {
            format!("{:.2}{}", verdict.ratio.value, symbol(decided))
        }
        decided => format!(
            "{}{}",
            super::number::significant(verdict.ratio.value),
            symbol(decided)
        ),
    }
}
