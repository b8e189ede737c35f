//! Published figures beside measured ones: a grid if the report has one, else a list.

mod grid;
mod pictures;

use std::borrow::Cow;

use super::document::{Block, Cell, Column, Part, Row, Table};
use super::figures::{figure, verdict_part};
use super::group::Layout;
use super::number::{ABSENT, ratio, significant};
use super::plot::Gallery;
use super::quantity::{self, CPU_PER_BYTE, EFFICIENCY, Scale};
use crate::assess::PER_GHZ;
use crate::model::{
    Base, CellReport, Published, PublishedFigure, RunReport, VerdictReport, distinct,
};
use crate::plain;
use crate::stats::Estimate;
use grid::Plane;

/// A heading, tables and remark for each published table of the plan.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>, gallery: &Gallery<'_>) -> Vec<Block> {
    let tables = report.published.iter();
    tables
        .flat_map(|published| {
            let table = Comparison::of(published, report, layout);
            let heading = format!("As published: {}", plain::line(&published.source));
            let mut blocks = vec![Block::Heading(heading)];
            blocks.extend(match Plane::of(&table) {
                Some(plane) => plane.blocks(&table, gallery),
                None => {
                    let mut blocks = vec![Block::Table(list(&table))];
                    blocks.extend(pictures::rows(&table, gallery));
                    blocks
                }
            });
            blocks.push(Block::Notes(vec![plain::line(&published.remark)]));
            blocks
        })
        .collect()
}

/// A published table with the corresponding cells.
struct Comparison<'a> {
    published: &'a Published,
    pairs: Vec<Pair<'a>>,
    /// The axes that were varied.
    varied: Vec<&'a str>,
    /// Unit of the measured figures.
    scale: Scale,
    /// What others are compared with.
    base: Option<&'a str>,
}

/// A published figure and its cell.
struct Pair<'a> {
    then: &'a PublishedFigure,
    /// The published figure of the base path.
    base_then: Option<&'a PublishedFigure>,
    is_base: bool,
    estimate: Option<&'a Estimate>,
    verdict: Option<Cow<'a, VerdictReport>>,
    scale: Scale,
    quantity: &'a str,
}

impl<'a> Comparison<'a> {
    fn of(published: &'a Published, report: &'a RunReport, layout: &Layout<'a>) -> Self {
        let figures = published.figures.iter();
        let cells: Vec<Option<&CellReport>> = figures
            .map(|f| {
                // Traffic that went another way is not of the path that was published.
                let mut cells = report.cells.iter().filter(|c| !c.is_unproved());
                cells.find(|c| f.is_of((&c.path, c.peer, c.load), &c.axes))
            })
            .collect();
        let estimates = cells
            .iter()
            .map(|cell| cell.and_then(|cell| cell.estimates.get(&published.quantity)));
        let greatest = estimates.clone().flatten().map(|e| e.value.abs());
        let scale = quantity::scale(&published.quantity, greatest.fold(0.0, f64::max));
        let base = layout.base.and_then(|base| Base::parse(base).ok());
        let base_then = |then: &PublishedFigure| {
            let mut figures = published.figures.iter();
            figures.find(|f| base.is_some_and(|base| f.is_base_of(then, &base)))
        };
        let pairs = published.figures.iter().zip(&cells).zip(estimates);
        Self {
            pairs: pairs
                .map(|((then, now), estimate)| Pair {
                    then,
                    base_then: base_then(then),
                    is_base: base.is_some_and(|base| then.is_base(&base)),
                    estimate,
                    verdict: now.and_then(|cell| verdict(cell, &published.quantity)),
                    scale,
                    quantity: &published.quantity,
                })
                .collect(),
            varied: varied(&published.figures),
            base: layout.base,
            published,
            scale,
        }
    }

    /// `vs veth`.
    fn versus(&self) -> String {
        format!(
            "vs {}",
            self.base.map_or_else(|| "base".to_owned(), plain::line)
        )
    }
}

