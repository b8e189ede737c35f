//! The judge `peak`: where along an axis a quantity is greatest.

use std::cmp::Ordering;

use super::evidence::Series;
use super::judge::{Figure, Gathered, Point, paired};
use crate::model::{Cell, axis};
use crate::stats;
use crate::store::Run;

/// The best of the values below the number of CPUs over each of the others, and the last over the best.
pub(super) fn peak(
    gathered: &mut Gathered,
    run: &Run,
    found: &[(&Cell, Vec<&Cell>)],
    (name, last): (&str, u32),
    series: impl Fn(&Cell) -> Result<Series, String>,
) {
    let Ok(axis) = axis(name) else { return };
    let place = |cell: &Cell| (axis.show)(&cell.axes).and_then(|shown| shown.parse::<u32>().ok());
    let mut all: Vec<(u32, &Cell, Series)> = Vec::new();
    for (cell, _) in found {
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
    let higher = all.iter().find(|(place, _, series)| {
        *place >= cpus && {
            let [a, b] = paired([series, &best.2]);
            // Shown to be higher: the peak is not below the number of CPUs.
            stats::paired_ratio(&a, &b, gathered.confidence).is_some_and(|ratio| ratio.low > 1.0)
        }
    });
    gathered.refuted = higher.map(|(place, ..)| {
        format!(
            "it is higher at {name} {place} than at {}, with {cpus} CPUs",
            best.0
        )
    });
    let [a, b] = paired([&end.2, &best.2]);
    let published = |cell: &Cell| {
        run.header
            .published
            .iter()
            .flat_map(|t| &t.figures)
            .find(|f| f.is_of((&cell.path, cell.peer, cell.load), &cell.axes))
            .map(|f| f.value)
    };
    gathered.points.push(Point {
        at: format!("{name} {last} / {}", best.0),
        figure: Figure::Ratio { a, b },
        published: published(end.1).zip(published(best.1)).map(|(a, b)| a / b),
    });
}
