//! Sources of the pictures of cells.

use super::{Drawing, Line, Mark, Plot};
use crate::group::{Group, scale};
use crate::model::{CellReport, Observation, RunReport, distinct};
use crate::plain;
use crate::quantity::{self, LATENCY_P50, LATENCY_P99, Scale};

/// Data for pictures besides a table's own cells.
pub(crate) struct Gallery<'a> {
    observations: &'a [Observation],
    paths: Vec<&'a str>,
}

impl<'a> Gallery<'a> {
    /// For a whole run: a path has the same hue in all its pictures.
    pub(crate) fn of(report: &'a RunReport, observations: &'a [Observation]) -> Self {
        let measured = report.cells.iter().map(|cell| cell.path.as_str());
        let published = report.published.iter().flat_map(|table| &table.figures);
        Self {
            observations,
            paths: distinct(measured.chain(published.map(|figure| figure.path.as_str()))),
        }
    }

    /// The hue of a path.
    pub(crate) fn hue(&self, path: &str) -> usize {
        self.paths
            .iter()
            .position(|other| *other == path)
            .unwrap_or(0)
    }

    /// A quantity of a cell, with its samples.
    pub(crate) fn mark(&self, cell: &CellReport, name: &str, scale: Scale) -> Option<Mark> {
        let estimate = cell.estimates.get(name)?;
        Some(Mark {
            dots: self.dots(cell, name, scale),
            ..Mark::of(estimate, scale)
        })
    }

    /// A quantity in each sample of a cell.
    pub(crate) fn dots(&self, cell: &CellReport, name: &str, scale: Scale) -> Vec<f64> {
        let own = self
            .observations
            .iter()
            .filter(|o| o.counted && o.is_of(cell));
        let values = own.filter_map(|o| o.values.get(name));
        values.map(|value| scale.of(*value)).collect()
    }

    /// A picture of each main quantity, a line for each cell.
    pub(crate) fn rows(&self, group: &Group<'_>) -> Vec<Plot> {
        let line = |cell: &&CellReport, name: &'static str| {
            let mut names = vec![plain::line(&cell.path)];
            names.extend(group.values(cell).iter().map(|value| plain::line(value)));
            Line {
                name: names.join(" · "),
                hue: self.hue(&cell.path),
                mark: self.mark(cell, name, scale(group, name)),
            }
        };
        let measured =
            |name: &&'static str| group.cells.iter().any(|c| c.estimates.contains_key(*name));
        let quantities = quantities(group).into_iter().filter(measured);
        quantities
            .map(|name| {
                let lines = group.cells.iter().map(|cell| line(cell, name));
                let drawing = Drawing::Rows(lines.collect());
                Plot::new(quantity::words(name), scale(group, name).unit, drawing)
            })
            .collect()
    }
}

/// The main quantities of a group's cells.
fn quantities(group: &Group<'_>) -> Vec<&'static str> {
    let mut names = vec![group.main, quantity::cpu_cost(group.load)];
    if group.load.info().timed.is_some() {
        names.extend(
            [LATENCY_P50, LATENCY_P99]
                .into_iter()
                .filter(|name| *name != group.main),
        );
    }
    names
}
