//! Quantities against a count: where CPUs become full, and where quantities grow, leap and bend.

mod pictures;

use super::document::{Block, Cell, Column, Part, Row, Table};
use super::group::{Group, Layout};
use super::number::{ABSENT, chosen_percent, percent, significant};
use super::plot::Gallery;
use super::quantity::{self, Scale};
use crate::model::{AXES, Axis, CurveReport, QuantityCurve, RunReport, Saturation, StepReport};
use crate::plain;
use crate::stats::{Estimate, Knee};

/// A section for each load, peer and count that was swept, and an explanation of its terms.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>, gallery: &Gallery<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in &layout.groups {
        for axis in AXES {
            let curves = of(report, group, axis);
            if !curves.is_empty() {
                blocks.extend(Section::of(group, axis, curves).blocks(gallery));
            }
        }
    }
    if !blocks.is_empty() {
        blocks.push(Block::Notes(meaning(report.run.confidence)));
    }
    blocks
}

/// The curves of a group against a count.
fn of<'a>(report: &'a RunReport, group: &Group<'_>, axis: &Axis) -> Vec<&'a CurveReport> {
    let own = |c: &&CurveReport| (c.load, c.peer, &*c.axis) == (group.load, group.peer, axis.name);
    report.curves.iter().filter(own).collect()
}

/// Whether a quantity of a group is drawn here against this axis.
pub(super) fn draws(report: &RunReport, group: &Group<'_>, axis: &Axis, name: &str) -> bool {
    let curves = of(report, group, axis);
    group.load.info().shown.curves.contains(&name)
        && curves.iter().any(|c| c.quantities.contains_key(name))
}

fn meaning(confidence: f64) -> Vec<String> {
    let full = chosen_percent(Saturation::FULL);
    let sure = chosen_percent(confidence);
    vec![
        format!("Full: not idle for {full} of the time or more. In brackets the interval at {sure} confidence, where it is wider."),
        "Grows as: the e of quantity ∝ countᵉ, so 1 is in proportion, 0 independent, -1 an equal share for each. R²: how much of it a \
         straight line accounts for."
            .to_owned(),
        format!(
            "Largest change: between two neighbours. It is a leap where it is at {sure} confidence more than 40 points of a share, and of \
             anything else more than a factor of 1.5 and more than the count's own. Knee: where two straight lines meet, if they \
             fit better than one at that confidence, with its interval."
        ),
    ]
}

/// The curves of one group against one count.
struct Section<'a> {
    group: &'a Group<'a>,
    axis: &'static Axis,
    /// What distinguishes the curves besides the path.
    others: Vec<&'static Axis>,
    with_path: bool,
    curves: Vec<&'a CurveReport>,
}

impl<'a> Section<'a> {
    fn of(group: &'a Group<'a>, axis: &'static Axis, curves: Vec<&'a CurveReport>) -> Self {
        let varies = |other: &&&Axis| {
            let mut values = curves.iter().map(|c| (other.show)(&c.axes));
            let first = values.next();
            other.name != axis.name && values.any(|value| Some(value) != first)
        };
        let others: Vec<_> = group.varying.iter().filter(varies).copied().collect();
        Self {
            group,
            axis,
            with_path: group.paths().len() > 1 || others.is_empty(),
            others,
            curves,
        }
    }

    fn blocks(&self, gallery: &Gallery<'_>) -> Vec<Block> {
        let heading = format!(
            "Against {}: {} · {}",
            self.axis.name, self.group.load, self.group.peer
        );
        let mut blocks = vec![Block::Heading(heading)];
        if self.curves.iter().any(|c| c.client_cpus_full.is_some()) {
            blocks.push(self.full());
        }
        let shown = self.group.load.info().shown.curves;
        let measured = |name: &&&str| {
            self.curves
                .iter()
                .any(|c| c.quantities.contains_key(**name))
        };
        for name in shown.iter().filter(measured) {
            blocks.extend(self.quantity(name, gallery));
        }
        blocks
    }

    fn names(&self, curve: &CurveReport) -> Vec<Cell> {
        let value = |axis: &&Axis| {
            (axis.show)(&curve.axes).map_or_else(|| ABSENT.to_owned(), |v| plain::line(&v))
        };
        let values = self.others.iter().map(value);
        let names = values.chain(self.with_path.then(|| plain::line(&curve.path)));
        names.map(Cell::lone).collect()
    }

    /// A row for each curve.
    fn table(&self, heads: &[Column], row: impl Fn(&CurveReport) -> Vec<Cell>) -> Block {
        let names = self.others.iter().map(|axis| axis.name);
        let keys: Vec<Column> = names
            .chain(self.with_path.then_some("path"))
            .map(|name| Column::left(&[name]))
            .collect();
        let rows = self.curves.iter().map(|curve| {
            let cells = self.names(curve).into_iter().chain(row(curve));
            Row::Cells(cells.collect())
        });
        Block::Table(Table {
            keys: keys.len(),
            rows: rows.collect(),
            columns: [&keys, heads].concat(),
        })
    }

