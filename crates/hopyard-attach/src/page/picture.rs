//! Times of all networks with one number of containers, on one scale.

use hopyard_stats::Estimate;
use maud::{Markup, html};

use crate::document::Cell;

/// Where the scale begins and ends, and how much a network and a bar take, in units of the picture.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 400.0;
const NETWORK: f64 = 52.0;
const BAR: f64 = 16.0;
/// The most lines across.
const LINES: f64 = 5.0;

/// What is drawn: name, quantity, its tail, and colour.
const BARS: [(&str, &str, &str, &str); 2] = [
    ("ADD", "add_p50_ns", "add_p99_ns", "var(--h0)"),
    ("DEL", "del_p50_ns", "del_p99_ns", "var(--h1)"),
];

/// A step of 1, 2 or 5 times a power of ten, of which at most [`LINES`] reach that far.
fn step(most: f64) -> f64 {
    let least = most / LINES;
    let power = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0].map(|factor| factor * power);
    let fits = factors.into_iter().find(|step| *step >= least * 0.999_999);
    fits.unwrap_or(10.0 * power)
}

/// A multiple of the step, with as many digits as the step has.
fn label(at: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{at:.digits$}")
}

/// ADD and DEL of each network: median with interval, and 99th percentile.
pub(super) fn times(setting: &str, cells: &[&Cell]) -> Markup {
    let estimate = |cell: &Cell, name: &str| cell.figures.get(name).map(|f| f.estimate.clone());
    let ends = |cell: &&Cell| {
        let of = BARS.map(|(_, middle, tail, _)| {
            let middle = estimate(cell, middle)?;
            Some(estimate(cell, tail).map_or(middle.high, |tail| tail.value.max(middle.high)))
        });
        of.into_iter().flatten().collect::<Vec<f64>>()
    };
    let most_ms = cells.iter().flat_map(ends).fold(0.0, f64::max) / 1e6;
    if most_ms <= 0.0 || !most_ms.is_finite() {
        return html! {};
    }
    let step_ms = step(most_ms);
    let count = (most_ms / step_ms).ceil();
    let x = |ns: f64| LEFT + ns / 1e6 / (count * step_ms) * (RIGHT - LEFT);
    let height = NETWORK * cells.len() as f64;
    let title = format!("ADD and DEL, ms: {setting}");
    let lines = (0..=count as u32).map(|n| f64::from(n) * step_ms);
    html! {
        figure {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {} {}", RIGHT + 20.0, height + 24.0)) role="img" aria-label=(title) {
                @for at_ms in lines {
                    @let at = place(x(at_ms * 1e6));
                    line x1=(at) x2=(at) y1="0" y2=(place(height)) stroke="var(--grid)" {}
                    text x=(at) y=(place(height + 15.0)) text-anchor="middle" font-size="12" fill="currentColor" { (label(at_ms, step_ms)) }
                }
                @for (row, cell) in cells.iter().enumerate() {
                    @let top = NETWORK * row as f64;
                    text x="0" y=(place(top + 14.0)) font-size="13" font-weight="600" fill="currentColor" { (cell.network) }
                    @for (bar, (name, middle, tail, colour)) in BARS.iter().enumerate() {
                        @let y = top + 24.0 + BAR * bar as f64;
                        text x="0" y=(place(y + 4.0)) font-size="12" fill="currentColor" { (name) }
                        @match estimate(cell, middle) {
                            Some(middle) => (drawn(&middle, estimate(cell, tail).as_ref(), y, colour, &x)),
                            None => text x=(LEFT) y=(place(y + 4.0)) font-size="12" fill="currentColor" { "not measured" },
                        }
                    }
                }
            }
        }
    }
}

fn drawn(
    middle: &Estimate,
    tail: Option<&Estimate>,
    y: f64,
    colour: &str,
    x: &impl Fn(f64) -> f64,
) -> Markup {
    let y = place(y);
    let told = match tail {
        None => format!("{:.1} ms", middle.value / 1e6),
        Some(tail) => format!(
            "{:.1} ms, 99th percentile {:.1} ms",
            middle.value / 1e6,
            tail.value / 1e6
        ),
    };
    html! {
        g stroke=(colour) fill=(colour) {
            title { (told) }
            @if let Some(tail) = tail {
                line x1=(place(x(middle.value))) x2=(place(x(tail.value))) y1=(y) y2=(y) stroke-width="1.5" {}
            }
            line x1=(place(x(middle.low.max(0.0)))) x2=(place(x(middle.high))) y1=(y) y2=(y) stroke-width="5" {}
            circle cx=(place(x(middle.value))) cy=(y) r="4" {}
        }
    }
}

fn place(at: f64) -> String {
    format!("{at:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (most, is) in [
            (5.0, 1.0),
            (5.1, 2.0),
            (31.9, 10.0),
            (0.9, 0.2),
            (948.0, 200.0),
            (1e-3, 2e-4),
        ] {
            let step = step(most);
            assert!((step / is - 1.0).abs() < 1e-9, "{most}: {step}");
            assert!((most / step).ceil() <= LINES);
        }
        for (times, step, is) in [
            (3.0, 0.2, "0.6"),
            (3.0, 0.1, "0.3"),
            (2.0, 20.0, "40"),
            (3.0, 0.05, "0.15"),
        ] {
            assert_eq!(label(times * step, step), is);
        }
    }
}
