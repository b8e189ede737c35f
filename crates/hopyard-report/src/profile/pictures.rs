//! Pictures of the CPU cost by subsystem.

use super::{PARTS, Profiled, subsystems};
use crate::plain;
use crate::plot::{Drawing, Line, Mark, Plot};
use crate::quantity::Scale;

/// Subsystems with a part of their own in a bar; the rest is one part, and no two parts have the same of the eight hues.
const DRAWN: usize = 7;

/// The cost of each subsystem, path by path, and what each path adds to the base.
pub(super) fn plots(cells: &[Profiled<'_>], scale: Scale) -> Vec<Plot> {
    let mut plots = vec![stacks(cells, scale)];
    plots.extend(cells.iter().filter_map(|cell| difference(cell, scale)));
    plots
}

fn stacks(cells: &[Profiled<'_>], scale: Scale) -> Plot {
    let names = subsystems(cells);
    let (own, rest) = names.split_at(names.len().min(DRAWN));
    let size = |cell: &Profiled<'_>, names: &[&str]| {
        let costs = names.iter().filter_map(|name| cell.subsystem(name));
        scale.of(costs.map(|s| s.cost.value).sum())
    };
    let bar = |cell: &Profiled<'_>| {
        let mut sizes: Vec<f64> = own.iter().map(|name| size(cell, &[name])).collect();
        if !rest.is_empty() {
            sizes.push(size(cell, rest));
        }
        (cell.path(), sizes)
    };
    let mut parts: Vec<String> = own.iter().map(|name| plain::line(name)).collect();
    if !rest.is_empty() {
        parts.push(format!("{} others", rest.len()));
    }
    let bars = cells.iter().map(bar).collect();
    Plot::new(
        "CPU cost by subsystem",
        scale.unit,
        Drawing::Stacks { parts, bars },
    )
}

fn difference(cell: &Profiled<'_>, scale: Scale) -> Option<Plot> {
    let difference = cell.profile.difference.as_ref()?;
    let named = difference.subsystems.iter().take(PARTS);
    let named = named.map(|part| (plain::line(&part.name), &part.cost));
    let all = named.chain([("all together".to_owned(), &difference.total)]);
    let line = |(name, cost)| Line {
        name,
        hue: 0,
        mark: Some(Mark::signed(cost, scale)),
    };
    let title = format!(
        "what {} adds to {}",
        cell.path(),
        plain::line(&difference.base)
    );
    let rows = Drawing::Rows(all.map(line).collect());
    Some(Plot::new(title, scale.unit, rows))
}
