//! Parts of sums: a bar for each sum, with the number of each part that has room for it.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    AXIS, Canvas, Drawn, Entry, GRID, hue, ink, legend, legend_height, margin, named_rows, pixels,
    place, short,
};

/// Pixels of a bar and the room around it.
const BAR: u32 = 34;

type Bars = [(String, Vec<f64>)];

pub(super) fn height(parts: &[String], bars: &Bars) -> u32 {
    chart_height(bars) + legend_height(&entries(parts))
}

fn chart_height(bars: &Bars) -> u32 {
    pixels(bars.len(), BAR) + AXIS + 6
}

fn entries(parts: &[String]) -> Vec<Entry<'_>> {
    parts
        .iter()
        .enumerate()
        .map(|(hue, name)| (name.as_str(), hue))
        .collect()
}

pub(super) fn draw(canvas: &Canvas<'_>, unit: &str, parts: &[String], bars: &Bars) -> Drawn {
    let names: Vec<String> = bars.iter().map(|(name, _)| short(name)).collect();
    let left = margin(&names);
    let sums = bars
        .iter()
        .map(|(_, sizes)| sizes.iter().filter(|size| **size > 0.0).sum());
    let (above, below) = canvas.split_vertically(chart_height(bars));
    let mut chart = named_rows(&above, unit, &names, sums)?;
    for (index, ((_, sizes), name)) in bars.iter().zip(names).enumerate() {
        let (top, bottom) = (place(index) + 0.12, place(index) + 0.88);
        let (_, y) = chart.backend_coord(&(0.0, place(index) + 0.5));
        canvas.draw(&Text::new(
            name,
            (left - 6, y),
            ink(HPos::Right, VPos::Center),
        ))?;
        let mut from = 0.0;
        for (part, size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0.0) {
            let to = from + size;
            let corners = [(from, top), (to, bottom)];
            chart.draw_series([
                Rectangle::new(
                    corners,
                    hue(part)
                        .mix(if part < super::HUES { 0.85 } else { 0.4 })
                        .filled(),
                ),
                Rectangle::new(corners, GRID.stroke_width(1)),
            ])?;
            from = to;
        }
    }
    legend(&below, 0, &entries(parts))
}
