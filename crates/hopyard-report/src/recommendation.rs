//! The recommendation as text: for each load the path, its figure, what it was compared with, and what would change it.

use super::document::{Block, headed};
use super::figures::verdict_mark;
use super::group::Layout;
use super::number::ratio;
use super::quantity::{self, show_all};
use crate::model::{
    Candidate, CellReport, Choice, Recommendation, RunReport, VerdictReport, distinct,
};
use crate::plain;
use crate::stats::{Estimate, Verdict};

/// With more settings than this, they are only in the document.
const MOST: usize = 16;
/// The most paths in one list.
const NAMED: usize = 4;

/// A heading, a sentence for each load and setting, and the paths that were left out.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let Some(recommendation) = &report.recommendation else {
        return Vec::new();
    };
    let choices = &recommendation.choices;
    let mut sentences: Vec<String> = choices
        .iter()
        .take(MOST)
        .map(|choice| format!("{}: {}.", place(choice, report, layout), sentence(choice)))
        .collect();
    let more = choices.len().saturating_sub(MOST);
    if more > 0 {
        sentences.push(format!("{more} more are in the JSON document."));
    }
    let mut blocks = vec![
        Block::Heading(heading(recommendation)),
        Block::List(sentences),
    ];
    let left_out = left_out(choices);
    if !left_out.is_empty() {
        blocks.push(Block::Paragraph(format!(
            "No candidates: {}.",
            left_out.join("; ")
        )));
    }
    blocks
}

/// What the recommendation depends on.
pub(super) fn conditions(report: &RunReport) -> Vec<Block> {
    let conditions = report.recommendation.iter().flat_map(|r| &r.conditions);
    let sentences: Vec<String> = conditions.map(|sentence| plain::line(sentence)).collect();
    headed("What would change the recommendation", sentences)
}

fn heading(recommendation: &Recommendation) -> String {
    let needs: Vec<&str> = recommendation
        .needs
        .iter()
        .map(|need| need.name())
        .collect();
    match needs[..] {
        [] => "Recommendation".to_owned(),
        [one] => format!("Recommendation where {one} is needed"),
        _ => format!("Recommendation where {} are needed", needs.join(" and ")),
    }
}

/// Load, peer and what distinguishes this choice from others.
pub(super) fn place(choice: &Choice, report: &RunReport, layout: &Layout<'_>) -> String {
    let is_own = |cell: &&CellReport| {
        (cell.load, cell.peer) == (choice.load, choice.peer) && cell.axes == choice.axes
    };
    let own = report.cells.iter().find(is_own);
    own.map_or_else(
        || format!("{} · {}", choice.load, choice.peer),
        |cell| layout.shared_place(cell),
    )
}

fn sentence(choice: &Choice) -> String {
    if let Some(reason) = &choice.reason {
        return plain::line(reason);
    }
    let mut clauses = match choice.best.as_slice() {
        [] => Vec::new(),
        [one] => vec![alone(choice, one)],
        [cheapest, alike @ ..] if is_for_its_cost(choice) => {
            vec![format!(
                "{}, in a tie with {}",
                alone(choice, cheapest),
                costs(choice, alike)
            )]
        }
        several => vec![tie(choice, several)],
    };
    clauses.extend(runner_up(choice));
    clauses.join("; ")
}

/// Does what is best cost less than the path with the best figure, which is not among them?
fn is_for_its_cost(choice: &Choice) -> bool {
    let mut best = choice.best.iter();
    best.all(|candidate| candidate.versus.contains_key(&choice.quantity))
}

