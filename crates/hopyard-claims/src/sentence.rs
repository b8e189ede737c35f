//! A claim in a sentence that can be quoted.

use super::bounds::Bounds;
use super::label::at;
use crate::model::{BoundPosition, CheckReport, ClaimReport, ClaimVerdict, PointReport, distinct};
use crate::report::claims::{bounds, effect, figure, interval};

/// The verdict and what it rests on, what it may become, and how further grades are judged.
pub(super) fn sentence(claim: &ClaimReport, missing: Option<&str>) -> String {
    let mut text = of_verdict(claim, missing);
    let lacks = claim.checks.iter().any(|check| !check.untested.is_empty());
    if claim.verdict == ClaimVerdict::Undecided && lacks {
        text.push_str(" It can only fail here, since not all of it can be tested.");
    }
    let graded = claim
        .checks
        .iter()
        .filter_map(|check| Some((check, check.grade.as_ref()?)));
    for (check, grade) in graded {
        let rule = CheckReport {
            at_least: grade.at_least,
            at_most: grade.at_most,
            beyond: false,
            ..check.clone()
        };
        let (called, verdict) = (&grade.called, grade.verdict.words());
        text.push_str(&format!(" {called}, {}: {verdict}.", bounds(&rule)));
    }
    text
}

fn of_verdict(claim: &ClaimReport, missing: Option<&str>) -> String {
    let words = claim.verdict.words();
    let id = &claim.id;
    if claim.verdict == ClaimVerdict::Untestable {
        return format!("{id} {words}: {}.", lacking(claim, missing));
    }
    let decides = |check: &&CheckReport| check.verdict == claim.verdict;
    let Some(check) = claim.checks.iter().find(decides) else {
        return format!("{id} {words}.");
    };
    if check.seen.is_some() {
        let seen = claim
            .checks
            .iter()
            .filter(decides)
            .filter_map(|c| c.seen.as_deref());
        return format!("{id} {words}: {}.", seen.collect::<Vec<_>>().join("; "));
    }
    let Some(point) = check.deciding.and_then(|at| check.points.get(at)) else {
        return format!("{id} {words}.");
    };
    format!(
        "{id} {words}: {}{}.",
        measured(check, point),
        rest(claim, check)
    )
}

/// What cannot be tested, and that the rest of the rule holds where there is a rest.
fn lacking(claim: &ClaimReport, missing: Option<&str>) -> String {
    let untested = claim.checks.iter().flat_map(|check| &check.untested);
    let each = distinct(missing.into_iter().chain(untested.map(String::as_str)));
    let mut text = match each.as_slice() {
        [] => "it has no check".to_owned(),
        each => each.join("; "),
    };
    let is_shown = |check: &CheckReport| check.verdict == ClaimVerdict::Holds;
    if claim.checks.iter().any(is_shown) {
        text.push_str("; what can be tested of it holds");
    }
    text
}

/// `goodput, veth-route / native, is 0.984 (0.97 to 1.0) in tcp_rr, within 0.95 to 1.05, published 0.97`.
fn measured(check: &CheckReport, point: &PointReport) -> String {
    let mut text = format!(
        "{} is {} ({})",
        check.what,
        figure(check, point.measured.value),
        interval(check, &point.measured)
    );
    text.push_str(&at(&point.at));
    let rule = bounds(check);
    text.push_str(&match check.verdict {
        ClaimVerdict::Holds => format!(", as the rule has it: {rule}"),
        ClaimVerdict::Fails => format!(" where the rule asks for {rule}"),
        // One of several figures lies outside by chance more often than one alone.
        _ if Bounds::of_report(check).lies(&point.measured) == BoundPosition::Outside => format!(
            ", outside what the rule asks for, {rule}, but not as surely as one of several figures has to be"
        ),
        _ => format!(", across what the rule asks for, {rule}"),
    });
    if let Some(published) = point.published {
        text.push_str(&format!("; published {}", figure(check, published)));
    }
    text
}

/// How many of the points agree, what would have shown, and what other parts there are.
fn rest(claim: &ClaimReport, check: &CheckReport) -> String {
    let mut text = String::new();
    let all = check.points.len();
    let is = |lies| check.points.iter().filter(|p| p.lies == lies).count();
    if all > 1 {
        text.push_str(&match check.verdict {
            ClaimVerdict::Holds if is(BoundPosition::Inside) == all => {
                format!("; the nearest to it of {all}")
            }
            ClaimVerdict::Holds => format!("; so at {} of {all}", is(BoundPosition::Inside)),
            ClaimVerdict::Fails => format!("; outside at {} of {all}", is(BoundPosition::Outside)),
            _ => format!(
                "; {} of {all} are within, {} outside",
                is(BoundPosition::Inside),
                is(BoundPosition::Outside)
            ),
        });
    }
    if let Some(smallest) = check.smallest_effect {
        let inside = check
            .deciding
            .and_then(|at| check.points.get(at))
            .is_some_and(|point| Bounds::of_report(check).margin(point.measured.value) >= 0.0);
        let side = if inside { "within" } else { "beyond" };
        text.push_str(&format!(
            "; {} {side} a bound would have shown four times out of five",
            effect(smallest)
        ));
    }
    let others = claim
        .checks
        .iter()
        .filter(|c| c.verdict == claim.verdict)
        .count()
        - 1;
    match (claim.verdict, others) {
        (_, 0) => {}
        (ClaimVerdict::Holds, n) => text.push_str(&format!(
            ", and {n} further part{} of the rule hold{}",
            if n == 1 { "" } else { "s" },
            if n == 1 { "s" } else { "" }
        )),
        (_, n) => text.push_str(&format!(
            ", and so for {n} further part{} of the rule",
            if n == 1 { "" } else { "s" }
        )),
    }
    text
}
