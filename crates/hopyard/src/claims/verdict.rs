//! Verdicts: how intervals lie to a rule's bounds, and how several of them make one verdict.
//!
//! A rule over several points holds where every point's own interval is within the bounds: claiming all of
//! them errs only where each does, so no correction is due (the intersection-union test, Berger 1982). It fails
//! where any point is wholly outside; with many points one may be so by chance, so that is asked of
//! intervals of simultaneous confidence (Bonferroni over all points of the claim).

use super::Chosen;
use super::bounds::Bounds;
use super::evidence::Evidence;
use super::figure::{Figure, Gathered, Point};
use super::judge::gather;
use super::rule::{Check, Judge, Over};
use super::sentence::sentence;
use crate::model::{
    BoundPosition, CheckReport, ClaimReport, ClaimVerdict, FOR_A_VERDICT, PointReport,
};
use crate::stats::{self, Estimate};

/// Confidence of what is not measured in a run.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Judges a claim by what was measured.
#[must_use]
pub fn judge(chosen: Chosen<'_>, evidence: &Evidence) -> ClaimReport {
    let claim = chosen.claim;
    let gathered: Vec<(&Check, Gathered)> = claim
        .checks
        .iter()
        .map(|check| (check, of_check(check, chosen.plan_of(check), evidence)))
        .collect();
    let points = gathered.iter().map(|(_, g)| g.points.len()).sum();
    let checks: Vec<CheckReport> = gathered
        .into_iter()
        .map(|(check, gathered)| of_points(check, gathered, points, evidence))
        .collect();
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

/// All parts have to hold; what cannot be tested is left out as long as something can.
fn together(checks: &[CheckReport]) -> ClaimVerdict {
    let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
    if has(ClaimVerdict::Fails) {
        ClaimVerdict::Fails
    } else if has(ClaimVerdict::Undecided) {
        ClaimVerdict::Undecided
    } else if has(ClaimVerdict::Holds) {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::Untestable
    }
}

fn of_check(check: &Check, plan: &str, evidence: &Evidence) -> Gathered {
    match &check.judge {
        Judge::Bench { bench } => of_bench(bench, evidence),
        Judge::Does { does } => Gathered {
            what: does.replace('-', " "),
            ..Gathered::default()
        },
        _ => gather(check, plan, evidence),
    }
}

fn of_bench(name: &str, evidence: &Evidence) -> Gathered {
    let mut gathered = Gathered {
        what: name.replace('-', " "),
        confidence: CONFIDENCE,
        ..Gathered::default()
    };
    match evidence.benched.get(name) {
        None => gathered.untested.push("it was not measured".to_owned()),
        Some(Err(why)) => gathered.untested.push(why.clone()),
        Some(Ok(series)) => {
            gathered.what.clone_from(&series.what);
            gathered.points.push(Point {
                at: String::new(),
                figure: match &series.base {
                    Some(base) => Figure::Ratio {
                        a: series.values.clone(),
                        b: base.clone(),
                    },
                    None => Figure::Level(series.values.clone()),
                },
                published: None,
            });
        }
    }
    gathered
}

/// How a point lies: within by its own interval, outside by that of simultaneous confidence.
pub(super) fn place(bounds: Bounds, own: &Estimate, simultaneous: &Estimate) -> BoundPosition {
    // Too few blocks for any verdict (docs/method.md, rule 10).
    if u32::try_from(own.n).unwrap_or(u32::MAX) < FOR_A_VERDICT {
        return BoundPosition::Across;
    }
    match bounds.lies(own) {
        BoundPosition::Inside => BoundPosition::Inside,
        _ if bounds.lies(simultaneous) == BoundPosition::Outside => BoundPosition::Outside,
        _ => BoundPosition::Across,
    }
}

/// One verdict of the places of points.
pub(super) fn combine(over: Over, places: &[BoundPosition]) -> ClaimVerdict {
    let count = |lies| places.iter().filter(|place| **place == lies).count();
    let (inside, outside, all) = (
        count(BoundPosition::Inside),
        count(BoundPosition::Outside),
        places.len(),
    );
    let (holds, fails) = match over {
        Over::Every => (inside == all, outside > 0),
        Over::Most => (2 * inside > all, 2 * outside >= all),
    };
    if all == 0 {
        ClaimVerdict::Untestable
    } else if fails {
        ClaimVerdict::Fails
    } else if holds {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::Undecided
    }
}

fn of_points(check: &Check, gathered: Gathered, all: usize, evidence: &Evidence) -> CheckReport {
    let bounds = Bounds::of(check);
    let confidence = gathered.confidence;
    let simultaneous = 1.0 - (1.0 - confidence) / all.max(1) as f64;
    // Of a count of points, a wrong one on either side counts.
    let own = match check.over {
        Over::Every => confidence,
        Over::Most => simultaneous,
    };
    let mut untested = gathered.untested;
    let mut points = Vec::new();
    let mut figures = Vec::new();
    for point in gathered.points {
        let intervals = point
            .figure
            .interval(own)
            .zip(point.figure.interval(simultaneous));
        match intervals {
            Some((measured, wide)) => {
                points.push(PointReport {
                    at: point.at,
                    lies: place(bounds, &measured, &wide),
                    published: point.published,
                    measured,
                });
                figures.push(point.figure);
            }
            None => {
                let at = [gathered.what.as_str(), &point.at].join(" ");
                untested.push(format!(
                    "{}: too few blocks, or nothing of it was seen",
                    at.trim()
                ));
            }
        }
    }
    let places: Vec<BoundPosition> = points.iter().map(|point| point.lies).collect();
    let mut verdict = combine(check.over, &places);
    let mut seen = gathered.refuted;
    if seen.is_some() {
        verdict = ClaimVerdict::Fails;
    }
    if let Judge::Does { does } = &check.judge {
        match evidence.done.get(does) {
            Some(Ok(deed)) => {
                verdict = if deed.passed {
                    ClaimVerdict::Holds
                } else {
                    ClaimVerdict::Fails
                };
                seen = Some(deed.seen.clone());
            }
            Some(Err(why)) => untested.push(why.clone()),
            None => untested.push("it was not tried".to_owned()),
        }
    }
    let deciding = deciding(bounds, &points, verdict);
    CheckReport {
        what: gathered.what,
        quantity: gathered.quantity,
        at_least: check.at_least,
        at_most: check.at_most,
        verdict,
        smallest_effect: deciding
            .filter(|_| verdict == ClaimVerdict::Undecided)
            .and_then(|at| smallest_effect(&figures[at], bounds, own)),
        deciding,
        points,
        seen,
        untested,
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
        Figure::Ratio { a, b } => {
            let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
            of_values(&ratios)?
        }
        Figure::Level(values) => of_values(values)?,
        // No block has a value of its own: its interval tells.
        Figure::Share { .. } | Figure::Known(_) => {
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
    let mut untested: Vec<&String> = Vec::new();
    for why in checks.iter().flat_map(|check| &check.untested) {
        if !untested.contains(&why) {
            untested.push(why);
        }
    }
    if !untested.is_empty() {
        let list: Vec<&str> = untested.iter().map(|why| why.as_str()).collect();
        remarks.push(format!("Not tested: {}.", list.join("; ")));
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
        remarks.push(format!("A first look: {} alone.", kept.axes_in_words()));
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
    remarks.extend(chosen.claim.remark.clone());
    remarks
}
