//! Every claim's own rule, as its file has it, on evidence made for it: holds, fails and undecided.

use super::synthetic::{Aim, World};
use super::*;
use crate::model::ClaimReport;

/// A claim judged by evidence in which its parts lie like that.
fn with(chosen: Chosen<'_>, aims: &[Aim]) -> ClaimReport {
    let mut world = World::default();
    for (check, aim) in chosen.claim.checks.iter().zip(aims) {
        world.aim(chosen, check, *aim);
    }
    judge(chosen, &world.evidence())
}

/// A claim with nothing but one of its parts.
fn alone(claim: &Claim, check: &Check) -> Claim {
    Claim {
        checks: vec![check.clone()],
        ..claim.clone()
    }
}

/// Do two parts ask the same quantity of the same cells for two things? Then no evidence can be made of them one by
/// one: `shapes` has it by hand.
fn entangled(claim: &Claim) -> bool {
    let of = |check: &Check| check.of_cells().map(|(what, _)| format!("{what:?}"));
    let is_curve = |check: &Check| matches!(check.judge, Judge::Curve { .. });
    let mut curves = claim.checks.iter().filter(|check| is_curve(check));
    curves.any(|curve| {
        let mut others = claim.checks.iter().filter(|check| !is_curve(check));
        others.any(|other| of(other) == of(curve))
    })
}

/// Holds where all parts do, fails where any one does, is undecided where any one is.
fn follows_its_rule(chosen: Chosen<'_>) {
    let checks = &chosen.claim.checks;
    let id = &chosen.claim.id;
    let mut aims = vec![Aim::Inside; checks.len()];
    let claim = with(chosen, &aims);
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{id}: {claim:#?}");
    assert!(claim.sentence.starts_with(&format!("{id} holds: ")));
    for (part, check) in checks.iter().enumerate() {
        for (aim, verdict) in [
            (Aim::Outside, ClaimVerdict::Fails),
            (Aim::Across, ClaimVerdict::Undecided),
        ] {
            // What is done or not is never undecided.
            if matches!(check.judge, Judge::Does { .. }) && aim == Aim::Across {
                continue;
            }
            aims[part] = aim;
            let claim = with(chosen, &aims);
            assert_eq!(
                claim.verdict, verdict,
                "{id}, part {part} {aim:?}: {claim:#?}"
            );
            let part = &claim.checks[part];
            assert_eq!(part.verdict, verdict, "{id}: {part:#?}");
            // Of a bound that is 0 an effect is no share.
            let has_effect = verdict == ClaimVerdict::Undecided && check.at_least != Some(0.0);
            assert_eq!(
                part.smallest_effect.is_some(),
                has_effect,
                "{id}: {part:#?}"
            );
        }
        aims[part] = Aim::Inside;
    }
}

fn of_report(name: &str) {
    let report = reports()
        .unwrap()
        .iter()
        .find(|r| r.report == name)
        .unwrap();
    let judged = |claim: &Claim| {
        follows_its_rule(Chosen {
            report,
            claim,
            by_id: true,
        });
    };
    for claim in report
        .claims
        .iter()
        .filter(|claim| !claim.checks.is_empty())
    {
        if entangled(claim) {
            for check in &claim.checks {
                judged(&alone(claim, check));
            }
        } else {
            judged(claim);
        }
    }
}

#[test]
fn rules_of_namespaces_and_macvlan() {
    of_report("netns-macvlan-2007");
}

#[test]
fn rules_of_multi_queue_taps() {
    of_report("multiqueue-tap-2011");
}

#[test]
fn rules_of_connected_namespaces() {
    of_report("namespace-switching-2014");
}

#[test]
fn rules_of_direct_switching() {
    of_report("netback-direct-2006");
}

#[test]
fn rules_of_containers() {
    of_report("planetlab-containers-2007");
}

/// What has no part that could be judged says what is missing, whatever there is.
#[test]
fn what_has_no_check_is_never_judged() {
    let mut without = Vec::new();
    for report in reports().unwrap() {
        for claim in report.claims.iter().filter(|claim| claim.checks.is_empty()) {
            let chosen = Chosen {
                report,
                claim,
                by_id: true,
            };
            let judged = judge(chosen, &Evidence::default());
            assert_eq!(judged.verdict, ClaimVerdict::Untestable);
            assert!(judged.sentence.contains(claim.missing.as_deref().unwrap()));
            without.push(claim.id.as_str());
        }
    }
    assert_eq!(without, ["MQ11", "MQ12", "NS9"]);
}
