//! Figures of a run of many senders, each with its interval, for judging statements about containers, CPUs and jitter
//! against N. This module judges nothing itself.

use super::{Measured, Swept, step};
use crate::last_attempts;
use crate::model::stored::Run;
use crate::model::{Cell, Saturation, StepReport};
use crate::stats::{self, Curve, Knee, Slopes, Straight};

/// A figure of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Along<'a, T> {
    /// Its first cell; the others differ only in the count.
    pub cell: &'a Cell,
    /// The count.
    pub axis: &'static str,
    /// Its values, rising.
    pub values: Vec<f64>,
    /// Blocks that the figure uses.
    pub blocks: usize,
    pub figure: T,
}

/// The count from which on the client's CPUs are full, with the last count before it and an interval.
#[must_use]
pub fn fullness(run: &Run) -> Vec<Along<'_, Saturation>> {
    let full = |measured: &Measured<'_>, swept: &Swept| measured.full(swept, super::CLIENT_CPU);
    along(run, super::CLIENT_CPU, full)
}

/// The largest leap of a quantity between two neighbouring counts: points of a share, else a factor.
#[must_use]
pub fn changes<'a>(run: &'a Run, quantity: &str) -> Vec<Along<'a, StepReport>> {
    each(run, quantity, |curve| {
        step(quantity, curve, run.header.confidence)
    })
}

/// Slopes of a quantity before and after a count chosen beforehand: units of the quantity per unit of the count.
#[must_use]
pub fn slopes_around<'a>(run: &'a Run, quantity: &str, at: f64) -> Vec<Along<'a, Slopes>> {
    each(run, quantity, |curve| {
        stats::slopes_around(curve, at, run.header.confidence)
    })
}

/// The count at which a quantity bends, with slopes on both sides and whether two lines are better than one.
#[must_use]
pub fn knees<'a>(run: &'a Run, quantity: &str) -> Vec<Along<'a, Knee>> {
    each(run, quantity, |curve| {
        stats::knee(curve, run.header.confidence, run.header.seed)
    })
}

/// How straight a quantity is over the count: R², with slope and intercept in its own units.
#[must_use]
pub fn lines<'a>(run: &'a Run, quantity: &str) -> Vec<Along<'a, Straight>> {
    each(run, quantity, |curve| {
        stats::straight(curve, run.header.confidence, run.header.seed)
    })
}

fn each<'a, T>(
    run: &'a Run,
    quantity: &str,
    of: impl Fn(&Curve) -> Option<T>,
) -> Vec<Along<'a, T>> {
    along(run, quantity, |measured, swept| {
        of(&measured.curve(swept, quantity)?)
    })
}

fn along<'a, T>(
    run: &'a Run,
    quantity: &str,
    of: impl Fn(&Measured<'_>, &Swept) -> Option<T>,
) -> Vec<Along<'a, T>> {
    let samples = last_attempts(&run.samples);
    let measured = Measured::of(&run.header, &samples);
    let one = |swept: &Swept| {
        Some(Along {
            cell: &run.header.cells[swept.cells[0].1].cell,
            axis: swept.axis.name,
            values: swept.cells.iter().map(|(count, _)| *count).collect(),
            blocks: measured.curve(swept, quantity)?.blocks(),
            figure: of(&measured, swept)?,
        })
    };
    measured.swept().iter().filter_map(one).collect()
}
