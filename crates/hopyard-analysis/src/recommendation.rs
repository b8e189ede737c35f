//! The recommendation. Candidates passed the path proof, did not fail and offer what is needed. The best is the one
//! with the best figure, or one that is not told apart from it and shown to cost less CPU. Candidates that are not told
//! apart are a tie.

mod conditions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::quantities::{Quantity, cost, main_figure, quantity};
use super::verdicts::{is_generator_limited, moderated, paired, verdict_of};
use super::{NATIVE, UNIX};
use crate::model::stored::Header;
use crate::model::{
    AXES, Axes, Axis, Candidate, CellReport, CellStatus, Choice, FOR_A_VERDICT, Feature,
    NoCandidate, Recommendation, RunSummary, Sample, VerdictReport, Warning,
};
use crate::stats::{self, Comparison, Verdict};

/// The data of a recommendation.
pub(super) struct Evidence<'a> {
    pub(super) header: &'a Header,
    pub(super) samples: &'a [&'a Sample],
    pub(super) cells: &'a [CellReport],
    pub(super) summary: &'a RunSummary,
    pub(super) warnings: &'a [Warning],
}

/// `None` if there is nothing to choose: a sweep of offloads, or one path and no needs.
pub(super) fn recommend(evidence: &Evidence<'_>, needs: &[Feature]) -> Option<Recommendation> {
    if evidence.header.offloads.is_some() {
        return None;
    }
    let contests: Vec<Contest> = contests(evidence.cells)
        .into_iter()
        .filter(|cells| !needs.is_empty() || several_paths(evidence.cells, cells))
        .map(|cells| Contest::of(evidence, cells, needs))
        .collect();
    let answers = judge(evidence, &contests);
    let choices = contests.into_iter().zip(answers);
    let choices: Vec<Choice> = choices
        .map(|(contest, versus)| contest.decide(evidence, versus, needs))
        .collect();
    (!choices.is_empty()).then(|| Recommendation {
        conditions: conditions::of(evidence, &choices),
        needs: needs.to_vec(),
        choices,
    })
}

/// Cells that differ only in their path and its own axes, by index.
fn contests(cells: &[CellReport]) -> Vec<Vec<usize>> {
    let place = |cell: &CellReport| {
        let common = AXES.iter().filter(|axis| !axis.of_path);
        // A path without devices stands beside those at the usual values.
        let value = |axis: &Axis| match axis.is_lacked(cell.load, &cell.axes) {
            true => (axis.show)(&Axes::default()),
            false => (axis.show)(&cell.axes),
        };
        let values: Vec<Option<String>> = common.map(value).collect();
        (cell.load, cell.peer, values)
    };
    let mut contests: Vec<(_, Vec<usize>)> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let place = place(cell);
        let own = contests.iter_mut().find(|(other, _)| *other == place);
        match own {
            Some((_, indices)) => indices.push(index),
            None => contests.push((place, vec![index])),
        }
    }
    contests.into_iter().map(|(_, indices)| indices).collect()
}

fn several_paths(cells: &[CellReport], contest: &[usize]) -> bool {
    let mut paths = contest
        .iter()
        .map(|index| cells[*index].path.as_str())
        .filter(|path| *path != NATIVE && !UNIX.contains(path));
    let first = paths.next();
    paths.any(|path| Some(path) != first)
}

/// Paths to choose from.
struct Contest {
    /// One of its cells, for the setting that all share.
    first: usize,
    quantity: &'static str,
    /// Indices of the candidates, the best figure first.
    ranked: Vec<usize>,
    left_out: Vec<NoCandidate>,
}

impl Contest {
    fn of(evidence: &Evidence<'_>, cells: Vec<usize>, needs: &[Feature]) -> Self {
        let first = cells[0];
        let name = main_figure(evidence.cells[first].load, &evidence.cells[first].axes);
        let mut left_out: Vec<NoCandidate> = Vec::new();
        let mut ranked = Vec::new();
        for index in cells {
            match why_not(evidence, index, name, needs) {
                None => ranked.push(index),
                Some(reason) => {
                    let path = evidence.cells[index].path.clone();
                    let one = NoCandidate { path, reason };
                    if !left_out.contains(&one) {
                        left_out.push(one);
                    }
                }
            }
        }
        let figure = |index: &usize| evidence.cells[*index].estimates[name].value;
        ranked.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
        if more_is_better(name) {
            ranked.reverse();
        }
        Self {
            first,
            quantity: name,
            ranked,
            left_out,
        }
    }

