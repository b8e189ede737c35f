//! Shapes of curves against the number of senders, as figures with intervals.

use super::evidence::What;
use super::figure::{Figure, Gathered, Point};
use super::label::apart;
use super::published::Published;
use super::rule::Shape;
use super::select::Selection;
use crate::assess::curves::{self, Along};
use crate::model::{Base, Cell, LoadKind, Saturation};
use crate::stats::Estimate;
use crate::store::Run;

/// What shape of which curves is meant.
pub(super) struct Wanted<'a> {
    pub(super) shape: Shape,
    pub(super) what: &'a What,
    /// A curve is meant if one of its cells is.
    pub(super) cells: &'a Selection,
    /// What it is compared with, where a shape is compared.
    pub(super) to: Option<Base<'a>>,
    /// What the rule has of a report.
    pub(super) published: &'a Published,
}

/// A figure of each curve, or of each pair of curves.
pub(super) fn gather(gathered: &mut Gathered, run: &Run, wanted: &Wanted<'_>) {
    let name = wanted.what.name(LoadKind::UdpFlood);
    let words = crate::report::claims::words(&name);
    gathered.what = format!("{} of {words}", wanted.shape.words());
    let figures: Vec<(&Cell, Option<Estimate>)> = match wanted.shape {
        Shape::Fullness => {
            let all = curves::fullness(run);
            let first = |along: &Along<'_, Saturation>| full(along, run.header.confidence);
            compared(&all, wanted, first, gathered)
        }
        Shape::Knee => {
            let all = curves::knees(run, &name);
            compared(
                &all,
                wanted,
                |along| along.figure.is_shown.then(|| along.figure.at.clone()),
                gathered,
            )
        }
        Shape::Leap => by_itself(&curves::changes(run, &name), wanted, |step| {
            Some(step.change.clone())
        }),
        Shape::Slopes => {
            let all = curves::slopes_around(run, &name, Shape::AT);
            by_itself(&all, wanted, |slopes| {
                Some(slopes.after_minus_twice_before.clone())
            })
        }
        Shape::Line => by_itself(&curves::lines(run, &name), wanted, |line| {
            line.r_squared.clone()
        }),
    };
    let names = apart(&figures.iter().map(|(cell, _)| *cell).collect::<Vec<_>>());
    for ((cell, figure), at) in figures.iter().zip(names) {
        match figure {
            Some(figure) => gathered.points.push(Point {
                at,
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
    if figures.is_empty() {
        gathered.note(format!(
            "no curve of {words} was measured at enough numbers of senders"
        ));
    }
}

fn by_itself<'a, T>(
    all: &[Along<'a, T>],
    wanted: &Wanted<'_>,
    figure: impl Fn(&T) -> Option<Estimate>,
) -> Vec<(&'a Cell, Option<Estimate>)> {
    let meant = all.iter().filter(|along| wanted.cells.has(along.cell));
    meant
        .map(|along| (along.cell, figure(&along.figure)))
        .collect()
}

/// The place of one curve over that of the other: both intervals count.
fn compared<'a, T>(
    all: &[Along<'a, T>],
    wanted: &Wanted<'_>,
    place: impl Fn(&Along<'a, T>) -> Option<Estimate>,
    gathered: &mut Gathered,
) -> Vec<(&'a Cell, Option<Estimate>)> {
    let Some(base) = &wanted.to else {
        return Vec::new();
    };
    let meant = all.iter().filter(|along| wanted.cells.has(along.cell));
    let mut figures = Vec::new();
    for along in meant {
        let Some(other) = all.iter().find(|other| base.is_of(along.cell, other.cell)) else {
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

/// The first count at which CPUs are full. An end beyond the last count is the last one: nobody looked further.
fn full(along: &Along<'_, Saturation>, confidence: f64) -> Option<Estimate> {
    let last = along.values.last().copied()?;
    let first = along.figure.first_full?;
    let interval = along.figure.interval.as_ref()?;
    Some(Estimate {
        value: first,
        low: interval.low.unwrap_or(last).min(first),
        high: interval.high.unwrap_or(last).max(first),
        confidence,
        n: along.blocks,
    })
}
