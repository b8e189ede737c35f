//! Medians of a load over fleets that were measured one after another, and where they changed.

use hopyard_stats::{Change, changes};
use maud::{Markup, html};

use crate::fleet::Fleet;
use crate::rank::Ranks;
use crate::report::with_unit;

/// Significance of a change, among so many random orders.
const LEVEL: f64 = 0.05;
const ORDERS: u32 = 199;
/// So that two looks at the same fleets say the same.
const SEED: u64 = 1;

/// A fleet of a history.
#[derive(Debug, Clone)]
pub struct Point {
    /// When it was begun, RFC 3339.
    pub started: String,
    /// Median of all pairs by `LOAD QUANTITY`.
    pub medians: Vec<(String, f64)>,
}

/// Fleets in the order in which they were begun.
#[must_use]
pub fn points<'a>(fleets: impl Iterator<Item = (&'a Fleet, &'a Ranks)>) -> Vec<Point> {
    let mut points: Vec<Point> = fleets.map(|(fleet, ranks)| point(fleet, ranks)).collect();
    points.sort_by(|a, b| a.started.cmp(&b.started));
    points
}

fn point(fleet: &Fleet, ranks: &Ranks) -> Point {
    let columns = ranks.main.iter().map(|at| &fleet.columns[*at]);
    let medians = columns.zip(&ranks.medians);
    Point {
        started: fleet.started.clone(),
        medians: medians
            .filter_map(|(c, median)| Some((format!("{} {}", c.load, c.quantity), (*median)?)))
            .collect(),
    }
}

pub(super) fn history(fleet: &Fleet, ranks: &Ranks, points: &[Point]) -> Markup {
    if points.len() < 2 {
        return html! {};
    }
    html! {
        h2 { "Over time" }
        p.notes {
            "The median of all pairs in each of " (points.len()) " fleets, by when they were begun. A dashed line is a change point by E-divisive, "
            "significant at " (LEVEL) " among " (ORDERS) " random orders; fewer than six fleets show none."
        }
        div.plots { @for at in &ranks.main {
            @let column = &fleet.columns[*at];
            @let name = format!("{} {}", column.load, column.quantity);
            @let of = |p: &Point| Some((p.started.clone(), p.medians.iter().find(|(n, _)| *n == name)?.1));
            @let series: Vec<(String, f64)> = points.iter().filter_map(of).collect();
            @let values: Vec<f64> = series.iter().map(|(_, v)| *v).collect();
            @let found = changes(&values, LEVEL, ORDERS, SEED);
            figure {
                figcaption { (column.load) }
                (line(&values, &found, &format!("{} over time", column.load)))
                ul.notes { @for change in &found { li {
                    "From " (series[change.at].0) " on: " (with_unit(column, change.before)) " → " (with_unit(column, change.after))
                    " (" (format!("{:.2}×", change.after / change.before)) ", p " (format!("{:.3}", change.p)) ")"
                } } }
                details {
                    summary { "The figures" }
                    div.scroll tabindex="0" { table {
                        thead { tr { th scope="col" { "begun" } th.number scope="col" { "median" } } }
                        tbody { @for (started, value) in &series { tr { td { (started) } td.number { (with_unit(column, *value)) } } } }
                    } }
                }
            }
        } }
    }
}

fn line(values: &[f64], changes: &[Change], title: &str) -> Markup {
    const WIDTH: f64 = 400.0;
    const HEIGHT: f64 = 140.0;
    let top = values.iter().copied().fold(0.0, f64::max);
    let x = |at: f64| at / (values.len().max(2) - 1) as f64 * WIDTH;
    let y = |value: f64| {
        if top > 0.0 {
            HEIGHT * (1.0 - value / top)
        } else {
            HEIGHT
        }
    };
    let path: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(at, v)| format!("{:.1},{:.1}", x(at as f64), y(*v)))
        .collect();
    html! {
        svg viewBox=(format!("-10 -10 {} {}", WIDTH + 20.0, HEIGHT + 20.0)) role="img" aria-label=(title) {
            line x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) stroke="currentColor" {}
            @for change in changes {
                @let at = format!("{:.1}", x(change.at as f64 - 0.5));
                line x1=(at) x2=(at) y1="0" y2=(HEIGHT) stroke="#b2182b" stroke-dasharray="5 4" {}
            }
            polyline points=(path.join(" ")) fill="none" stroke="#4393c3" stroke-width="2" {}
            @for point in &path {
                @let (x, y) = point.split_once(',').unwrap_or(("0", "0"));
                circle cx=(x) cy=(y) r="3" fill="#4393c3" {}
            }
        }
    }
}
