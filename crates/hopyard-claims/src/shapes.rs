//! Shapes of curves against the number of senders, as figures with intervals.

use super::evidence::Series;
use super::figure::{Figure, Gathered, Point};
use super::groups::shared_blocks;
use super::label::apart;
use super::published::Published;
use super::rule::Shape;
use super::select::Selection;
use super::values::Values;
use crate::assess::curves::{self, Along};
use crate::model::{Base, Cell, LoadKind, Saturation, axis};
use crate::stats::{self, Estimate, Knee, Samples};
use crate::store::Run;

/// What shape of which curves is meant.
pub(super) struct Wanted<'a> {
    pub(super) shape: Shape,
    /// A curve is meant if one of its cells is.
    pub(super) cells: &'a Selection,
    /// What it is compared with, where a shape is compared.
    pub(super) to: Option<Base<'a>>,
    /// Least that is within the rule.
    pub(super) at_least: Option<f64>,
    /// What the rule has of a report.
    pub(super) published: &'a Published,
}

/// A figure of each curve, or of each pair of curves.
pub(super) fn gather(
    gathered: &mut Gathered,
    found: &[(&Cell, Vec<&Cell>)],
    wanted: &Wanted<'_>,
    values: Values<'_>,
) {
    let Values { run, what } = values;
    let name = what.name(LoadKind::UdpFlood);
    let words = crate::report::claims::words(&name);
    gathered.what = format!("{} of {words}", wanted.shape.words());
    for (cell, others) in found {
        for cell in std::iter::once(cell).chain(others) {
            if let Err(why) = values.of(cell) {
                gathered.note(why);
            }
        }
    }
    let meant = Meant {
        wanted,
        values,
        found,
    };
    let figures: Vec<(&Cell, Option<Estimate>)> = match wanted.shape {
        Shape::Fullness => {
            let first = |along: &Along<'_, Saturation>| full(along, run.header.confidence);
            meant.compared(&curves::fullness(run), first, gathered)
        }
        Shape::Knee => {
            let at = |along: &Along<'_, Knee>| {
                let knee = &along.figure;
                knee.is_shown.then(|| knee.at.clone())
            };
            meant.compared(&curves::knees(run, &name), at, gathered)
        }
        Shape::Leap => {
            // Shares rise by points; anything else changes by a factor.
            let least = wanted.at_least.filter(|_| name.ends_with("_ratio"));
            let changes = curves::changes(run, &name);
            match least {
                Some(least) => meant.leaps(&changes, least, gathered),
                None => meant.by_themselves(&changes, |along| Some(along.figure.change.clone())),
            }
        }
        Shape::Slopes => {
            let all = curves::slopes_around(run, &name, Shape::AT);
            meant.by_themselves(&all, |along| {
                Some(along.figure.after_minus_twice_before.clone())
            })
        }
        Shape::Line => meant.by_themselves(&curves::lines(run, &name), |along| {
            along.figure.r_squared.clone()
        }),
    };
    let names = apart(&figures.iter().map(|(cell, _)| *cell).collect::<Vec<_>>());
    for ((cell, figure), at) in figures.iter().zip(names) {
        match figure {
            Some(figure) => gathered.points.push(Point {
                at,
                cells: Vec::new(),
                figure: Figure::Known(figure.clone()),
                published: wanted.published.of(&[*cell]),
            }),
            None => gathered.note(
                format!("{at}: no {} is shown", wanted.shape.words())
                    .trim_start_matches(": ")
                    .to_owned(),
            ),
        }
    }
    if figures.is_empty() && gathered.untested.is_empty() {
        gathered.note(format!(
            "no curve of {words} was measured at enough numbers of senders"
        ));
    }
}

/// The curves that are meant.
struct Meant<'a> {
    wanted: &'a Wanted<'a>,
    values: Values<'a>,
    found: &'a [(&'a Cell, Vec<&'a Cell>)],
}

