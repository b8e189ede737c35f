//! Marks over the values of an axis: a band for the intervals, a line, a sign for each value, a dot for each sample.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    AXIS, Canvas, Chart, Drawn, Entry, FONT, GRID, INK, WIDTH, characters, found, hue, ink, legend,
    legend_height, place, sign, span, tick, told_apart, width,
};
use crate::plot::{Across, Curve, Curves, Mark};

/// Pixels of the picture without its legend and the rows above it.
const HEIGHT: u32 = 250;
/// Pixels for the unit above.
const UNIT: u32 = 24;
/// Pixels to the left.
const LEFT: u32 = 48;
/// The most signs of a curve: with more values, some have no sign.
const SIGNS: usize = 24;
/// The most and the fewest characters of a name below the axis.
const LONGEST: usize = 24;
const SHORTEST: usize = 8;

fn chart_height(chart: &Curves) -> u32 {
    HEIGHT + found::height(&chart.found)
}

pub(super) fn height(chart: &Curves) -> u32 {
    chart_height(chart) + legend_height(&entries(&chart.curves))
}

fn entries(curves: &[Curve]) -> Vec<Entry> {
    curves
        .iter()
        .map(|curve| (curve.name.clone(), curve.hue))
        .collect()
}

pub(super) fn draw(canvas: &Canvas<'_>, unit: &str, drawn: &Curves) -> Drawn {
    let (above, below) = canvas.split_vertically(chart_height(drawn));
    let mut chart = axes(&above, drawn)?;
    canvas.draw(&Text::new(
        unit.to_owned(),
        (6, 4),
        ink(HPos::Left, VPos::Top),
    ))?;
    label(canvas, &drawn.across, &chart)?;
    for (index, curve) in drawn.curves.iter().enumerate() {
        if drawn.across.is_joined && !curve.is_points {
            lines(&mut chart, drawn, curve)?;
        }
        marks(&mut chart, drawn, index)?;
    }
    found::draw(canvas, &chart, (LEFT, UNIT), drawn)?;
    legend(&below, 0, &entries(&drawn.curves))
}

fn axes<'a, 'b>(
    canvas: &'a Canvas<'b>,
    drawn: &Curves,
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    let marks = drawn.curves.iter().flat_map(|c| c.marks.iter().flatten());
    let (first, last) = drawn.across.ends();
    let mut chart = ChartBuilder::on(canvas)
        .margin_top(UNIT + found::height(&drawn.found))
        .margin_right(12)
        .x_label_area_size(AXIS)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(first..last, span(marks.flat_map(Mark::numbers)))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(6)
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(INK)
        .y_label_formatter(&tick)
        .x_desc(&drawn.across.name)
        .label_style(("sans-serif", FONT).into_font().color(&INK))
        .draw()?;
    Ok(chart)
}

/// Bands and lines, with gaps for missing values.
fn lines(chart: &mut Chart<'_, '_>, drawn: &Curves, curve: &Curve) -> Drawn {
    let colour = hue(curve.hue);
    for part in unbroken(drawn, &curve.marks) {
        let line: Vec<_> = part.iter().map(|(x, mark)| (*x, mark.value)).collect();
        chart.draw_series(band(&part).map(|band| Polygon::new(band, colour.mix(0.18).filled())))?;
        chart.draw_series([PathElement::new(line, colour.stroke_width(2))])?;
    }
    Ok(())
}

