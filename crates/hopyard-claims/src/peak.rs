//! The judge `peak`: where along an axis a quantity is greatest.

use std::cmp::Ordering;

use super::evidence::{self, Series, What};
use super::figure::{Figure, Gathered, Point};
use super::groups::paired;
use super::label::apart;
use super::published::Published;
use crate::model::{Cell, FOR_A_VERDICT, axis, grouped};
use crate::stats;
use crate::store::Run;

/// What peak is meant.
pub(super) struct Wanted<'a> {
    /// Along which axis.
    pub(super) axis: &'a str,
    /// Its last value.
    pub(super) last: u32,
    /// Of which quantity.
    pub(super) what: &'a What,
    /// What the rule has of a report.
    pub(super) published: &'a Published,
}

/// The best of the values below the number of CPUs over each of the others, and the last over the best: a figure for all cells that
/// differ in nothing but the axis.
pub(super) fn gather(
    gathered: &mut Gathered,
    run: &Run,
    found: &[(&Cell, Vec<&Cell>)],
    wanted: &Wanted<'_>,
    series: impl Fn(&Cell) -> Result<Series, String>,
) {
    let Ok(axis) = axis(wanted.axis) else { return };
    let alike = grouped(found.iter().map(|(cell, _)| {
        let mut place = (*cell).clone();
        (axis.clear)(&mut place.axes);
        (place, *cell)
    }));
    let names = apart(&alike.iter().map(|(place, _)| place).collect::<Vec<_>>());
    for ((_, cells), name) in alike.iter().zip(names) {
        of_cells(gathered, run, (cells, &name), wanted, &series);
    }
}

fn of_cells(
    gathered: &mut Gathered,
    run: &Run,
    (cells, called): (&[&Cell], &str),
    wanted: &Wanted<'_>,
    series: &impl Fn(&Cell) -> Result<Series, String>,
) {
    let (name, last) = (wanted.axis, wanted.last);
    let Ok(axis) = axis(name) else { return };
    let place = |cell: &Cell| (axis.show)(&cell.axes).and_then(|shown| shown.parse::<u32>().ok());
    let mut all: Vec<(u32, &Cell, Series)> = Vec::new();
    for cell in cells {
        match (place(cell), series(cell)) {
            (Some(place), Ok(series)) => all.push((place, cell, series)),
            (_, Err(why)) => gathered.note(why),
            (None, Ok(_)) => {}
        }
    }
    let height = |series: &Series| stats::mean(&series.values().copied().collect::<Vec<_>>());
    let cpus = run.header.environment.cpus;
    let below = all.iter().filter(|(place, ..)| *place < cpus);
    let Some(best) = below.max_by(|a, b| {
        height(&a.2)
            .partial_cmp(&height(&b.2))
            .unwrap_or(Ordering::Equal)
    }) else {
        gathered.note(format!(
            "no value of {name} below the number of CPUs, {cpus}"
        ));
        return;
    };
    let Some(end) = all.iter().find(|(place, ..)| *place == last) else {
        gathered.note(format!("{name} {last} was not measured"));
        return;
    };
    let above = || all.iter().filter(|(place, ..)| *place >= cpus);
    // One of several may be higher by chance (Bonferroni).
    let confidence = 1.0 - (1.0 - gathered.confidence) / above().count().max(1) as f64;
    let higher = above().find(|(_, _, series)| {
        let (a, b) = paired(series, &best.2);
        // Shown to be higher: the peak is not below the number of CPUs.
        let ratio = stats::paired_ratio(&a, &b, confidence);
        ratio.is_some_and(|ratio| ratio.low > 1.0 && ratio.n >= FOR_A_VERDICT as usize)
    });
    let refuted = higher.map(|(place, ..)| {
        format!(
            "it is higher at {name} {place} than at {}, with {cpus} CPUs",
            best.0
        )
    });
    gathered.refuted = gathered.refuted.take().or(refuted);
    let (a, b) = paired(&end.2, &best.2);
    let of_plan = |cell: &Cell| evidence::published(run, cell, wanted.what);
    let ratio = || {
        of_plan(end.1)
            .zip(of_plan(best.1))
            .map(|(end, best)| end / best)
    };
    gathered.points.push(Point {
        at: [called, &format!("{name} {last} / {}", best.0)]
            .into_iter()
            .filter(|words| !words.is_empty())
            .collect::<Vec<_>>()
            .join(" · "),
        figure: Figure::Ratio { a, b },
        published: wanted.published.of(&[end.1]).or_else(ratio),
    });
}
