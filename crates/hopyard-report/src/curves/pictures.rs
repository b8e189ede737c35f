//! Pictures of quantities against a count, with the results of the tables: where CPUs are full, leaps and knees.

use super::{Section, count, knee, saturation, step};
use crate::model::{AXES, CellReport, CurveReport, QuantityCurve};
use crate::plot::{
    Across, Curve, Curves, Drawing, Found, Gallery, Mark, Plot, Shared, Tick, shared,
};
use crate::quantity::{self, Scale};

/// A picture of a quantity for each setting.
pub(super) fn plots(
    section: &Section<'_>,
    name: &str,
    scale: Scale,
    gallery: &Gallery<'_>,
) -> Vec<Plot> {
    let of = |curve: &&CurveReport| curve.quantities.contains_key(name);
    let curves: Vec<&CurveReport> = section.curves.iter().copied().filter(of).collect();
    let picture = Picture {
        section,
        name,
        scale,
        gallery,
    };
    let plot = |shared: &Shared<'_, &CurveReport>| {
        let drawing = Drawing::Curves(picture.curves(shared));
        Plot::new(shared.title(quantity::words(name)), scale.unit, drawing)
    };
    let pictures = shared(
        &curves,
        |c| (c.path.as_str(), &c.axes),
        &section.others,
        gallery,
    );
    pictures.iter().map(plot).collect()
}

struct Picture<'a> {
    section: &'a Section<'a>,
    name: &'a str,
    scale: Scale,
    gallery: &'a Gallery<'a>,
}

impl Picture<'_> {
    fn curves(&self, shared: &Shared<'_, &CurveReport>) -> Curves {
        let told = shared.lines.iter().filter_map(|(curve, name, hue)| {
            Some((**curve, curve.quantities.get(self.name)?, (name, *hue)))
        });
        let told: Vec<(&CurveReport, &QuantityCurve, (&String, usize))> = told.collect();
        let values = told.iter().flat_map(|(_, q, _)| &q.values);
        let values = values.map(|value| (*value, count(*value))).collect();
        let across = Across::numbers(self.section.axis.name, values);
        let curves = told.iter().map(|(curve, q, (name, hue))| {
            let marks = across.ticks.iter().map(|tick| self.mark(curve, q, tick));
            Curve {
                is_points: false,
                name: (*name).clone(),
                hue: *hue,
                marks: marks.collect(),
            }
        });
        let curves = curves.collect();
        let found = told.iter().flat_map(|(curve, q, (name, hue))| {
            let found = [
                full(curve, &across),
                leap(q, self.name, &across),
                bend(q, &across),
            ];
            found.into_iter().flatten().map(move |found| Found {
                of: (*name).clone(),
                hue: *hue,
                ..found
            })
        });
        Curves {
            found: found.collect(),
            curves,
            across,
        }
    }

    fn mark(&self, curve: &CurveReport, q: &QuantityCurve, tick: &Tick) -> Option<Mark> {
        let at = q
            .values
            .iter()
            .position(|value| count(*value) == tick.name)?;
        let cells = self.section.group.cells.iter();
        let cell = cells.copied().find(|cell| self.is_at(cell, curve, tick));
        let dots = cell.map(|cell| self.gallery.dots(cell, self.name, self.scale));
        Some(Mark {
            dots: dots.unwrap_or_default(),
            ..Mark::of(q.estimates.get(at)?, self.scale)
        })
    }

    /// Whether a cell is the one of a curve at a value.
    fn is_at(&self, cell: &CellReport, curve: &CurveReport, tick: &Tick) -> bool {
        let own = self.section.axis;
        let others = || AXES.iter().filter(|axis| axis.name != own.name);
        cell.path == curve.path
            && (own.show)(&cell.axes).as_ref() == Some(&tick.name)
            && others().all(|axis| (axis.show)(&cell.axes) == (axis.show)(&curve.axes))
    }
}

/// A mark at these values, for a curve that is still to be named.
fn found(
    what: &'static str,
    span: (f64, f64),
    interval: Option<(f64, f64)>,
    words: String,
) -> Found {
    Found {
        what,
        of: String::new(),
        hue: 0,
        span,
        interval: interval.filter(|(low, high)| low < high),
        words,
    }
}

fn full(curve: &CurveReport, across: &Across) -> Option<Found> {
    let full = curve.client_cpus_full.as_ref()?;
    let first = full.first_full?;
    let place = |value: Option<f64>| across.place(value.unwrap_or(f64::INFINITY));
    let span = (full.last_not_full.unwrap_or(first), first);
    let interval = full.interval.as_ref();
    let last = curve.values.last().copied().unwrap_or(first);
    Some(found(
        "full",
        (across.place(span.0), across.place(span.1)),
        interval.map(|i| (place(i.low), place(i.high))),
        saturation(full, last),
    ))
}

fn leap(q: &QuantityCurve, name: &str, across: &Across) -> Option<Found> {
    let leap = q.step.as_ref().filter(|step| step.is_leap)?;
    let span = (across.place(leap.from), across.place(leap.to));
    Some(found("leap", span, None, step(leap, name)))
}

fn bend(q: &QuantityCurve, across: &Across) -> Option<Found> {
    let shown = q.knee.as_ref().filter(|knee| knee.is_shown)?;
    let at = across.place(shown.at.value);
    let interval = (across.place(shown.at.low), across.place(shown.at.high));
    Some(found("knee", (at, at), Some(interval), knee(shown)))
}
