//! Verdicts: how intervals lie to a rule's bounds, and how several of them make one verdict.
//!
//! A rule over several points holds where every point's own interval is within the bounds, or that of most; it fails where any
//! point is wholly outside, or half of them. With many points some may lie so by chance: how sure each has to be is in
//! [`Confidences`].

use super::Chosen;
use super::answer;
use super::bounds::Bounds;
use super::evidence::Evidence;
use super::figure::{Figure, Gathered};
use super::place::{Confidences, decide, of_check};
use super::position::position;
use super::rule::{Check, Grade, Judge};
use super::sentence::sentence;
use crate::model::{
    BoundPosition, Cell, CheckReport, ClaimReport, ClaimVerdict, FIRST_LOOK, FOR_A_VERDICT,
    GradeReport, PointReport, distinct,
};
use crate::stats::{self, Estimate};

/// Judges a claim by what was measured.
#[must_use]
pub fn judge(chosen: Chosen<'_>, evidence: &Evidence) -> ClaimReport {
    let claim = chosen.claim;
    let judged = checks(chosen, evidence, 1.0);
    let checks: Vec<CheckReport> = judged.into_iter().map(|judged| judged.report).collect();
    let verdict = together(&checks);
    let mut report = ClaimReport {
        id: claim.id.clone(),
        statement: claim.statement.clone(),
        rule: claim.rule.clone(),
        published: claim.published.clone(),
        verdict,
        sentence: String::new(),
        remarks: remarks(chosen, &checks, verdict, evidence),
        checks,
    };
    report.sentence = sentence(&report, claim.missing.as_deref());
    report
}

/// A part of a rule that was judged.
pub(super) struct Judged<'a> {
    pub(super) check: &'a Check,
    pub(super) report: CheckReport,
    /// What its points are of, in their order.
    pub(super) places: Vec<Place>,
    /// Are its ratios nearer to 1 than those that the rule is about?
    pub(super) is_diluted: bool,
}

/// What a point is of.
pub(super) struct Place {
    pub(super) cells: Vec<Cell>,
    pub(super) figure: Figure,
    /// The interval by which it is shown to be outside the bounds.
    pub(super) wide: Estimate,
}

/// The parts of a claim's rule, with so many times the risk of error that their runs ask for.
pub(super) fn checks<'a>(chosen: Chosen<'a>, evidence: &Evidence, risk: f64) -> Vec<Judged<'a>> {
    let gathered: Vec<(&Check, Gathered)> = chosen
        .claim
        .checks
        .iter()
        .map(|check| (check, of_check(chosen, check, evidence)))
        .collect();
    let points = gathered.iter().map(|(_, g)| g.points.len()).sum();
    let judged = gathered.into_iter().map(|(check, mut gathered)| {
        gathered.confidence += (1.0 - risk) * (1.0 - gathered.confidence);
        of_points(check, gathered, points, evidence)
    });
    judged.collect()
}

/// All parts have to hold, with all that they are about: a claim of which something cannot be tested may fail, and cannot hold.
pub(super) fn together(checks: &[CheckReport]) -> ClaimVerdict {
    let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
    let whole = checks.iter().all(|check| check.untested.is_empty());
    if has(ClaimVerdict::Fails) {
        ClaimVerdict::Fails
    } else if has(ClaimVerdict::Undecided) {
        ClaimVerdict::Undecided
    } else if has(ClaimVerdict::Holds) && !has(ClaimVerdict::Untestable) && whole {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::Untestable
    }
}

fn of_points<'a>(
    check: &'a Check,
    gathered: Gathered,
    all: usize,
    evidence: &Evidence,
) -> Judged<'a> {
    let bounds = check.bounds();
    let asked = Confidences::of(check.over, gathered.points.len(), all, gathered.confidence);
    let mut untested = gathered.untested;
    let mut points = Vec::new();
    let mut of: Vec<Place> = Vec::new();
    let grade_bounds = check.grade.as_ref().map(Grade::bounds);
    let mut grades = Vec::new();
    for point in gathered.points {
        let intervals = point
            .figure
            .interval(asked.within)
            .zip(point.figure.interval(asked.outside));
        match intervals {
            Some((measured, wide)) => {
                let place = |bounds| position(bounds, &point.figure, (&measured, &wide));
                grades.extend(grade_bounds.map(place));
                points.push(PointReport {
                    at: point.at,
                    lies: place(bounds),
                    published: point.published,
                    measured,
                });
                of.push(Place {
                    cells: point.cells,
                    figure: point.figure,
                    wide,
                });
            }
            None => {
                let at = [gathered.what.as_str(), &point.at].join(" ");
                untested.push(format!("{}: {}", at.trim(), point.figure.unknown()));
            }
        }
    }
    let places: Vec<BoundPosition> = points.iter().map(|point| point.lies).collect();
    let beside = (gathered.refuted, gathered.unshown);
    let of_all = gathered.figures.max(places.len());
    let (of_grade, _) = decide(check.over, &grades, of_all, beside.clone());
    let (mut verdict, mut seen) = decide(check.over, &places, of_all, beside);
    if let Judge::Does { does } = &check.judge {
        match evidence.deed(does) {
            Some(Ok(deed)) => {
                verdict = if deed.passed {
                    ClaimVerdict::Holds
                } else {
                    ClaimVerdict::Fails
                };
                seen = Some(deed.seen);
            }
            Some(Err(why)) => untested.push(why),
            None => untested.push("it was not tried".to_owned()),
        }
    }
    if let Some(why) = check.shown_by_no_figure(verdict, gathered.is_diluted) {
        verdict = ClaimVerdict::Untestable;
        untested.push(why.to_owned());
    }
    let grade = check.grade.as_ref().filter(|_| !points.is_empty());
    let grade = grade.map(|grade| GradeReport {
        called: grade.called.clone(),
        at_least: grade.at_least,
        at_most: grade.at_most,
        // As a rule of its own: where something of it cannot be tested, it cannot hold.
        verdict: match of_grade {
            ClaimVerdict::Holds if !untested.is_empty() => ClaimVerdict::Untestable,
            verdict => verdict,
        },
    });
    let deciding = deciding(bounds, &points, verdict);
    let report = CheckReport {
        what: gathered.what,
        quantity: gathered.quantity,
        at_least: check.at_least,
        at_most: check.at_most,
        beyond: check.beyond,
        verdict,
        grade,
        smallest_effect: deciding
            .filter(|_| verdict == ClaimVerdict::Undecided)
            .and_then(|at| {
                let is_beyond = bounds.margin(points[at].measured.value) < 0.0;
                let confidence = if is_beyond {
                    asked.outside
                } else {
                    asked.within
                };
                smallest_effect(&of[at].figure, bounds, confidence)
            }),
        deciding,
        points,
        seen,
        untested,
    };
    Judged {
        check,
        report,
        places: of,
        is_diluted: gathered.is_diluted,
    }
}

