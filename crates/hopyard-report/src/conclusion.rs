//! The results as text, based only on verdicts.

use super::document::{Block, headed};
use super::group::{Group, Layout};
use super::number::ratio;
use super::quantity;
use crate::loads::Saying;
use crate::model::{Base, CellReport, LoadKind, grouped};
use crate::plain;
use crate::stats::{Estimate, Verdict};

/// The most sentences: more would be a table again.
const MOST: usize = 12;
/// The most places named for one finding.
const PLACES: usize = 3;
/// The most runners-up that are named.
const NAMED: usize = 3;

/// A sentence per table, or per value of what was swept.
pub(super) fn blocks(layout: &Layout<'_>) -> Vec<Block> {
    // A finding that holds in several places is stated once.
    let all = layout.groups.iter().flat_map(|group| {
        comparable(group, layout)
            .into_iter()
            .filter_map(|(place, cells)| {
                let base = plain::line(group.base?);
                Some((sentence(group, &cells, &base)?, place))
            })
    });
    let findings = grouped(all);
    let mut sentences: Vec<String> = findings
        .iter()
        .map(|(text, places)| format!("{}: {text}.", some_of(places)))
        .collect();
    let more = sentences.len().saturating_sub(MOST);
    if more > 0 {
        sentences.truncate(MOST);
        sentences.push(format!("{more} more are in the tables."));
    }
    let base = layout.base.map(plain::line);
    let relative = base.map_or_else(String::new, |base| format!(", relative to {base}"));
    headed(format!("What the verdicts support{relative}"), sentences)
}

/// The first of many places.
fn some_of(places: &[String]) -> String {
    match places.split_at_checked(PLACES) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("{}; {} more", first.join("; "), rest.len())
        }
        _ => places.join("; "),
    }
}

/// Cells that differ only in their path, with what they have in common.
fn comparable<'a>(group: &Group<'a>, layout: &Layout<'_>) -> Vec<(String, Vec<&'a CellReport>)> {
    grouped(group.cells.iter().map(|&cell| (layout.place(cell), cell)))
}

/// A path's ratio to the base and the verdict on it.
struct Compared<'a> {
    path: &'a str,
    ratio: &'a Estimate,
    verdict: Verdict,
}

fn sentence(group: &Group<'_>, cells: &[&CellReport], base: &str) -> Option<String> {
    let load = group.load;
    // A comparison whose path proof failed says nothing about this path.
    let proved: Vec<&CellReport> = cells
        .iter()
        .copied()
        .filter(|cell| cell.way.proved)
        .collect();
    let based = |cell: &&CellReport| cell.path == base;
    if cells.iter().any(based) && !proved.iter().any(based) {
        return None;
    }
    let costs = quantity::cpu_cost(load);
    let main = compared(&proved, group.main);
    let saying = saying(group);
    let cpu = compared(&proved, costs);
    if !matches!(Base::parse(base), Ok(Base::Path(_))) {
        return beside_itself(load, &saying, &main, &cpu);
    }
    let per = load.info().unit.name();
    let mut clauses = Vec::new();
    if !main.is_empty() {
        clauses.push(match best(&main, saying.up) {
            Some(most) => format!("{} {}, {}", most.path, saying.best, most.figure),
            None if alike(&main) => {
                let who = everyone(&main, &unjudged(&proved, group.main));
                format!("{who} {} {base}", saying.alike)
            }
            None => format!("no path is shown to beat {base}"),
        });
    }
    if !cpu.is_empty() {
        clauses.push(match best(&cpu, false) {
            Some(least) => format!(
                "{} costs the least CPU per {per}, {}",
                least.path, least.figure
            ),
            None if alike(&cpu) => {
                let who = everyone(&cpu, &unjudged(&proved, costs));
                format!("{who} costs as much CPU per {per}")
            }
            None => format!("none is shown to cost less CPU per {per}"),
        });
        clauses
            .extend(best(&cpu, true).map(|m| format!("{} costs the most, {}", m.path, m.figure)));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// The words for the main figure.
fn saying(group: &Group<'_>) -> Saying {
    if group.main == quantity::THROUGHPUT {
        Saying::THROUGHPUT
    } else {
        group.load.info().shown.saying
    }
}

fn compared<'a>(cells: &[&'a CellReport], name: &str) -> Vec<Compared<'a>> {
    cells
        .iter()
        .filter_map(|cell| {
            let report = cell.verdicts.get(name)?;
            let verdict = report.verdict?;
            Some(Compared {
                path: &cell.path,
                ratio: &report.ratio,
                verdict,
            })
        })
        .collect()
}