    fn decide(self, evidence: &Evidence<'_>, mut versus: Vec<Versus>, needs: &[Feature]) -> Choice {
        let cells = evidence.cells;
        let cost = cost(cells[self.first].load);
        let shown = |versus: &Versus, name: &str, worse: bool| {
            versus.get(name).is_some_and(|v| {
                v.verdict == Some(Verdict::Different)
                    && ((v.ratio.value < 1.0) == more_is_better(name)) == worse
            })
        };
        // Not shown to be worse than the best figure; of those shown to be cheaper than it, the cheapest and what is not told from it.
        let places = 0..self.ranked.len();
        let near: Vec<usize> = places
            .clone()
            .filter(|at| !shown(&versus[*at], self.quantity, true))
            .collect();
        let value = |at: &usize| {
            cells[self.ranked[*at]]
                .estimates
                .get(cost)
                .map_or(f64::INFINITY, |e| e.value)
        };
        let mut cheaper: Vec<usize> = near
            .iter()
            .copied()
            .filter(|at| shown(&versus[*at], cost, false))
            .collect();
        cheaper.sort_by(|a, b| value(a).total_cmp(&value(b)));
        let best: Vec<usize> = if cheaper.is_empty() {
            near.into_iter()
                .filter(|at| !shown(&versus[*at], cost, true))
                .collect()
        } else {
            self.as_cheap_as_the_first(evidence, &cheaper)
        };
        let reason = self.reason(evidence, needs);
        let mut candidate = |at: usize| {
            let cell = &cells[self.ranked[at]];
            Candidate {
                path: cell.path.clone(),
                axes: cell.axes.clone(),
                figure: cell.estimates[self.quantity].clone(),
                cost: cell.estimates.get(cost).cloned(),
                versus: std::mem::take(&mut versus[at]),
            }
        };
        let others = places
            .filter(|at| !best.contains(at))
            .map(&mut candidate)
            .collect();
        let best: Vec<Candidate> = best.iter().map(|at| candidate(*at)).collect();
        let first = &cells[self.first];
        Choice {
            peer: first.peer,
            load: first.load,
            axes: first.axes.clone(),
            quantity: self.quantity.to_owned(),
            best: if reason.is_some() { Vec::new() } else { best },
            others,
            left_out: self.left_out,
            reason,
        }
    }

    /// Of places from the cheapest on, those that are not shown to cost more than it.
    fn as_cheap_as_the_first(&self, evidence: &Evidence<'_>, places: &[usize]) -> Vec<usize> {
        let load = evidence.cells[self.first].load;
        let Ok(cost) = quantity(cost(load)) else {
            return places.to_vec();
        };
        let compared = |at: &usize| {
            let cells = [self.ranked[*at], self.ranked[places[0]]];
            let (own, least) = paired(evidence.header, evidence.samples, cells, cost);
            let compared = stats::compare(&own, &least, evidence.header.confidence)?;
            Some((*at, compared))
        };
        let (others, table): (Vec<usize>, Vec<Comparison>) =
            places[1..].iter().filter_map(compared).unzip();
        let names = std::iter::repeat_n(Some((cost.name, load)), table.len());
        let table = moderated(names, table);
        let judged = stats::judge(&table, evidence.header.margin, evidence.header.confidence);
        let alike = others.into_iter().zip(judged).filter(|(_, judged)| {
            let is_shown =
                verdict_of(judged, evidence.summary.quick_look) == Some(Verdict::Different);
            !(is_shown && judged.ratio.value > 1.0)
        });
        std::iter::once(places[0])
            .chain(alike.map(|(at, _)| at))
            .collect()
    }

    /// Why nothing is recommended, if so.
    fn reason(&self, evidence: &Evidence<'_>, needs: &[Feature]) -> Option<String> {
        if self.ranked.is_empty() {
            let needs: Vec<&str> = needs.iter().map(|need| need.name()).collect();
            return Some(match needs[..] {
                [] => "no path has figures with a path proof".to_owned(),
                [one] => {
                    format!("none of the measured paths can be recommended where {one} is needed")
                }
                _ => format!(
                    "none of the measured paths can be recommended where {} are needed",
                    needs.join(" and ")
                ),
            });
        }
        evidence.summary.quick_look.then(|| {
            let blocks = evidence.summary.blocks;
            format!("none from a quick look: verdicts need {FOR_A_VERDICT} blocks, and this has {blocks}")
        })
    }
}

fn more_is_better(name: &str) -> bool {
    quantity(name)
        .ok()
        .and_then(Quantity::more_is_better)
        .unwrap_or(true)
}