/// Dots and signs; for curves without lines, also the intervals, with the curves side by side.
fn marks(chart: &mut Chart<'_, '_>, drawn: &Curves, index: usize) -> Drawn {
    let (across, curve) = (&drawn.across, &drawn.curves[index]);
    let colour = hue(curve.hue);
    let share = (place(index) + 0.5) / place(drawn.curves.len());
    let shift = if across.is_joined {
        0.0
    } else {
        share * 0.5 - 0.25
    };
    // Signs of several curves must not hide each other.
    let every = if curve.marks.len() > SIGNS {
        curve.marks.len() / 8
    } else {
        1
    };
    let first = index * every / drawn.curves.len();
    for (at, (tick, mark)) in across.ticks.iter().zip(&curve.marks).enumerate() {
        let Some(mark) = mark else {
            continue;
        };
        let x = tick.place + shift;
        let dots = mark.dots.iter().map(|dot| {
            EmptyElement::at((x, *dot)) + Circle::new((6, 0), 2, colour.mix(0.45).filled())
        });
        chart.draw_series(dots)?;
        if let (Some((low, high)), true) = (mark.interval, !across.is_joined || curve.is_points) {
            chart.draw_series([PathElement::new(
                vec![(x, low), (x, high)],
                colour.stroke_width(3),
            )])?;
        }
        if at % every == first {
            let sign = EmptyElement::at((x, mark.value))
                + Polygon::new(sign(curve.hue, 3), colour.filled());
            chart.draw_series([sign])?;
        }
    }
    Ok(())
}

/// Consecutive values without a gap, with their coordinates.
fn unbroken<'m>(drawn: &Curves, marks: &'m [Option<Mark>]) -> Vec<Vec<(f64, &'m Mark)>> {
    let ticks = drawn.across.ticks.iter().zip(marks).enumerate();
    let placed: Vec<Option<(f64, &Mark)>> = ticks
        .filter(|(at, _)| !has_points_alone(drawn, *at))
        .map(|(_, (tick, mark))| Some((tick.place, mark.as_ref()?)))
        .collect();
    let runs = placed.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().copied().flatten().collect())
        .collect()
}

/// Whether a tick has only isolated points.
fn has_points_alone(drawn: &Curves, at: usize) -> bool {
    let mut there = (drawn.curves.iter()).filter(|c| c.marks.get(at).is_some_and(Option::is_some));
    let is_points = there.next().is_some_and(|curve| curve.is_points);
    is_points && there.all(|curve| curve.is_points)
}

/// The outline of all intervals: the upper ends, then the lower ones in reverse.
fn band(part: &[(f64, &Mark)]) -> Option<Vec<(f64, f64)>> {
    let ends = |(x, mark): &(f64, &Mark)| Some((*x, mark.interval?));
    let ends: Vec<_> = part.iter().map(ends).collect::<Option<_>>()?;
    let upper = ends.iter().map(|(x, (_, high))| (*x, *high));
    let lower = ends.iter().rev().map(|(x, (low, _))| (*x, *low));
    (ends.len() > 1).then(|| upper.chain(lower).collect())
}

/// Names below the axis: the last one, and from the left as many as fit.
fn label(canvas: &Canvas<'_>, across: &Across, chart: &Chart<'_, '_>) -> Drawn {
    let (_, bottom) = chart.backend_coord(&(across.ends().0, chart.y_range().start));
    let labelled = || across.ticks.iter().filter(|tick| tick.is_labelled);
    let pixel = |place: f64| chart.backend_coord(&(place, 0.0)).0;
    let most = if across.is_joined {
        LONGEST
    } else {
        // Each has a name: those of neighbours do not say what it is.
        let apart = f64::from(pixel(1.0) - pixel(0.0));
        characters(apart - 8.0).clamp(SHORTEST, LONGEST)
    };
    let whole: Vec<String> = labelled().map(|tick| tick.name.clone()).collect();
    let names: Vec<(i32, String)> = labelled()
        .zip(told_apart(&whole, most))
        .map(|(tick, name)| {
            let half = width(&name) / 2;
            let edge = i32::try_from(WIDTH).unwrap_or(i32::MAX) - half;
            (pixel(tick.place).max(half).min(edge), name)
        })
        .collect();
    let Some((last, before)) = names.split_last() else {
        return Ok(());
    };
    let ends = |(x, name): &(i32, String)| (x - width(name) / 2, x + width(name) / 2);
    let mut shown = vec![last];
    let mut free = i32::MIN;
    for name in before {
        let (left, right) = ends(name);
        if left >= free && right + 8 <= ends(last).0 {
            free = right + 8;
            shown.push(name);
        }
    }
    for (x, name) in shown {
        let style = ink(HPos::Center, VPos::Top);
        canvas.draw(&Text::new(name.clone(), (*x, bottom + 6), style))?;
    }
    Ok(())
}