/// The point that a verdict hangs on: of those that made it, the one least within the bounds.
fn deciding(bounds: Bounds, points: &[PointReport], verdict: ClaimVerdict) -> Option<usize> {
    let made_it = |point: &&PointReport| match verdict {
        ClaimVerdict::Undecided => point.lies == BoundPosition::Across,
        ClaimVerdict::Fails => point.lies == BoundPosition::Outside,
        _ => true,
    };
    let margin = |place: &usize| bounds.margin(points[*place].measured.value);
    let least = |places: &mut dyn Iterator<Item = usize>| {
        places.min_by(|a, b| margin(a).total_cmp(&margin(b)))
    };
    least(&mut (0..points.len()).filter(|place| made_it(&&points[*place])))
        .or_else(|| least(&mut (0..points.len())))
}

/// How far beyond a bound, as a share, this many blocks with this spread would have shown four times out of
/// five.
fn smallest_effect(figure: &Figure, bounds: Bounds, confidence: f64) -> Option<f64> {
    let of_values = |values: &[f64]| {
        let relative = stats::sd(values)? / stats::mean(values)?.abs();
        Some((relative, values.len()))
    };
    let (relative, blocks) = match figure {
        Figure::Ratio { a, b } if a.iter().chain(b).all(|value| *value > 0.0) => {
            let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
            of_values(&ratios)?
        }
        Figure::Level(values) | Figure::Share(values) => of_values(values)?,
        // Of none there are no shares, of a lower bound no bound is near, and what is not known has no spread.
        Figure::Windows { .. } | Figure::AtLeast { .. } | Figure::Unknown(_) => return None,
        // Not every block has a value of its own: its interval tells.
        Figure::Ratio { .. }
        | Figure::RatioOfSums { .. }
        | Figure::OfSums { .. }
        | Figure::Known(_) => {
            let estimate = figure.interval(confidence)?;
            let spread = estimate.standard_error()? * (estimate.n as f64).sqrt();
            (spread / bounds.nearest(estimate.value)?.abs(), estimate.n)
        }
    };
    let effect = stats::smallest_detectable(relative, blocks, confidence, stats::POWER);
    effect.is_finite().then_some(effect)
}

/// What a reader has to know besides.
fn remarks(
    chosen: Chosen<'_>,
    checks: &[CheckReport],
    verdict: ClaimVerdict,
    evidence: &Evidence,
) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    if verdict == ClaimVerdict::Untestable {
        return remarks;
    }
    let untested = checks.iter().flat_map(|check| &check.untested);
    let untested = distinct(untested.map(String::as_str));
    if !untested.is_empty() {
        remarks.push(format!("Not tested: {}.", untested.join("; ")));
    }
    let plans = chosen
        .claim
        .checks
        .iter()
        .filter(|check| check.of_cells().is_some());
    let mut thinned = plans.filter_map(|check| {
        let plan = chosen.plan_of(check);
        let kept = chosen.report.quick.get(plan);
        kept.filter(|_| evidence.first_looks.contains(plan))
    });
    if let Some(kept) = thinned.next_back() {
        remarks.push(format!("{FIRST_LOOK}: {} alone.", kept.axes_in_words()));
    }
    let few = checks
        .iter()
        .flat_map(|check| &check.points)
        .any(|point| point.measured.n < FOR_A_VERDICT as usize);
    if few {
        remarks.push(format!(
            "Fewer than {FOR_A_VERDICT} blocks: figures without a verdict."
        ));
    }
    for said in &chosen.claim.beside {
        let figure = answer::figure(chosen, &said.0, evidence);
        remarks.push(format!("Beside it: {}.", answer::in_words(&figure)));
    }
    remarks.extend(chosen.claim.remark.clone());
    remarks
}
