//! The judge `peak`: where along an axis a quantity is greatest.

use std::cmp::Ordering;

use super::evidence::{self, Series};
use super::figure::{Figure, Gathered, Point};
use super::groups::shared_blocks;
use super::label::{apart, said};
use super::published::Published;
use super::values::Values;
use crate::model::{Cell, FOR_A_VERDICT, axis, grouped};
use crate::stats::{self, Estimate};

/// What peak is meant.
pub(super) struct Wanted<'a> {
    /// Along which axis.
    pub(super) axis: &'a str,
    /// Its last value.
    pub(super) last: u32,
    /// What the rule has of a report.
    pub(super) published: &'a Published,
}

/// A cell at a value of the axis.
struct Place<'a> {
    at: u32,
    cell: &'a Cell,
    series: Series,
}

impl Place<'_> {
    fn height(&self) -> Option<f64> {
        stats::mean(&self.series.values().copied().collect::<Vec<_>>())
    }

    /// It over another place, block by block.
    ///
    /// # Errors
    /// One of them has no values, and why.
    fn over(&self, other: &Self, values: Values<'_>) -> Result<Figure, String> {
        let [own, theirs] = values.pair([self.cell, other.cell])?;
        let blocks = shared_blocks(&[&own, &theirs]);
        let side = |series: &Series| blocks.iter().map(|block| series[block]).collect();
        Ok(Figure::Ratio {
            a: side(&own),
            b: side(&theirs),
        })
    }
}

/// The best of the values below the number of CPUs over each of the others, and the last over the best: a figure for all cells that
/// differ in nothing but the axis.
pub(super) fn gather(
    gathered: &mut Gathered,
    found: &[(&Cell, Vec<&Cell>)],
    wanted: &Wanted<'_>,
    values: Values<'_>,
) {
    let Ok(axis) = axis(wanted.axis) else { return };
    let alike = grouped(found.iter().map(|(cell, _)| {
        let mut place = (*cell).clone();
        (axis.clear)(&mut place.axes);
        (place, *cell)
    }));
    let names = apart(&alike.iter().map(|(place, _)| place).collect::<Vec<_>>());
    let mut most_chosen_of = 1;
    for ((_, cells), name) in alike.iter().zip(names) {
        let at = |cell: &Cell| (axis.show)(&cell.axes).and_then(|shown| shown.parse::<u32>().ok());
        let mut all = Vec::new();
        for &cell in cells {
            match (at(cell), values.of(cell)) {
                (Some(at), Ok(series)) => all.push(Place { at, cell, series }),
                (_, Err(why)) => gathered.note(why),
                (None, Ok(_)) => {}
            }
        }
        match of_places(gathered, (&all, &name), wanted, values) {
            Ok(chosen_of) => most_chosen_of = most_chosen_of.max(chosen_of),
            Err(why) => gathered.note(why),
        }
    }
    // The more values the best was chosen from, the higher it is by chance, and the lower the ratio of the last to it.
    let risk = 1.0 - gathered.confidence;
    gathered.confidence = 1.0 - risk / most_chosen_of as f64;
}

/// The figure of places along the axis. Gives how many there were to choose the best of.
///
/// # Errors
/// There is none, and why.
fn of_places(
    gathered: &mut Gathered,
    (all, called): (&[Place<'_>], &str),
    wanted: &Wanted<'_>,
    values: Values<'_>,
) -> Result<usize, String> {
    let (name, last, run) = (wanted.axis, wanted.last, values.run);
    let cpus = run.header.environment.cpus;
    let below = all.iter().filter(|place| place.at < cpus);
    // The largest of several looks larger than it is by chance.
    let chosen_of = below.clone().count().max(1);
    let best = below.max_by(|a, b| {
        a.height()
            .partial_cmp(&b.height())
            .unwrap_or(Ordering::Equal)
    });
    let best =
        best.ok_or_else(|| format!("no value of {name} below the number of CPUs, {cpus}"))?;
    let end = all.iter().find(|place| place.at == last);
    let end = end.ok_or_else(|| format!("{name} {last} was not measured"))?;
    let above: Vec<&Place<'_>> = all.iter().filter(|place| place.at >= cpus).collect();
    // One of several may be higher by chance (Bonferroni). That all are lower takes no correction, as with all figures of a rule, but
    // for the choice of the best.
    let risk = 1.0 - gathered.confidence;
    let one_of_them = 1.0 - risk / above.len().max(1) as f64;
    let all_of_them = 1.0 - risk / chosen_of as f64;
    for place in above {
        let over_best = place.over(best, values)?;
        let shows = |confidence: f64, is: fn(&Estimate) -> bool| {
            let ratio = over_best.interval(confidence);
            ratio.is_some_and(|ratio| is(&ratio) && ratio.n >= FOR_A_VERDICT as usize)
        };
        let at = format!(
            "at {name} {} than at {}, with {cpus} CPUs",
            place.at, best.at
        );
        if shows(one_of_them, |ratio| ratio.low > 1.0) {
            // The peak is not below the number of CPUs.
            let why = format!("it is higher {at}");
            gathered.refuted.get_or_insert(why);
        } else if !shows(all_of_them, |ratio| ratio.high < 1.0) {
            let why = format!("it is not shown to be lower {at}");
            gathered.unshown.get_or_insert(why);
        }
    }
    let of_plan = |place: &Place<'_>| evidence::published(run, place.cell, values.what);
    let ratio = || {
        of_plan(end)
            .zip(of_plan(best))
            .map(|(end, best)| end / best)
    };
    gathered.points.push(Point {
        at: said(&[called, &format!("{name} {last} / {}", best.at)]),
        cells: Vec::new(),
        figure: end.over(best, values)?,
        published: wanted.published.of(&[end.cell]).or_else(ratio),
    });
    Ok(chosen_of)
}