/// Each path compared with itself at another value of an axis: that does not make one path better than another.
fn beside_itself(
    load: LoadKind,
    saying: &Saying,
    main: &[Compared<'_>],
    cpu: &[Compared<'_>],
) -> Option<String> {
    let listed = |compared: &[Compared<'_>]| {
        let each = compared.iter().map(|c| {
            let verdict = match c.verdict {
                Verdict::Different => "different",
                Verdict::Equivalent => "equivalent",
                Verdict::Inconclusive => "inconclusive",
            };
            format!(
                "{} {} ({verdict})",
                plain::line(c.path),
                ratio(c.ratio.value)
            )
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let both = [
        (saying.what.to_owned(), main),
        (format!("CPU per {}", load.info().unit.name()), cpu),
    ];
    let clauses: Vec<String> = both
        .into_iter()
        .filter(|(_, compared)| !compared.is_empty())
        .map(|(what, compared)| format!("{what} {}", listed(compared)))
        .collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Whether all are shown to be equivalent to the base.
fn alike(compared: &[Compared<'_>]) -> bool {
    compared.iter().all(|c| c.verdict == Verdict::Equivalent)
}

/// All that were compared; `unjudged` are those without a verdict.
fn everyone(compared: &[Compared<'_>], unjudged: &[&str]) -> String {
    match (compared, unjudged) {
        ([one], _) => plain::line(one.path),
        (_, []) => "every path".to_owned(),
        (_, [one]) => format!("every path but {} (no verdict)", plain::line(one)),
        (_, some) => format!("every path but {} (no verdict)", some.len()),
    }
}

/// The paths whose figure was compared in too few blocks for a verdict, or is not known while others of theirs were compared.
fn unjudged<'a>(cells: &[&'a CellReport], name: &str) -> Vec<&'a str> {
    let has_none = |cell: &&&CellReport| {
        let report = cell.verdicts.get(name);
        report.map_or(!cell.verdicts.is_empty(), |report| report.verdict.is_none())
    };
    cells
        .iter()
        .filter(has_none)
        .map(|cell| &*cell.path)
        .collect()
}

/// The path with the greatest difference, and its ratio.
struct Leader {
    path: String,
    figure: String,
}

/// The path furthest above (or below) the base among those shown to differ from it, with the paths whose intervals
/// overlap its own: verdicts only compare with the base, so the order among those is not shown.
fn best(compared: &[Compared<'_>], up: bool) -> Option<Leader> {
    let beyond = |ratio: f64| if up { ratio > 1.0 } else { ratio < 1.0 };
    let leader = compared
        .iter()
        .filter(|c| c.verdict == Verdict::Different && beyond(c.ratio.value))
        .max_by(|a, b| {
            let order = a.ratio.value.total_cmp(&b.ratio.value);
            if up { order } else { order.reverse() }
        })?;
    let mut near: Vec<&Compared<'_>> = compared
        .iter()
        .filter(|c| c.path != leader.path)
        .filter(|c| c.ratio.low <= leader.ratio.high && leader.ratio.low <= c.ratio.high)
        .collect();
    near.sort_by(|a, b| {
        let order = a.ratio.value.total_cmp(&b.ratio.value);
        if up { order.reverse() } else { order }
    });
    let mut names: Vec<String> = near
        .iter()
        .take(NAMED)
        .map(|c| format!("{} {}", plain::line(c.path), ratio(c.ratio.value)))
        .collect();
    if near.len() > NAMED {
        names.push(format!("{} more", near.len() - NAMED));
    }
    let figure = ratio(leader.ratio.value);
    Some(Leader {
        path: plain::line(leader.path),
        figure: if names.is_empty() {
            figure
        } else {
            format!("{figure} (not told apart from {})", names.join(", "))
        },
    })
}
