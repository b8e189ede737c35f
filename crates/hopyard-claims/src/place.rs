//! Where figures lie to the bounds of a part of a rule, and what several places come to.

use super::Chosen;
use super::evidence::Evidence;
use super::figure::{Figure, Gathered, Point};
use super::gather::gather;
use super::rule::{Check, Judge, Over};
use crate::model::{BoundPosition, ClaimVerdict};

/// Confidence of what is not measured in a run.
pub(super) const CONFIDENCE: f64 = 0.95;

/// How sure the figures of a part have to be.
///
/// "At least u of n figures are within" is wrong only where n − u + 1 of them or more are not, and is said wrongly only if one of those is
/// said to be: so each figure is asked at 1/(n − u + 1) of the risk (partial conjunction by Bonferroni: Benjamini and Heller 2008,
/// "Screening for partial conjunction hypotheses", Biometrics 64). Of all of them, u = n, no correction is due (the intersection-union
/// test, Berger 1982). To fail it is u figures that are wholly outside: one where every figure has to be within, half of them where most
/// have to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Confidences {
    /// That a figure is within.
    pub(super) within: f64,
    /// That it is outside. Parts of a claim share the risk, by their number of figures: any of them refutes it.
    pub(super) outside: f64,
}

impl Confidences {
    /// Those for a part with so many figures, of a claim with so many, at the confidence of its run.
    pub(super) fn of(over: Over, figures: usize, of_all: usize, confidence: f64) -> Self {
        let risk = 1.0 - confidence;
        let of_each = |needed: usize| (figures + 1).saturating_sub(needed).max(1) as f64;
        let share = figures.max(1) as f64 / of_all.max(1) as f64;
        Self {
            within: 1.0 - risk / of_each(over.within(figures)),
            outside: 1.0 - risk * share / of_each(over.outside(figures)),
        }
    }
}

/// The figures of a part.
pub(super) fn of_check(chosen: Chosen<'_>, check: &Check, evidence: &Evidence) -> Gathered {
    match &check.judge {
        Judge::Bench { bench } => of_bench(bench, evidence),
        Judge::Missing { missing } => Gathered::untested(missing.clone()),
        Judge::Does { does } => Gathered {
            what: does.replace('-', " "),
            ..Gathered::default()
        },
        _ => gather(chosen, check, evidence),
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
                cells: Vec::new(),
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

/// The verdict of a rule whose points lie at these places. `of_all`: how many figures the rule is about, those that were not measured
/// too; a rule about most of them fails by half of that number.
pub(super) fn combine(over: Over, places: &[BoundPosition], of_all: usize) -> ClaimVerdict {
    let count = |lies| places.iter().filter(|place| **place == lies).count();
    let (inside, outside, all) = (
        count(BoundPosition::Inside),
        count(BoundPosition::Outside),
        places.len(),
    );
    if all == 0 {
        ClaimVerdict::Untestable
    } else if outside >= over.outside(all.max(of_all)) {
        ClaimVerdict::Fails
    } else if inside >= over.within(all) {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::Undecided
    }
}

/// The verdict of the places of points, and what decides beside them: that the rule is refuted, or that something is not shown without
/// which it does not hold.
pub(super) fn decide(
    over: Over,
    places: &[BoundPosition],
    of_all: usize,
    (refuted, unshown): (Option<String>, Option<String>),
) -> (ClaimVerdict, Option<String>) {
    match combine(over, places, of_all) {
        _ if refuted.is_some() => (ClaimVerdict::Fails, refuted),
        ClaimVerdict::Holds if unshown.is_some() => (ClaimVerdict::Undecided, unshown),
        verdict => (verdict, None),
    }
}
