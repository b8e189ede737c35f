//! Swept axes as curves: one axis across, a curve for each path or value of another axis.

use super::{Dimension, Plane, quantities};
use crate::curves as against;
use crate::group::{Group, scale};
use crate::model::{CellReport, RunReport};
use crate::plot::{Across, Curve, Curves, Drawing, Gallery, Mark, Plot, Tick};
use crate::quantity;

/// A picture of each quantity, for each value of a third dimension, except those that are drawn against a count; `None`
/// if the group is not a sweep.
pub(crate) fn plots(
    group: &Group<'_>,
    report: &RunReport,
    gallery: &Gallery<'_>,
) -> Option<Vec<Plot>> {
    let plane = plane(group)?;
    let is_elsewhere = |name: &&str| match plane.down {
        Dimension::Axis(axis) => against::draws(report, group, axis, name),
        Dimension::Path => false,
    };
    let names: Vec<&'static str> = quantities(group)
        .into_iter()
        .filter(|name| !is_elsewhere(name))
        .collect();
    let slices = match plane.slices {
        Some(slices) => slices.values(&group.cells).into_iter().map(Some).collect(),
        None => vec![None],
    };
    let pictures = slices.iter().flat_map(|slice| {
        let within = |cell: &&CellReport| match (plane.slices, slice) {
            (Some(dimension), Some(value)) => dimension.of(cell) == *value,
            _ => true,
        };
        let cells: Vec<&CellReport> = group.cells.iter().copied().filter(within).collect();
        let where_ = plane.slices.zip(slice.as_ref());
        let place = where_.map(|(dimension, value)| dimension.phrase(value));
        let (plane, names) = (&plane, names.clone());
        names.into_iter().map(move |name| {
            let scale = scale(group, name);
            let words = quantity::words(name);
            let title = place
                .iter()
                .fold(words, |title, place| format!("{title} · {place}"));
            let mark = |cell: &CellReport| gallery.mark(cell, name, scale);
            Plot::new(title, scale.unit, drawing(plane, &cells, mark, gallery))
        })
    });
    Some(pictures.collect())
}

/// As in tables; also one axis of one path, which is a list there.
fn plane(group: &Group<'_>) -> Option<Plane> {
    Plane::of(group).or(match group.varying[..] {
        [down] if group.paths().len() == 1 => Some(Plane {
            down: Dimension::Axis(down),
            across: Dimension::Path,
            slices: None,
        }),
        _ => None,
    })
}

fn drawing(
    plane: &Plane,
    cells: &[&CellReport],
    mark: impl Fn(&CellReport) -> Option<Mark>,
    gallery: &Gallery<'_>,
) -> Drawing {
    let across = Across::of(plane.down.name(), plane.down.values(cells));
    let curves = plane.across.values(cells).into_iter().enumerate();
    let curves = curves.map(|(place, value)| {
        let own = |cell: &&&CellReport| plane.across.of(cell) == value;
        let at = |tick: &Tick| {
            let mut own = cells.iter().filter(own);
            own.find(|cell| plane.down.of(cell) == tick.name)
                .and_then(|cell| mark(cell))
        };
        Curve {
            is_points: false,
            hue: match plane.across {
                Dimension::Path => cells
                    .iter()
                    .find(own)
                    .map_or(0, |cell| gallery.hue(&cell.path)),
                Dimension::Axis(_) => place,
            },
            marks: across.ticks.iter().map(at).collect(),
            name: plane.across.phrase(&value),
        }
    });
    Drawing::Curves(Curves {
        curves: curves.collect(),
        found: Vec::new(),
        across,
    })
}
