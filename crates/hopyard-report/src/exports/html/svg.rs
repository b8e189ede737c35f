//! Draws pictures as SVG in the page's own colours (`currentColor` and the variables `--grid`, `--h0` … of the style
//! sheet), so that one picture suits light, dark and paper.
//!
//! plotters only knows colours as numbers, so unlikely numbers stand for those names until the picture is done.

mod curves;
mod found;
mod names;
mod rows;
mod stacks;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use self::names::{RowNames, characters, told_apart};
use crate::number::trimmed;
use crate::plot::{Drawing, Plot};

/// Width of a picture in pixels before scaling: a small screen shows it without shrinking.
const WIDTH: u32 = 400;
/// Size of all texts in plotters' units, which are heights of a line: some 12 pixels in SVG.
const FONT: i32 = 15;
/// Width of a character, pixels: slightly more than in most fonts.
const CHARACTER: f64 = 7.1;
/// Number of hues of the style sheet; shapes distinguish further ones.
pub(super) const HUES: usize = 8;

const INK: RGBColor = RGBColor(0, 0, 0);
const GRID: RGBColor = RGBColor(0, 0, 1);
/// The page's background, for texts on a hue: the style sheet has hues on which it can be read.
const PAGE: RGBColor = RGBColor(0, 0, 2);
const MARKED: u8 = 1;

/// Pixels for the axis below rows.
const AXIS: u32 = 42;

/// Two numerical axes.
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A picture: its size in pixels and the contents of its `<svg>`.
pub(super) struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) inside: String,
}

/// Draws a picture.
///
/// # Errors
/// plotters fails, which it does not for finite numbers.
pub(super) fn draw(plot: &Plot) -> Result<Picture, Box<dyn std::error::Error>> {
    let height = match &plot.drawing {
        Drawing::Rows(lines) => rows::names(lines).height() + AXIS + 6,
        Drawing::Curves(chart) => curves::height(chart),
        Drawing::Stacks { parts, bars } => stacks::height(parts, bars),
    };
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        match &plot.drawing {
            Drawing::Rows(lines) => rows::draw(&canvas, &plot.unit, lines)?,
            Drawing::Curves(chart) => curves::draw(&canvas, &plot.unit, chart)?,
            Drawing::Stacks { parts, bars } => stacks::draw(&canvas, &plot.unit, parts, bars)?,
        }
        canvas.present()?;
    }
    Ok(Picture {
        width: WIDTH,
        height,
        inside: in_page_colours(inside(&text)),
    })
}

/// The text between `<svg …>` and `</svg>`.
fn inside(svg: &str) -> &str {
    let start = svg
        .find("<svg")
        .and_then(|at| Some(at + svg[at..].find('>')? + 1));
    let end = svg.rfind("</svg>");
    match (start, end) {
        (Some(start), Some(end)) if start <= end => &svg[start..end],
        _ => "",
    }
}

fn in_page_colours(svg: &str) -> String {
    let named = |colour: RGBColor| format!("\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
    let mut svg = svg
        .replace(&named(INK), "\"currentColor\"")
        .replace(&named(GRID), "\"var(--grid)\"")
        .replace(&named(PAGE), "\"var(--page)\"")
        // The default, which plotters writes for each element.
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "");
    for place in 0..HUES {
        svg = svg.replace(&named(hue(place)), &format!("\"var(--h{place})\""));
    }
    svg
}

/// A colour that stands for a hue of the style sheet.
fn hue(place: usize) -> RGBColor {
    RGBColor(0, MARKED, u8::try_from(place % HUES).unwrap_or_default())
}

/// A text's width, pixels.
#[expect(clippy::cast_possible_truncation, reason = "texts are short")]
fn width(text: &str) -> i32 {
    (f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX)) * CHARACTER).ceil() as i32
}

/// The coordinate of an index in a list.
fn place(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX))
}

