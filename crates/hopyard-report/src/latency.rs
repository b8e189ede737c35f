//! Distribution of round trips (for `udp_paced`, one-way times): a picture in which two modes are two humps, and its
//! quantiles as a table.

use super::document::{Cell, Column, Part, Row, Table};
use super::group::Group;
use super::number::{ABSENT, chosen, chosen_percent};
use super::plot::{Across, Curve, Curves, Drawing, Gallery, Mark, Plot, Shared, Tick, shared};
use super::quantity::{self, LATENCY_P50, Scale};
use crate::model::{CellReport, LatencyReport};
use crate::units::float;

/// A picture goes from the first of these quantiles of its fastest line to the second of its slowest. Rarer times would
/// be invisible, and would compress the rest.
const SHOWN: (f64, f64) = (0.01, 0.99);

/// A picture for each setting.
pub(super) fn plots(group: &Group<'_>, gallery: &Gallery<'_>) -> Vec<Plot> {
    let cells = group.cells.iter().copied();
    let cells: Vec<&CellReport> = cells.filter(|cell| cell.latency.is_some()).collect();
    let pictures = shared(
        &cells,
        |c| (c.path.as_str(), &c.axes),
        &group.varying,
        gallery,
    );
    let Some(timed) = group.load.info().timed else {
        return Vec::new();
    };
    let what = format!("% of {timed}");
    let plot = |shared: &Shared<'_, &CellReport>| {
        let lines = Distributions::of(shared);
        Plot {
            table: Some(lines.table()),
            ..Plot::new(
                shared.title("latency distribution".to_owned()),
                &what,
                Drawing::Curves(lines.curves()),
            )
        }
    };
    pictures.iter().map(plot).collect()
}

/// The distributions of one picture.
struct Distributions<'a> {
    /// Each with its name and hue.
    lines: Vec<(&'a LatencyReport, &'a str, usize)>,
    scale: Scale,
}

impl<'a> Distributions<'a> {
    fn of(shared: &'a Shared<'_, &CellReport>) -> Self {
        let lines = shared
            .lines
            .iter()
            .filter_map(|(cell, name, hue)| Some((cell.latency.as_ref()?, name.as_str(), *hue)));
        let lines: Vec<_> = lines.collect();
        let medians = lines.iter().filter_map(|(all, ..)| quantile(all, 0.5));
        let scale = quantity::scale(LATENCY_P50, medians.map(float).fold(0.0, f64::max));
        Self { lines, scale }
    }

    /// The share of each class, over the logarithm of time.
    fn curves(&self) -> Curves {
        let ends = self.lines.iter().map(|(all, ..)| {
            let first = quantile(all, SHOWN.0).unwrap_or(all.min_ns);
            let last = quantile(all, SHOWN.1).unwrap_or(all.max_ns);
            (number(float(first)), number(float(last)) + 1.0)
        });
        let (first, last) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), (first, last)| {
            (low.min(first), high.max(last))
        });
        // One more class at either end, so that curves end at zero.
        let numbers = std::iter::successors(Some(first - 1.0), |number| Some(number + 1.0));
        let numbers: Vec<f64> = numbers.take_while(|number| *number <= last + 1.0).collect();
        let curve = |(all, name, hue): &(&LatencyReport, &str, usize)| Curve {
            is_points: false,
            name: (*name).to_owned(),
            hue: *hue,
            marks: numbers.iter().map(|number| mark(all, *number)).collect(),
        };
        Curves {
            curves: self.lines.iter().map(curve).collect(),
            across: Across::evenly(
                &format!("{}, logarithmic", self.scale.unit),
                numbers.iter().map(|number| self.tick(*number)).collect(),
            ),
            found: Vec::new(),
        }
    }

    /// The upper end of a class; the axis names 1, 2 and 5.
    fn tick(&self, number: f64) -> Tick {
        let decade = 10_f64.powf((number / LatencyReport::CLASSES).floor());
        let round = [(0.0, 1.0), (12.0, 2.0), (28.0, 5.0)]
            .into_iter()
            .find(|(place, _)| number.rem_euclid(LatencyReport::CLASSES) == *place);
        let upper = round.map_or_else(|| bound(number), |(_, digit)| digit * decade);
        Tick {
            name: chosen(self.scale.of(upper)),
            place: number,
            is_labelled: round.is_some(),
        }
    }

    fn table(&self) -> Table {
        let mut quantiles: Vec<f64> = Vec::new();
        for (q, _) in self.lines.iter().flat_map(|(all, ..)| &all.quantiles) {
            if !quantiles.contains(q) {
                quantiles.push(*q);
            }
        }
        quantiles.sort_by(f64::total_cmp);
        let unit = self.scale.unit;
        let mut columns = vec![
            Column::left(&["latency of"]),
            Column::right(&["count"]),
            Column::right(&["least", unit]),
        ];
        columns.extend(quantiles.iter().map(|q| {
            let percent = chosen_percent(*q);
            Column::right(&[&format!("p{}", percent.trim_end_matches(" %")), unit])
        }));
        columns.push(Column::right(&["greatest", unit]));
        let show = |ns: u64| Cell(vec![Part::Point(self.scale.show(float(ns)))]);
        let rows = self.lines.iter().map(|(all, name, _)| {
            let mut row = vec![
                Cell::lone(*name),
                Cell(vec![Part::Right(all.count.to_string())]),
                show(all.min_ns),
            ];
            // Some lines have fewer observations than others.
            let absent = || Cell::lone(ABSENT);
            row.extend(
                quantiles
                    .iter()
                    .map(|q| quantile(all, *q).map_or_else(absent, show)),
            );
            row.push(show(all.max_ns));
            Row::Cells(row)
        });
        Table {
            keys: 1,
            rows: rows.collect(),
            columns,
        }
    }
}

/// The share of a class, %; zero beyond all observations.
fn mark(all: &LatencyReport, at: f64) -> Option<Mark> {
    let first = number(all.classes.first()?.0);
    let last = number(all.classes.last()?.0);
    let own = all.classes.iter().find(|(upper, _)| number(*upper) == at);
    let count = own.map_or(0, |(_, count)| *count);
    let seen = (first - 1.0..=last + 1.0).contains(&at);
    seen.then(|| Mark::lone(float(count) / float(all.count) * 100.0))
}

/// The number of the class with this upper bound: a coordinate on the axis.
fn number(upper_ns: f64) -> f64 {
    let number = upper_ns.max(1.0).log10() * LatencyReport::CLASSES;
    number.round()
}

/// Its upper bound, ns.
fn bound(number: f64) -> f64 {
    10_f64.powf(number / LatencyReport::CLASSES)
}

/// A quantile, ns, if samples have it.
fn quantile(all: &LatencyReport, q: f64) -> Option<u64> {
    let kept = all.quantiles.iter().find(|(kept, _)| *kept == q);
    kept.map(|(_, ns)| *ns)
}