/// More than this share of the datagrams must not be shown to be lost on a path that is chosen for its latency: the figure is a
/// quantile up to the 99th.
const MOST_LOST: f64 = 0.01;

/// Why a cell is not a candidate.
fn why_not(evidence: &Evidence<'_>, index: usize, name: &str, needs: &[Feature]) -> Option<String> {
    let cell = &evidence.cells[index];
    if cell.path == NATIVE {
        return Some("connects nothing: it is what there is without a path".to_owned());
    }
    if UNIX.contains(&&*cell.path) {
        return Some(
            "is no network: programs have to be written for sockets in a directory".to_owned(),
        );
    }
    let cause = cell.cause.as_deref().unwrap_or("no cause was recorded");
    match cell.status {
        CellStatus::Unsupported => return Some(format!("cannot be built here: {cause}")),
        CellStatus::Failed => return Some(format!("failed: {cause}")),
        CellStatus::Ok if !cell.way.proved => {
            return Some("has no path proof".to_owned());
        }
        CellStatus::Ok if !cell.estimates.contains_key(name) => {
            return Some("has no figure".to_owned());
        }
        CellStatus::Ok if cell.has_emulated_guest() && is_any_real(evidence.cells) => {
            return Some(
                "had an emulated guest, whose figures compare only with those of others".to_owned(),
            );
        }
        CellStatus::Ok => {}
    }
    // The times of what arrived say nothing of what did not.
    let lost = cell.estimates.get("lost_ratio").map(|lost| lost.low);
    if let Some(lost) = lost.filter(|lost| name.starts_with("latency_") && *lost > MOST_LOST) {
        return Some(format!(
            "lost at least {:.0} % of the datagrams, whose times are in no figure",
            100.0 * lost
        ));
    }
    if needs.is_empty() {
        return None;
    }
    let Some(offers) = &evidence.header.cells[index].offers else {
        return Some("did not record what it offers: the run is of an older version".to_owned());
    };
    let lacking = needs.iter().filter(|need| !offers.contains(need));
    let lacking: Vec<&str> = lacking.map(|need| need.name()).collect();
    (!lacking.is_empty()).then(|| format!("lacks {}", lacking.join(" and ")))
}

/// Whether any figures are of a CPU that was there.
fn is_any_real(cells: &[CellReport]) -> bool {
    let mut measured = cells.iter().filter(|cell| cell.is_measured());
    measured.any(|cell| !cell.has_emulated_guest())
}

/// Comparisons of one candidate with the leader, by quantity.
type Versus = BTreeMap<String, VerdictReport>;

/// Compares every candidate with the leader of its contest, figure and cost, as one table.
fn judge(evidence: &Evidence<'_>, contests: &[Contest]) -> Vec<Vec<Versus>> {
    let mut answers: Vec<Vec<Versus>> = contests
        .iter()
        .map(|c| vec![Versus::new(); c.ranked.len()])
        .collect();
    let mut places = Vec::new();
    let mut table: Vec<Comparison> = Vec::new();
    for (at, contest) in contests.iter().enumerate() {
        let Some((&leader, others)) = contest.ranked.split_first() else {
            continue;
        };
        let load = evidence.cells[leader].load;
        for (place, &other) in others.iter().enumerate() {
            for quantity in [contest.quantity, cost(load)]
                .into_iter()
                .filter_map(|name| quantity(name).ok())
            {
                let both = [other, leader];
                if is_generator_limited(evidence.samples, both, quantity) {
                    continue;
                }
                let (theirs, leaders) = paired(evidence.header, evidence.samples, both, quantity);
                if let Some(comparison) =
                    stats::compare(&theirs, &leaders, evidence.header.confidence)
                {
                    places.push((at, place + 1, quantity.name));
                    table.push(comparison);
                }
            }
        }
    }
    // As the table of verdicts has them.
    let alike = places.iter().map(|(at, _, name)| {
        let leader = contests[*at].ranked[0];
        Some((*name, evidence.cells[leader].load))
    });
    let table = moderated(alike, table);
    let judged = stats::judge(&table, evidence.header.margin, evidence.header.confidence);
    for ((at, place, name), judged) in places.into_iter().zip(judged) {
        let report = VerdictReport {
            base: evidence.cells[contests[at].ranked[0]].path.clone(),
            verdict: verdict_of(&judged, evidence.summary.quick_look),
            smallest_detectable: judged.detectable(),
            ratio: judged.ratio,
            trips_gate: None,
            gate_catches_ratio: None,
        };
        answers[at][place].insert(name.to_owned(), report);
    }
    answers
}