/// The axes that have several values among the figures.
fn varied(figures: &[PublishedFigure]) -> Vec<&str> {
    let axes = distinct(figures.iter().flat_map(|f| f.set.keys()));
    let values = |axis: &&String| distinct(figures.iter().map(|f| f.set.get(*axis))).len();
    let varied = axes.into_iter().filter(|axis| values(axis) > 1);
    varied.map(String::as_str).collect()
}

/// A cell's verdict on a quantity. Efficiency is the inverse of CPU cost, and uses its verdict.
pub(super) fn verdict<'a>(cell: &'a CellReport, quantity: &str) -> Option<Cow<'a, VerdictReport>> {
    if ![EFFICIENCY, PER_GHZ].contains(&quantity) {
        return cell.verdicts.get(quantity).map(Cow::Borrowed);
    }
    let cost = cell.verdicts.get(CPU_PER_BYTE)?;
    let ratio = Estimate {
        value: cost.ratio.value.recip(),
        low: cost.ratio.high.recip(),
        high: cost.ratio.low.recip(),
        ..cost.ratio
    };
    Some(Cow::Owned(VerdictReport {
        ratio,
        ..cost.clone()
    }))
}

impl Pair<'_> {
    fn then(&self) -> Cell {
        let half_width = self.then.half_width;
        let half_width = half_width.map(|half| format!("±{}", significant(half)));
        Cell(vec![
            Part::Point(significant(self.then.value)),
            Part::Right(half_width.unwrap_or_default()),
        ])
    }

    fn now(&self) -> Cell {
        self.estimate
            .map_or_else(|| Cell::lone(ABSENT), |e| Cell(figure(e, self.scale)))
    }

    fn ratio_then(&self) -> Cell {
        match self.base_then {
            Some(_) if self.is_base => Cell::lone("base"),
            Some(base) => Cell(vec![Part::Point(ratio(self.then.value / base.value))]),
            None => Cell::lone(ABSENT),
        }
    }

    fn ratio_now(&self) -> Cell {
        match &self.verdict {
            Some(verdict) => Cell(vec![
                Part::Point(ratio(verdict.ratio.value)),
                verdict_part(self.quantity, verdict),
            ]),
            None if self.is_base => Cell::lone("base"),
            None => Cell::lone(ABSENT),
        }
    }
}

/// A row for each figure.
fn list(table: &Comparison<'_>) -> Table {
    let versus = table.versus();
    let mut columns = vec![Column::left(&["load"])];
    columns.extend(table.varied.iter().map(|axis| Column::right(&[axis])));
    columns.extend([
        Column::left(&["path"]),
        Column::left(&["", "then called"]),
        Column::right(&["published", &plain::line(&table.published.what)]),
        Column::left(&[&versus]).following(),
        Column::right(&["measured here", table.scale.unit]),
        Column::left(&[&versus]).following(),
    ]);
    let rows = table.pairs.iter().map(|pair| {
        let mut cells = vec![Cell::lone(whence(pair.then))];
        cells.extend(table.varied.iter().map(|&axis| {
            let value = pair.then.set.get(axis);
            Cell::lone(value.map_or_else(|| ABSENT.to_owned(), |v| plain::line(v)))
        }));
        cells.extend([
            Cell::lone(plain::line(&pair.then.path)),
            Cell::lone(plain::line(&pair.then.called)),
            pair.then(),
            pair.ratio_then(),
            pair.now(),
            pair.ratio_now(),
        ]);
        Row::Cells(cells)
    });
    Table {
        keys: 2 + table.varied.len(),
        rows: rows.collect(),
        columns,
    }
}

/// The load, and the peer if it matters.
fn whence(then: &PublishedFigure) -> String {
    match then.peer {
        Some(peer) => format!("{} {peer}", then.load),
        None => then.load.to_string(),
    }
}