    fn full(&self) -> Block {
        let heads = ["client's CPUs full", "all CPUs full"].map(|head| Column::left(&[head]));
        self.table(&heads, |curve| {
            let last = curve.values.last().copied().unwrap_or(0.0);
            let both = [&curve.client_cpus_full, &curve.cpus_full].into_iter();
            let text = both.map(|full| {
                full.as_ref()
                    .map_or_else(|| ABSENT.to_owned(), |f| saturation(f, last))
            });
            text.map(Cell::lone).collect()
        })
    }

    /// The heading for an end of the curves: `at 32` if it is the same for all of them.
    fn end(&self, name: &str, of: fn(&[f64]) -> Option<&f64>, otherwise: &str) -> String {
        let told = self
            .curves
            .iter()
            .filter_map(|curve| curve.quantities.get(name));
        let mut ends = told.filter_map(|q| of(&q.values).copied());
        match ends.next() {
            Some(first) if ends.all(|end| end == first) => format!("at {}", count(first)),
            _ => otherwise.to_owned(),
        }
    }

    fn quantity(&self, name: &str, gallery: &Gallery<'_>) -> [Block; 3] {
        let told = self
            .curves
            .iter()
            .filter_map(|curve| curve.quantities.get(name));
        let estimates = told.flat_map(|q| &q.estimates);
        let scale = quantity::scale(name, estimates.map(|e| e.value.abs()).fold(0.0, f64::max));
        let mut what = quantity::words(name);
        if !scale.unit.is_empty() {
            what = format!("{what} in {}", scale.unit);
        }
        let heads = [
            Column::right(&[&self.end(name, <[f64]>::first, "first")]),
            Column::right(&[&self.end(name, <[f64]>::last, "last")]),
            Column::right(&["grows as"]),
            Column::right(&["R²"]),
            Column::left(&["largest change"]),
            Column::left(&["knee"]),
        ];
        let table = self.table(&heads, |curve| match curve.quantities.get(name) {
            Some(q) => fields(q, name, scale),
            None => vec![Cell::lone(ABSENT); heads.len()],
        });
        let plots = pictures::plots(self, name, scale, gallery);
        [Block::Subheading(what), table, Block::Plots(plots)]
    }
}

/// `between 8 and 12`: not full at the one, full at the other.
fn saturation(full: &Saturation, last: f64) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "never".to_owned(), count);
    let text = match (full.last_not_full, full.first_full) {
        // The last numbers may have no figures.
        (_, None) => format!(
            "not up to {} ({})",
            count(full.last_not_full.unwrap_or(last)),
            percent(full.most_busy_ratio)
        ),
        (None, Some(first)) => format!("from {} on", count(first)),
        (Some(before), Some(first)) => format!("between {} and {}", count(before), count(first)),
    };
    match &full.interval {
        Some(i) if (i.low, i.high) != (full.first_full, full.first_full) => {
            format!("{text} [{} to {}]", end(i.low), end(i.high))
        }
        _ => text,
    }
}

/// Counts have no decimals.
fn count(value: f64) -> String {
    format!("{value:.0}")
}

fn fields(q: &QuantityCurve, name: &str, scale: Scale) -> Vec<Cell> {
    let absent = || Cell::lone(ABSENT);
    let end = |e: Option<&Estimate>| {
        let value = e.map(|e| Cell(vec![Part::Point(scale.show(e.value))]));
        value.unwrap_or_else(absent)
    };
    let r_squared = |e: &Estimate| Cell::lone(format!("{:.2}", e.value));
    vec![
        end(q.estimates.first()),
        end(q.estimates.last()),
        q.exponent.as_ref().map_or_else(absent, exponent),
        q.line.r_squared.as_ref().map_or_else(absent, r_squared),
        q.step
            .as_ref()
            .map_or_else(absent, |s| Cell::lone(step(s, name))),
        q.knee.as_ref().map_or_else(absent, |k| Cell::lone(knee(k))),
    ]
}

fn exponent(e: &Estimate) -> Cell {
    let half = 0.5 * (e.high - e.low);
    // Avoids -0.00.
    let value = format!("{:.2}", e.value).replace("-0.00", "0.00");
    Cell(vec![Part::Point(value), Part::Right(format!("±{half:.2}"))])
}

fn step(step: &StepReport, name: &str) -> String {
    let by = if name.ends_with("_ratio") {
        format!("{:+.0} points", step.change.value * 100.0)
    } else {
        format!("×{}", significant(step.change.value))
    };
    let leap = if step.is_leap { ", a leap" } else { "" };
    format!("{}→{} {by}{leap}", count(step.from), count(step.to))
}

fn knee(knee: &Knee) -> String {
    if !knee.is_shown {
        return "none".to_owned();
    }
    let [at, low, high] = [knee.at.value, knee.at.low, knee.at.high].map(count);
    format!("{at} [{low} to {high}]")
}