/// A chart with a row for each name, wide enough for all values. The caller writes the names.
fn named_rows<'a, 'b>(
    canvas: &'a Canvas<'b>,
    unit: &str,
    names: &RowNames,
    values: impl Iterator<Item = f64>,
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(canvas)
        .margin_top(6)
        .margin_right(16)
        .x_label_area_size(AXIS)
        .y_label_area_size(names.margin())
        .build_cartesian_2d(span(values), place(names.count())..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(5)
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(INK)
        .x_label_formatter(&tick)
        .x_desc(unit)
        .label_style(("sans-serif", FONT).into_font().color(&INK))
        .draw()?;
    Ok(chart)
}

fn pixels(count: usize, each: u32) -> u32 {
    u32::try_from(count)
        .unwrap_or(u32::MAX)
        .saturating_mul(each)
}

fn ink(h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", FONT)
        .into_font()
        .color(&INK)
        .pos(Pos::new(h, v))
}

/// From 0, or from below it, to slightly more than the greatest.
fn span(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low == high {
        return 0.0..1.0;
    }
    let room = (high - low) * 0.04;
    (if low < 0.0 { low - room } else { 0.0 })..(high + room)
}

/// A number beside an axis.
fn tick(value: &f64) -> String {
    trimmed(*value)
}

/// The sign of a hue, which distinguishes it without colour: a polygon around its place.
fn sign(hue: usize, size: i32) -> Vec<(i32, i32)> {
    let s = size;
    match hue % 5 {
        0 => vec![(-s, -s), (s, -s), (s, s), (-s, s)],
        1 => vec![(0, -s - 1), (s + 1, s), (-s - 1, s)],
        2 => vec![(0, -s - 2), (s + 2, 0), (0, s + 2), (-s - 2, 0)],
        3 => vec![(0, s + 1), (s + 1, -s), (-s - 1, -s)],
        _ => vec![
            (-s - 1, -1),
            (-1, -1),
            (-1, -s - 1),
            (1, -s - 1),
            (1, -1),
            (s + 1, -1),
            (s + 1, 1),
            (1, 1),
            (1, s + 1),
            (-1, s + 1),
            (-1, 1),
            (-s - 1, 1),
        ],
    }
}

fn draw_sign(canvas: &Canvas<'_>, at: (i32, i32), of: usize) -> Drawn {
    let points = sign(of, 3).into_iter().map(|(x, y)| (at.0 + x, at.1 + y));
    canvas.draw(&Polygon::new(points.collect::<Vec<_>>(), hue(of).filled()))?;
    Ok(())
}

/// Name and hue of a legend's entry.
type Entry = (String, usize);

const LEGEND_LINE: u32 = 18;

/// Positions of the names of a legend as (left, line), and the number of lines.
fn legend_places(names: &[String]) -> (Vec<(i32, u32)>, u32) {
    let room = i32::try_from(WIDTH).unwrap_or(i32::MAX) - 8;
    let (mut left, mut line) = (8, 0);
    let places = names
        .iter()
        .map(|name| {
            let wide = 22 + width(name);
            if left > 8 && left + wide > room {
                (left, line) = (8, line + 1);
            }
            let place = (left, line);
            left += wide;
            place
        })
        .collect();
    (places, line + 1)
}

/// The names of a legend, each at most as long as a line.
fn legend_names(entries: &[Entry]) -> Vec<String> {
    let names: Vec<String> = entries.iter().map(|(name, _)| name.clone()).collect();
    told_apart(&names, characters(f64::from(WIDTH) - 30.0))
}

fn legend_height(entries: &[Entry]) -> u32 {
    legend_places(&legend_names(entries)).1 * LEGEND_LINE + 4
}

/// Draws a legend below `top`.
fn legend(canvas: &Canvas<'_>, top: u32, entries: &[Entry]) -> Drawn {
    let names = legend_names(entries);
    let (places, _) = legend_places(&names);
    for (((_, of), name), (left, line)) in entries.iter().zip(names).zip(places) {
        let middle = i32::try_from(top + line * LEGEND_LINE + LEGEND_LINE / 2).unwrap_or(i32::MAX);
        draw_sign(canvas, (left + 6, middle), *of)?;
        let style = ink(HPos::Left, VPos::Center);
        canvas.draw(&Text::new(name, (left + 15, middle), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