impl Meant<'_> {
    /// Has every cell of a curve values that count? A curve without one of them would be another curve.
    fn is_whole<T>(&self, along: &Along<'_, T>) -> bool {
        let cells = of_curve(self.values.run, along);
        cells.iter().all(|(_, cell)| self.values.of(cell).is_ok())
    }

    fn whole<'b, 'c, T>(
        &'b self,
        all: &'b [Along<'c, T>],
    ) -> impl Iterator<Item = &'b Along<'c, T>> {
        all.iter()
            .filter(move |along| self.wanted.cells.has(along.cell) && self.is_whole(along))
    }

    fn by_themselves<'c, T>(
        &self,
        all: &[Along<'c, T>],
        figure: impl Fn(&Along<'c, T>) -> Option<Estimate>,
    ) -> Vec<(&'c Cell, Option<Estimate>)> {
        let figures = self.whole(all).map(|along| (along.cell, figure(along)));
        figures.collect()
    }

    /// The largest rise of each curve; of one that may climb step by step, why that is not known.
    fn leaps<'c, T>(
        &self,
        all: &[Along<'c, T>],
        least: f64,
        gathered: &mut Gathered,
    ) -> Vec<(&'c Cell, Option<Estimate>)> {
        let mut figures = Vec::new();
        for along in self.whole(all) {
            match rise(&of_curve(self.values.run, along), self.values, least) {
                Ok(figure) => figures.push((along.cell, figure)),
                Err(why) => gathered.note(why),
            }
        }
        figures
    }

    /// The place of one curve over that of the other: both intervals count.
    fn compared<'c, T>(
        &self,
        all: &[Along<'c, T>],
        place: impl Fn(&Along<'c, T>) -> Option<Estimate>,
        gathered: &mut Gathered,
    ) -> Vec<(&'c Cell, Option<Estimate>)> {
        let Some(base) = &self.wanted.to else {
            return Vec::new();
        };
        let run = self.values.run;
        let in_curves: Vec<&Cell> = all
            .iter()
            .flat_map(|along| of_curve(run, along))
            .map(|(_, cell)| cell)
            .collect();
        let alone = self.found.iter().map(|(cell, _)| *cell);
        for cell in alone.filter(|cell| !in_curves.contains(cell)) {
            gathered.note(format!(
                "{}: one of its curves was measured at too few numbers of senders",
                cell.path
            ));
        }
        let mut figures = Vec::new();
        for along in self.whole(all) {
            let mut others = all.iter().filter(|other| self.is_whole(other));
            let Some(other) = others.find(|other| base.is_of(along.cell, other.cell)) else {
                gathered.note(format!(
                    "{}: what it is compared with has no such curve",
                    along.cell.path
                ));
                continue;
            };
            gathered.what = format!(
                "{}, {}",
                gathered.what.split(", ").next().unwrap_or_default(),
                super::label::versus(along.cell, other.cell)
            );
            let ratio = place(along)
                .zip(place(other))
                .map(|(own, theirs)| Estimate {
                    value: own.value / theirs.value,
                    low: own.low / theirs.high,
                    high: own.high / theirs.low,
                    confidence: own.confidence,
                    n: own.n.min(theirs.n),
                });
            figures.push((along.cell, ratio));
        }
        figures
    }
}

/// The cells of a curve with their counts, rising: all that differ in the count alone.
fn of_curve<'a, T>(run: &'a Run, along: &Along<'_, T>) -> Vec<(f64, &'a Cell)> {
    let Ok(axis) = axis(along.axis) else {
        return Vec::new();
    };
    let without = |cell: &Cell| {
        let mut place = cell.clone();
        (axis.clear)(&mut place.axes);
        place
    };
    let count = |cell: &Cell| -> Option<f64> { (axis.show)(&cell.axes)?.parse().ok() };
    let own = without(along.cell);
    let all = run.header.cells.iter().map(|planned| &planned.cell);
    let alike = all.filter(|cell| without(cell) == own);
    let mut cells: Vec<(f64, &Cell)> = alike
        .filter_map(|cell| Some((count(cell)?, cell)))
        .collect();
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    cells
}

/// The largest rise between two neighbouring counts, before all others one that is shown to be as large as the rule asks for. Its
/// interval allows for the choice among all neighbours (Bonferroni), and goes as high as that of any other: only where none may be so
/// large is there no such rise. A fall, however large, is no rise.
///
/// # Errors
/// The only rises of that size are between counts with others between them, over which it may climb step by step.
fn rise(
    cells: &[(f64, &Cell)],
    values: Values<'_>,
    least: f64,
) -> Result<Option<Estimate>, String> {
    let Some(rises) = rises(cells, values) else {
        return Ok(None);
    };
    let is_shown = |rise: &Estimate| rise.low >= least;
    let is_next = |pair: &[(f64, &Cell)]| pair[1].0 - pair[0].0 <= 1.0;
    let large = cells
        .windows(2)
        .zip(&rises)
        .filter(|(_, rise)| is_shown(rise));
    let (next, apart): (Vec<_>, Vec<_>) = large.partition(|(pair, _)| is_next(pair));
    if let (true, Some((pair, rise))) = (next.is_empty(), apart.first()) {
        let [from, to] = [pair[0].0, pair[1].0];
        return Err(format!(
            "it rises by {:.0} points between {from} and {to}, and whether it leaps there or climbs takes the numbers between them",
            rise.value * 100.0
        ));
    }
    // Of equal ones the first.
    let largest = |rises: &mut dyn Iterator<Item = &Estimate>| {
        let larger = rises.reduce(|a, b| if b.value > a.value { b } else { a });
        larger.cloned()
    };
    if let Some(shown) = largest(&mut next.iter().map(|(_, rise)| *rise)) {
        return Ok(Some(shown));
    }
    let highs = rises.iter().map(|rise| rise.high);
    let most = highs.fold(f64::NEG_INFINITY, f64::max);
    Ok(largest(&mut rises.iter()).map(|largest| Estimate {
        high: most,
        ..largest
    }))
}

/// The rise from each count to the next, with intervals of simultaneous confidence.
fn rises(cells: &[(f64, &Cell)], values: Values<'_>) -> Option<Vec<Estimate>> {
    let series = cells.iter().map(|(_, cell)| values.of(cell).ok());
    let series = series.collect::<Option<Vec<Series>>>()?;
    let blocks = shared_blocks(&series.iter().collect::<Vec<_>>());
    let confidence = values.run.header.confidence;
    let neighbours = series.len().saturating_sub(1).max(1);
    let each = 1.0 - (1.0 - confidence) / neighbours as f64;
    let change = |pair: &[Series]| {
        let rises = blocks.iter().map(|block| pair[1][block] - pair[0][block]);
        let rises = Samples::new(&rises.collect::<Vec<_>>()).ok()?;
        let mut rise = stats::mean_interval(&rises, each)?;
        rise.confidence = confidence;
        Some(rise)
    };
    series.windows(2).map(change).collect()
}

/// The first count at which CPUs are full.
fn full(along: &Along<'_, Saturation>, confidence: f64) -> Option<Estimate> {
    let [value, low, high] = along.figure.first_full_between(&along.values)?;
    Some(Estimate {
        value,
        low,
        high,
        confidence,
        n: along.blocks,
    })
}
