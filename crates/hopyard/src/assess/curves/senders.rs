//! Figures of a run of many senders, each with its interval: what statements about containers, CPUs and jitter against N are
//! judged by. They judge nothing.

use super::{Measured, Swept, ratio, step};
use crate::assess::cells::of_block;
use crate::assess::{last_attempts, settling};
use crate::model::{Base, Cell, Saturation, StepReport};
use crate::stats::{self, Curve, Estimate, Knee, Slopes, Straight};
use crate::store::Run;

/// A figure of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct At<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The figure.
    pub figure: Estimate,
}

/// A figure of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Along<'a, T> {
    /// Its first cell; the others differ in the count alone.
    pub cell: &'a Cell,
    /// The count.
    pub axis: &'static str,
    /// Its values, rising.
    pub values: Vec<f64>,
    /// The figure.
    pub figure: T,
}

/// A quantity of containers over that of native processes, of every cell with both: a ratio, paired within blocks.
#[must_use]
pub fn own_over_native<'a>(run: &'a Run, quantity: &str) -> Vec<At<'a>> {
    let samples = last_attempts(&run.samples);
    let measured = Measured::of(&run.header, &samples);
    pairs(run)
        .filter_map(|(own, native)| {
            Some(At {
                cell: &run.header.cells[own].cell,
                figure: ratio(&measured, own, native, quantity)?,
            })
        })
        .collect()
}

/// How long jitter took to settle in containers over that among native processes, of every cell with both: a ratio, paired within the
/// blocks in which both settled.
#[must_use]
pub fn settling_own_over_native(run: &Run) -> Vec<At<'_>> {
    let samples = last_attempts(&run.samples);
    let time = |cell: usize, block: u32| settling::time_s(of_block(&samples, cell, block)?);
    pairs(run)
        .filter_map(|(own, native)| {
            let blocks = 0..run.samples.iter().map(|s| s.block + 1).max()?;
            let both = blocks.filter_map(|block| Some((time(own, block)?, time(native, block)?)));
            let (own_s, native_s): (Vec<f64>, Vec<f64>) = both.unzip();
            Some(At {
                cell: &run.header.cells[own].cell,
                figure: stats::paired_ratio(&own_s, &native_s, run.header.confidence)?,
            })
        })
        .collect()
}

/// A quantity of every cell over that of the same cell with `base` flows: a ratio, paired within blocks. Cells with `base`
/// flows or fewer are left out.
#[must_use]
pub fn over_count<'a>(run: &'a Run, quantity: &str, base: u32) -> Vec<At<'a>> {
    let samples = last_attempts(&run.samples);
    let measured = Measured::of(&run.header, &samples);
    let cells = || run.header.cells.iter().map(|planned| &planned.cell);
    cells()
        .enumerate()
        .filter(|(_, cell)| cell.axes.flows > base)
        .filter_map(|(place, cell)| {
            let mut wanted = cell.clone();
            wanted.axes.flows = base;
            let other = cells().position(|cell| *cell == wanted)?;
            Some(At {
                cell,
                figure: ratio(&measured, place, other, quantity)?,
            })
        })
        .collect()
}

/// From which count on the client's CPUs are full: a count, with the last before it and an interval.
#[must_use]
pub fn fullness(run: &Run) -> Vec<Along<'_, Saturation>> {
    along(run, |measured, swept| {
        measured.full(swept, super::CLIENT_CPU)
    })
}

/// The largest leap of a quantity between two neighbouring counts: points of a share, else a factor.
#[must_use]
pub fn changes<'a>(run: &'a Run, quantity: &str) -> Vec<Along<'a, StepReport>> {
    each(run, quantity, |curve| {
        step(quantity, curve, run.header.confidence)
    })
}

/// Slopes of a quantity before and after a count named beforehand: units of the quantity for each one more.
#[must_use]
pub fn slopes_around<'a>(run: &'a Run, quantity: &str, at: f64) -> Vec<Along<'a, Slopes>> {
    each(run, quantity, |curve| {
        stats::slopes_around(curve, at, run.header.confidence)
    })
}

/// Where a quantity bends: a count, with slopes on both sides and whether two lines are better than one.
#[must_use]
pub fn knees<'a>(run: &'a Run, quantity: &str) -> Vec<Along<'a, Knee>> {
    each(run, quantity, |curve| {
        stats::knee(curve, run.header.confidence, run.header.seed)
    })
}

/// How straight a quantity is against the count: R², with slope and intercept in its own units.
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
    along(run, |measured, swept| of(&measured.curve(swept, quantity)?))
}

fn along<T>(run: &Run, of: impl Fn(&Measured<'_>, &Swept) -> Option<T>) -> Vec<Along<'_, T>> {
    let samples = last_attempts(&run.samples);
    let measured = Measured::of(&run.header, &samples);
    let one = |swept: &Swept| {
        Some(Along {
            cell: &run.header.cells[swept.cells[0].1].cell,
            axis: swept.axis.name,
            values: swept.cells.iter().map(|(count, _)| *count).collect(),
            figure: of(&measured, swept)?,
        })
    };
    measured.swept().iter().filter_map(one).collect()
}

/// Every cell of containers with the same one of native processes.
fn pairs(run: &Run) -> impl Iterator<Item = (usize, usize)> + '_ {
    let cells = || run.header.cells.iter().map(|planned| &planned.cell);
    let native = Base::parse("containers=native").ok();
    native.into_iter().flat_map(move |native| {
        cells().enumerate().filter_map(move |(own, cell)| {
            let other = cells().position(|other| native.is_of(cell, other))?;
            (other != own).then_some((own, other))
        })
    })
}
