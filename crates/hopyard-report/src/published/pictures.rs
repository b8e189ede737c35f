//! Pictures of published figures, below those of measured ones. Each has its own scale, because machines differ and
//! only shapes can be compared.

use super::{Comparison, Pair, whence};
use crate::document::Block;
use crate::model::PublishedFigure;
use crate::model::distinct;
use crate::plain;
use crate::plot::{Across, Curve, Curves, Drawing, Gallery, Line, Mark, Plot, Tick};

/// A line for each figure.
pub(super) fn rows(table: &Comparison<'_>, gallery: &Gallery<'_>) -> [Block; 2] {
    let several = distinct(table.pairs.iter().map(|pair| whence(pair.then))).len() > 1;
    let name = |figure: &PublishedFigure| {
        let values = table.varied.iter().filter_map(|axis| figure.set.get(*axis));
        let load = several.then(|| whence(figure));
        let words = [plain::line(&figure.path)].into_iter().chain(load);
        words
            .chain(values.map(|value| plain::line(value)))
            .collect::<Vec<_>>()
            .join(" · ")
    };
    both(table, |mark| {
        let line = |pair: &Pair<'_>| Line {
            name: name(pair.then),
            hue: gallery.hue(&pair.then.path),
            mark: mark(pair),
        };
        Drawing::Rows(table.pairs.iter().map(line).collect())
    })
}

/// A curve for each value across, over the axis that is vertical in the table.
pub(super) fn curves(
    table: &Comparison<'_>,
    pairs: &[&Pair<'_>],
    (down, across): (&str, &dyn Fn(&PublishedFigure) -> String),
    gallery: &Gallery<'_>,
) -> [Block; 2] {
    let value = |pair: &Pair<'_>| pair.then.set.get(down).map(|value| plain::line(value));
    let values = distinct(pairs.iter().filter_map(|pair| value(pair)));
    let over = Across::of(down, values);
    let names = distinct(pairs.iter().map(|pair| across(pair.then)));
    let paths = distinct(pairs.iter().map(|pair| &pair.then.path)).len() > 1;
    both(table, |mark| {
        let curve = |(place, name): (usize, &String)| {
            let own = |pair: &&&Pair<'_>| across(pair.then) == *name;
            let at = |tick: &Tick| {
                let mut own = pairs.iter().filter(own);
                own.find(|pair| value(pair).as_ref() == Some(&tick.name))
                    .and_then(|pair| mark(pair))
            };
            let first = pairs.iter().find(own).filter(|_| paths);
            Curve {
                is_points: false,
                name: name.clone(),
                hue: first.map_or(place, |pair| gallery.hue(&pair.then.path)),
                marks: over.ticks.iter().map(at).collect(),
            }
        };
        let curves = names.iter().enumerate().map(curve);
        Drawing::Curves(Curves {
            curves: curves
                .filter(|curve| curve.marks.iter().any(Option::is_some))
                .collect(),
            across: over.clone(),
            found: Vec::new(),
        })
    })
}

/// The measured figures, and below them the published ones.
fn both(
    table: &Comparison<'_>,
    draw: impl Fn(&dyn Fn(&Pair<'_>) -> Option<Mark>) -> Drawing,
) -> [Block; 2] {
    let here = |pair: &Pair<'_>| pair.estimate.map(|estimate| Mark::of(estimate, pair.scale));
    let then = |pair: &Pair<'_>| {
        let value = pair.then.value;
        let interval = pair
            .then
            .half_width
            .map(|half| (value - half, value + half));
        Some(Mark {
            interval,
            ..Mark::lone(value)
        })
    };
    [
        Plot::new("measured here", table.scale.unit, draw(&here)),
        Plot::new(
            "as published",
            plain::line(&table.published.what),
            draw(&then),
        ),
    ]
    .map(|plot| Block::Plots(vec![plot]))
}
