//! Pictures of the figures in the tables: what is drawn. [`super::html`] decides how.

mod across;
mod gallery;
mod shared;
mod words;

use super::quantity::Scale;
use super::table::Table;
use crate::stats::Estimate;

pub(super) use across::{Across, Tick};
pub(super) use gallery::Gallery;
pub(super) use shared::{Shared, shared};

/// A picture. All numbers are in its unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    /// Its title.
    pub(super) title: String,
    /// Unit of the values.
    pub(super) unit: String,
    /// The figures.
    pub(super) drawing: Drawing,
    /// The same figures as a table, if no other table has them.
    pub(super) table: Option<Table>,
}

/// The figures of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Drawing {
    /// Named marks below each other.
    Rows(Vec<Line>),
    /// Marks over the values of an axis.
    Curves(Curves),
    /// Parts of sums, a bar for each sum.
    Stacks {
        parts: Vec<String>,
        /// Name of the bar → size of each part.
        bars: Vec<(String, Vec<f64>)>,
    },
}

/// A mark with its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Its name.
    pub(super) name: String,
    /// Index of the hue.
    pub(super) hue: usize,
    /// Its figure, if there is one.
    pub(super) mark: Option<Mark>,
}

/// Marks over the values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curves {
    /// The axis.
    pub(super) across: Across,
    /// The curves, with a mark for each value that has one.
    pub(super) curves: Vec<Curve>,
    /// Findings along the axis.
    pub(super) found: Vec<Found>,
}

/// The marks of one curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// Its name.
    pub(super) name: String,
    /// Index of the hue.
    pub(super) hue: usize,
    /// A mark for each tick.
    pub(super) marks: Vec<Option<Mark>>,
    /// Whether these are isolated points. Then no line joins them, and other curves have no gap where only these have
    /// values.
    pub(super) is_points: bool,
}

/// A finding along the axis, about a curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The finding in one word.
    pub(super) what: &'static str,
    /// Name of the curve.
    pub(super) of: String,
    pub(super) hue: usize,
    /// Begin and end as coordinates; equal for a single place.
    pub(super) span: (f64, f64),
    /// Its uncertainty, if known.
    pub(super) interval: Option<(f64, f64)>,
    /// The text in tables.
    pub(super) words: String,
}

/// A value with its interval and samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) value: f64,
    /// Begin and end; absent for a single figure.
    pub(super) interval: Option<(f64, f64)>,
    /// Each sample.
    pub(super) dots: Vec<f64>,
}

impl Plot {
    /// A picture of figures that are in tables too.
    pub(super) fn new(title: impl Into<String>, unit: impl Into<String>, drawing: Drawing) -> Self {
        Self {
            title: title.into(),
            unit: unit.into(),
            drawing,
            table: None,
        }
    }
}

impl Mark {
    /// An estimate of a quantity that is never below 0, in a unit.
    pub(super) fn of(estimate: &Estimate, scale: Scale) -> Self {
        let mut mark = Self::signed(estimate, scale);
        mark.interval = mark.interval.map(|(low, high)| (low.max(0.0), high));
        mark
    }

    /// An estimate in a unit.
    pub(super) fn signed(estimate: &Estimate, scale: Scale) -> Self {
        let ends = (scale.of(estimate.low), scale.of(estimate.high));
        Self {
            value: scale.of(estimate.value),
            interval: (estimate.n > 1).then_some(ends),
            dots: Vec::new(),
        }
    }

    /// A figure without interval and samples.
    pub(super) fn lone(value: f64) -> Self {
        Self {
            value,
            interval: None,
            dots: Vec::new(),
        }
    }

    /// All its numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        let ends = self
            .interval
            .into_iter()
            .flat_map(|(low, high)| [low, high]);
        self.dots.iter().copied().chain(ends).chain([self.value])
    }
}
