//! Pictures: what is drawn, of the same figures as the tables; how, is for [`super::html`] to say.

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
    /// What it shows.
    pub(super) title: String,
    /// Unit of the values.
    pub(super) unit: String,
    /// The figures.
    pub(super) drawing: Drawing,
    /// The same as a table, where no other has them.
    pub(super) table: Option<Table>,
}

/// The figures of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Drawing {
    /// Named marks below each other.
    Rows(Vec<Line>),
    /// Marks over the values of an axis.
    Curves(Curves),
    /// Parts that sum up, a bar for each sum.
    Stacks {
        parts: Vec<String>,
        /// Name of the bar → size of each part.
        bars: Vec<(String, Vec<f64>)>,
    },
}

/// A mark with its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// What it is.
    pub(super) name: String,
    /// Which of the hues.
    pub(super) hue: usize,
    /// Its figure, where there is one.
    pub(super) mark: Option<Mark>,
}

/// Marks over the values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curves {
    /// The axis.
    pub(super) across: Across,
    /// A mark for each value, where there is one.
    pub(super) curves: Vec<Curve>,
    /// What was found along the axis.
    pub(super) found: Vec<Found>,
}

/// Marks of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    /// What they are.
    pub(super) name: String,
    /// Which of the hues.
    pub(super) hue: usize,
    /// A mark for each tick.
    pub(super) marks: Vec<Option<Mark>>,
    /// Are they points by themselves? Then nothing joins them, and no other curve has a gap where only they are.
    pub(super) is_points: bool,
}

/// A place along the axis at which something happens to a curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// What, in one word.
    pub(super) what: &'static str,
    /// The curve.
    pub(super) of: String,
    pub(super) hue: usize,
    /// From where to where, as places; alike where it is one.
    pub(super) span: (f64, f64),
    /// How far it may be off, where that is known.
    pub(super) interval: Option<(f64, f64)>,
    /// The same as tables write it.
    pub(super) words: String,
}

/// A value with its interval and the samples behind it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) value: f64,
    /// From, to; of a single figure there is none.
    pub(super) interval: Option<(f64, f64)>,
    /// Each sample.
    pub(super) dots: Vec<f64>,
}

impl Plot {
    /// A picture of what is in tables too.
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
    /// An estimate of what is never below 0, in a unit.
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

    /// A figure without more.
    pub(super) fn lone(value: f64) -> Self {
        Self {
            value,
            interval: None,
            dots: Vec::new(),
        }
    }

    /// Every number of it.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        let ends = self
            .interval
            .into_iter()
            .flat_map(|(low, high)| [low, high]);
        self.dots.iter().copied().chain(ends).chain([self.value])
    }
}
