//! Findings along an axis, in rows above a chart: a thin line for the uncertainty, a thick one for the range, a sign in
//! the middle, and for a single place a line down through the chart.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Canvas, Chart, Drawn, draw_sign, hue, ink, pixels};
use crate::plot::{Curves, Found};

/// Pixels of a row.
const ROW: u32 = 14;

pub(super) fn height(found: &[Found]) -> u32 {
    pixels(found.len(), ROW)
}

/// Draws rows from `top` down, with their names left of `left`.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    chart: &Chart<'_, '_>,
    (left, top): (u32, u32),
    drawn: &Curves,
) -> Drawn {
    let pixel = |at: u32| i32::try_from(at).unwrap_or(i32::MAX);
    let bottom = chart.y_range().start;
    let across = |place: f64| chart.backend_coord(&(place, bottom));
    for (row, found) in drawn.found.iter().enumerate() {
        let y = pixel(top + pixels(row, ROW) + ROW / 2);
        let colour = hue(found.hue);
        let line = |(from, to): (f64, f64), style: ShapeStyle| {
            let ends = vec![(across(from).0, y), (across(to).0, y)];
            canvas.draw(&PathElement::new(ends, style))
        };
        let style = ink(HPos::Right, VPos::Center);
        canvas.draw(&Text::new(found.what, (pixel(left) - 2, y), style))?;
        if let Some(interval) = found.interval {
            line(interval, colour.stroke_width(1))?;
        }
        let (from, to) = found.span;
        if from < to {
            line(found.span, colour.mix(0.5).stroke_width(5))?;
        } else {
            let (x, axis) = across(from);
            let down = vec![(x, y), (x, axis)];
            canvas.draw(&PathElement::new(down, colour.mix(0.6).stroke_width(1)))?;
        }
        let middle = across(f64::midpoint(from, to)).0;
        draw_sign(canvas, (middle, y), found.hue)?;
    }
    Ok(())
}
