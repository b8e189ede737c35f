//! Named marks below each other: a line for the interval, a sign for the value, a dot for each sample.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Canvas, Drawn, INK, RowNames, hue, ink, named_rows, place, sign};
use crate::plot::{Line, Mark};

/// Pixels of a line.
const LINE: u32 = 26;

pub(super) fn names(lines: &[Line]) -> RowNames {
    RowNames::of(lines.iter().map(|line| line.name.clone()), LINE)
}

pub(super) fn draw(canvas: &Canvas<'_>, unit: &str, lines: &[Line]) -> Drawn {
    let names = names(lines);
    let values = lines
        .iter()
        .filter_map(|line| line.mark.as_ref())
        .flat_map(Mark::numbers);
    let mut chart = named_rows(canvas, unit, &names, values)?;
    if chart.x_range().start < 0.0 {
        let nothing = vec![(0.0, 0.0), (0.0, place(lines.len()))];
        chart.draw_series([PathElement::new(nothing, INK.stroke_width(1))])?;
    }
    for (index, line) in lines.iter().enumerate() {
        let middle = names.within(index, 0.5);
        names.draw(canvas, &chart, index)?;
        let Some(mark) = &line.mark else {
            let (_, y) = chart.backend_coord(&(0.0, middle));
            canvas.draw(&Text::new(
                "no figures",
                (names.margin() + 6, y),
                ink(HPos::Left, VPos::Center),
            ))?;
            continue;
        };
        let colour = hue(line.hue);
        // Beside the line, so that neither hides the other.
        let dots = mark.dots.iter().map(|dot| {
            EmptyElement::at((*dot, middle)) + Circle::new((0, 7), 2, colour.mix(0.45).filled())
        });
        chart.draw_series(dots)?;
        if let Some((low, high)) = mark.interval {
            let line = vec![(low, middle), (high, middle)];
            chart.draw_series([PathElement::new(line, colour.stroke_width(3))])?;
        }
        let sign = EmptyElement::at((mark.value, middle))
            + Polygon::new(sign(line.hue, 3), colour.filled());
        chart.draw_series([sign])?;
    }
    Ok(())
}