/// Paths with their cost, relative to the one with the best figure.
fn costs(choice: &Choice, candidates: &[Candidate]) -> String {
    let cost = quantity::cpu_cost(choice.load);
    let named = candidates.iter().take(NAMED).map(|candidate| {
        let cost = candidate.versus.get(cost).map(judged);
        let cost = cost.map_or_else(String::new, |cost| format!(" ({cost})"));
        name(candidate) + &cost
    });
    let named: Vec<String> = named.collect();
    match candidates.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A path and the values of its own axes.
fn name(candidate: &Candidate) -> String {
    let own = crate::model::AXES.iter().filter(|axis| axis.of_path);
    let values = own.filter_map(|axis| {
        let value = (axis.show)(&candidate.axes)?;
        Some(format!(" {}={}", axis.name, plain::line(&value)))
    });
    values.fold(plain::line(&candidate.path), |name, value| name + &value)
}

fn figure(quantity: &str, estimate: &Estimate) -> String {
    let value = show_all(quantity, &[estimate.value]);
    if estimate.n < 2 {
        return value;
    }
    let scale = quantity::scale(quantity, estimate.value.abs());
    format!(
        "{value} ({} to {})",
        scale.show(estimate.low),
        scale.show(estimate.high)
    )
}

fn figures(choice: &Choice, candidate: &Candidate) -> String {
    let cost = quantity::cpu_cost(choice.load);
    let of_cost = candidate
        .cost
        .iter()
        .map(|estimate| show_all(cost, &[estimate.value]));
    let all = std::iter::once(figure(&choice.quantity, &candidate.figure)).chain(of_cost);
    all.collect::<Vec<_>>().join(" at ")
}

fn alone(choice: &Choice, best: &Candidate) -> String {
    let what = format!("{} {}", name(best), figures(choice, best));
    let cost = best.versus.get(quantity::cpu_cost(choice.load));
    let (Some(rate), Some(cost)) = (best.versus.get(&choice.quantity), cost) else {
        return what;
    };
    // It does not have the best figure, but costs less than the path that has.
    let leader = plain::line(&rate.base);
    let so = match rate.verdict {
        Some(Verdict::Equivalent) => format!("equivalent to {leader}"),
        _ => format!("not told apart from {leader}"),
    };
    format!(
        "{what}: {so} ({}) at {} of its CPU cost",
        judged(rate),
        judged(cost)
    )
}

fn tie(choice: &Choice, several: &[Candidate]) -> String {
    let equivalent = several
        .iter()
        .filter_map(|c| c.versus.get(&choice.quantity));
    let equivalent = equivalent.clone().count() + 1 == several.len()
        && equivalent
            .clone()
            .all(|v| v.verdict == Some(Verdict::Equivalent));
    let named: Vec<String> = several
        .iter()
        .take(NAMED)
        .map(|candidate| match candidate.versus.get(&choice.quantity) {
            Some(v) => format!("{} ({})", name(candidate), judged(v)),
            None => format!("{} {}", name(candidate), figures(choice, candidate)),
        })
        .collect();
    let more = several.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let what = if equivalent {
        "equivalent"
    } else {
        "not told apart"
    };
    format!("a tie, {what}: {}{more}", named.join(", "))
}

/// The best of those shown to be worse.
fn runner_up(choice: &Choice) -> Option<String> {
    let next = choice.others.first()?;
    let Some(rate) = next.versus.get(&choice.quantity) else {
        // The path with the best figure, which costs more.
        return Some(format!("{} has {}", name(next), figures(choice, next)));
    };
    let cost = next.versus.get(quantity::cpu_cost(choice.load));
    let cost = cost.map(|v| format!(", CPU cost {}", judged(v)));
    Some(format!(
        "next is {} at {}{}",
        name(next),
        judged(rate),
        cost.unwrap_or_default(),
    ))
}

/// A ratio and the sign of its verdict, if it has one.
fn judged(verdict: &VerdictReport) -> String {
    let text = format!("{} {}", ratio(verdict.ratio.value), verdict_mark(verdict));
    text.trim_end().to_owned()
}

/// Paths that could not be chosen, grouped by reason.
fn left_out(choices: &[Choice]) -> Vec<String> {
    let all = choices.iter().flat_map(|choice| &choice.left_out);
    let all: Vec<(String, String)> = all
        .map(|one| (plain::line(&one.path), plain::line(&one.reason)))
        .collect();
    let reasons = distinct(all.iter().map(|(_, reason)| reason));
    let told = reasons.into_iter().map(|reason| {
        let paths = distinct(
            all.iter()
                .filter(|(_, why)| why == reason)
                .map(|(path, _)| path.as_str()),
        );
        format!("{} ({reason})", paths.join(", "))
    });
    told.collect()
}
