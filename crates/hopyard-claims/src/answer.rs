//! What this machine says to a question that a report left open: figures as of a claim's checks, and no verdict.

use super::Chosen;
use super::evidence::Evidence;
use super::figure::Gathered;
use super::label::at;
use super::place::{Confidences, decide, of_check};
use super::position::position;
use super::rule::{Check, Judge};
use crate::model::{AnswerFigure, AnswerPoint, Answered, FOR_A_VERDICT, QuestionReport};
use crate::report::claims::quoted;

/// Of more places than this, the least and the greatest are said.
const PLACES: usize = 4;

/// Answers a question by what was measured.
pub(super) fn answer(chosen: Chosen<'_>, evidence: &Evidence) -> QuestionReport {
    let question = chosen.claim;
    let gathered: Vec<(&Check, Gathered)> = question
        .measured()
        .map(|check| (check, of_check(chosen, check, evidence)))
        .collect();
    // Places that decide which answer it is: one of many may lie outside by chance, as those of a claim may.
    let deciding = gathered.iter().filter(|(check, _)| check.says.is_some());
    let places = deciding.map(|(_, gathered)| gathered.points.len()).sum();
    let checks: Vec<&Check> = question.measured().collect();
    let figures: Vec<AnswerFigure> = gathered
        .into_iter()
        .map(|(check, gathered)| of_points(check, gathered, places, evidence))
        .collect();
    let mut sentences: Vec<String> = figures.iter().map(sentence).collect();
    // What several figures miss is said once.
    sentences.dedup();
    QuestionReport {
        id: question.id.clone(),
        question: question.statement.clone(),
        method: question.measure.clone(),
        answered: answered(&checks, &figures),
        answer: sentences.join(" "),
        figures,
    }
}

/// A question is answered wholly if nothing is missing, and each figure decides what it means.
fn answered(checks: &[&Check], figures: &[AnswerFigure]) -> Answered {
    let is_known = |figure: &AnswerFigure| !figure.points.is_empty() || figure.seen.is_some();
    let is_whole = |(check, figure): (&&Check, &AnswerFigure)| {
        let across = check.says.as_ref().map(|says| &says.across);
        figure.missing.is_empty() && (across.is_none() || figure.says.as_ref() != across)
    };
    if !figures.iter().any(is_known) {
        Answered::Open
    } else if checks.iter().zip(figures).all(is_whole) {
        Answered::Whole
    } else {
        Answered::Partly
    }
}

/// A figure by itself, or why there is none.
pub(super) fn figure(chosen: Chosen<'_>, check: &Check, evidence: &Evidence) -> AnswerFigure {
    let gathered = of_check(chosen, check, evidence);
    let places = gathered.points.len();
    of_points(check, gathered, places, evidence)
}

/// A figure of a question that has so many places in all, or why there is none.
fn of_points(check: &Check, gathered: Gathered, all: usize, evidence: &Evidence) -> AnswerFigure {
    let asked = Confidences::of(check.over, gathered.points.len(), all, gathered.confidence);
    let mut missing = gathered.untested;
    let mut points = Vec::new();
    let mut places = Vec::new();
    let bounds = check.bounds();
    for point in gathered.points {
        let interval = |confidence| point.figure.interval(confidence);
        let decide = interval(asked.within).zip(interval(asked.outside));
        match interval(gathered.confidence).zip(decide) {
            Some((measured, (own, wide))) => {
                places.push(position(bounds, &point.figure, (&own, &wide)));
                points.push(AnswerPoint {
                    at: point.at,
                    measured,
                    published: point.published,
                });
            }
            None => {
                let at = [gathered.what.as_str(), &point.at].join(" ");
                missing.push(format!("{}: {}", at.trim(), point.figure.unknown()));
            }
        }
    }
    if points
        .iter()
        .any(|point| point.measured.n < FOR_A_VERDICT as usize)
    {
        missing.push(format!(
            "{}: fewer than {FOR_A_VERDICT} blocks",
            gathered.what
        ));
    }
    let beside = (gathered.refuted, gathered.unshown);
    let (verdict, mut seen) = decide(check.over, &places, gathered.figures, beside);
    if let Judge::Does { does } = &check.judge {
        match evidence.deed(does) {
            Some(Ok(deed)) => seen = Some(deed.seen),
            Some(Err(why)) => missing.push(why),
            None => missing.push("it was not tried".to_owned()),
        }
    }
    let withheld = check.shown_by_no_figure(verdict, gathered.is_diluted);
    missing.extend(withheld.map(str::to_owned));
    let says = check.says.as_ref().filter(|_| withheld.is_none());
    let says = says.and_then(|says| says.of(verdict));
    AnswerFigure {
        what: gathered.what,
        quantity: gathered.quantity,
        says: says.map(str::to_owned),
        points,
        seen,
        missing,
    }
}

/// `It does not fall here: goodput, macvlan / native is 0.999 (0.996 to 1.00). Missing: ….`
fn sentence(figure: &AnswerFigure) -> String {
    let mut text = figure.says.as_ref().map_or_else(String::new, |says| {
        if figure.points.is_empty() {
            format!("{says}.")
        } else {
            format!("{says}: ")
        }
    });
    if !figure.points.is_empty() || figure.seen.is_some() {
        text.push_str(&in_words(figure));
        text.push('.');
    }
    if !figure.missing.is_empty() {
        let space = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{space}Missing: {}.", figure.missing.join("; ")));
    }
    text
}

/// `goodput, macvlan / native is 0.999 (0.996 to 1.00)`, or what is missing.
pub(super) fn in_words(figure: &AnswerFigure) -> String {
    if let Some(seen) = &figure.seen {
        return seen.clone();
    }
    let show = |point: &AnswerPoint| {
        let published = point.published.map_or_else(String::new, |value| {
            let alone = crate::report::claims::alone(figure.quantity.as_deref(), value);
            format!(", published {alone}")
        });
        let at = at(&point.at);
        let value = quoted(figure.quantity.as_deref(), &point.measured);
        format!("{value}{at}{published}")
    };
    let what = &figure.what;
    let by_value =
        |a: &&AnswerPoint, b: &&AnswerPoint| a.measured.value.total_cmp(&b.measured.value);
    let least = figure.points.iter().min_by(by_value);
    let greatest = figure.points.iter().max_by(by_value);
    match (figure.points.as_slice(), least.zip(greatest)) {
        ([], _) => format!("not known, {}", figure.missing.join("; ")),
        (points, Some((least, greatest))) if points.len() > PLACES => format!(
            "{what} is between {} and {}, of {}",
            show(least),
            show(greatest),
            points.len()
        ),
        (points, _) => {
            let all: Vec<String> = points.iter().map(show).collect();
            format!("{what} is {}", all.join(" and "))
        }
    }
}
