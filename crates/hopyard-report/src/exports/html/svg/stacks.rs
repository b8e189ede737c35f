//! Parts of sums: a bar for each sum. Parts have numbers, in the legend and in bars where there is room, so that they can be
//! told apart without colour.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    AXIS, Canvas, Drawn, Entry, GRID, PAGE, RowNames, hue, ink, legend, legend_height, named_rows,
    width,
};

/// Pixels of a bar and the room around it.
const BAR: u32 = 34;

type Bars = [(String, Vec<f64>)];

pub(super) fn height(parts: &[String], bars: &Bars) -> u32 {
    chart_height(bars) + legend_height(&entries(parts))
}

fn chart_height(bars: &Bars) -> u32 {
    names(bars).height() + AXIS + 6
}

fn names(bars: &Bars) -> RowNames {
    RowNames::of(bars.iter().map(|(name, _)| name.clone()), BAR)
}

fn entries(parts: &[String]) -> Vec<Entry> {
    parts
        .iter()
        .enumerate()
        .map(|(hue, name)| (format!("{} {name}", hue + 1), hue))
        .collect()
}

pub(super) fn draw(canvas: &Canvas<'_>, unit: &str, parts: &[String], bars: &Bars) -> Drawn {
    let names = names(bars);
    let sums = bars
        .iter()
        .map(|(_, sizes)| sizes.iter().filter(|size| **size > 0.0).sum());
    let (above, below) = canvas.split_vertically(chart_height(bars));
    let mut chart = named_rows(&above, unit, &names, sums)?;
    for (index, (_, sizes)) in bars.iter().enumerate() {
        let (top, bottom) = (names.within(index, 0.12), names.within(index, 0.88));
        names.draw(canvas, &chart, index)?;
        let mut from = 0.0;
        for (part, size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0.0) {
            let to = from + size;
            let number = (part + 1).to_string();
            let corners = [(from, top), (to, bottom)];
            chart.draw_series([
                Rectangle::new(corners, hue(part).filled()),
                Rectangle::new(corners, GRID.stroke_width(1)),
            ])?;
            let row = names.within(index, 0.5);
            let [(left, middle), (right, _)] = [from, to].map(|x| chart.backend_coord(&(x, row)));
            if right - left >= width(&number) + 4 {
                let at = ((left + right) / 2, middle);
                let style = ink(HPos::Center, VPos::Center).color(&PAGE);
                above.draw(&Text::new(number, at, style))?;
            }
            from = to;
        }
    }
    legend(&below, 0, &entries(parts))
}
