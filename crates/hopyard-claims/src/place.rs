//! Where figures lie to the bounds of a part of a rule, and what several places come to.

use super::bounds::Bounds;
use super::evidence::Evidence;
use super::figure::{Figure, Gathered, Point};
use super::gather::gather;
use super::rule::{Check, Judge, Over};
use crate::model::{BoundPosition, ClaimVerdict, FOR_A_VERDICT};
use crate::stats::Estimate;

/// Confidence of what is not measured in a run.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The figures of a part.
pub(super) fn of_check(check: &Check, plan: &str, evidence: &Evidence) -> Gathered {
    match &check.judge {
        Judge::Bench { bench } => of_bench(bench, evidence),
        Judge::Missing { missing } => Gathered::untested(missing.clone()),
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
    // Too few blocks for any verdict (docs/method.md, "Statistics").
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
