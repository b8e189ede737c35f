//! Every claim's own rule, as its file has it, on evidence made for it: holds, fails and undecided, with the figures that the
//! evidence was made for.

use super::oracle::{self, Part};
use super::synthetic::{Aim, Aimed, World};
use super::*;
use crate::model::{CheckReport, ClaimReport};
use crate::rule::Over;

/// A claim with the parts of its rule.
struct Ruled<'a> {
    chosen: Chosen<'a>,
    parts: Vec<Part<'a>>,
}

impl Ruled<'_> {
    fn id(&self) -> &str {
        &self.chosen.claim.id
    }

    /// The claim judged by evidence in which one part lies like that from a point on, and all others are inside.
    fn judged(&self, part: usize, aim: Aim, from: usize) -> ClaimReport {
        let mut world = World::default();
        for (at, one) in self.parts.iter().enumerate() {
            let (aim, from) = if at == part {
                (aim, from)
            } else {
                (Aim::Inside, 0)
            };
            world.aim(Aimed {
                part: one,
                aim,
                from,
            });
        }
        let figures: Vec<_> = self.parts.iter().map(|part| world.figures(part)).collect();
        let report = judge(self.chosen, &world.evidence());
        for (at, found) in report.checks.iter().enumerate() {
            if aim != Aim::Across && self.parts[at].planned.is_some() {
                self.has_figures(found, &figures[at], at);
            }
        }
        report
    }

    /// One point for each figure, in order, with its value.
    fn has_figures(&self, found: &CheckReport, figures: &[Option<f64>], part: usize) {
        let id = self.id();
        let points = &found.points;
        assert_eq!(
            points.len(),
            figures.len(),
            "{id}: {points:#?}, not {figures:?}"
        );
        // What is counted in whole seconds or packets.
        let what = self.parts[part].text["quantity"].as_str();
        let is_whole = matches!(what, Some("settling_s" | "run_length_p50_packets"));
        let tolerance = if is_whole { 0.05 } else { 0.002 };
        for (point, figure) in points.iter().zip(figures) {
            let Some(figure) = figure else { continue };
            let value = point.measured.value;
            assert!(
                (value - figure).abs() <= tolerance * figure.abs().max(1e-3),
                "{id} at {}: {value}, not {figure}",
                point.at
            );
        }
    }

    /// The first, middle and last point of a part.
    fn places(&self, part: usize) -> Vec<usize> {
        let last = self.parts[part].points.len().saturating_sub(1);
        let mut places = vec![0, last.div_ceil(2), last];
        places.dedup();
        places
    }

    /// Holds where all parts do, fails where any one does, is undecided where any one is.
    fn follows_its_rule(&self) {
        let id = self.id();
        let claim = self.judged(0, Aim::Inside, 0);
        let is_missing = |part: &Part<'_>| matches!(part.check.judge, Judge::Missing { .. });
        let withheld = |check: &Check| {
            check
                .shown_by_no_figure(ClaimVerdict::Holds, is_local(check))
                .is_some()
        };
        let is_unshown = |part: &Part<'_>| is_missing(part) || withheld(part.check);
        if self.parts.iter().any(is_unshown) {
            assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{id}: {claim:#?}");
            let is_rest = self.parts.iter().any(|part| !is_unshown(part));
            let words = "what can be tested of it holds";
            assert_eq!(claim.sentence.contains(words), is_rest, "{claim:#?}");
        } else {
            assert_eq!(claim.verdict, ClaimVerdict::Holds, "{id}: {claim:#?}");
            assert!(claim.sentence.starts_with(&format!("{id} holds: ")));
        }
        for (found, part) in claim.checks.iter().zip(&self.parts) {
            self.has_names(found, part);
            self.has_what_was_published(found, part);
        }
        for part in (0..self.parts.len()).filter(|part| !is_missing(&self.parts[*part])) {
            for from in self.places(part) {
                self.hangs_on(part, Aim::Outside, from);
                // What is done or not is never undecided.
                if !matches!(self.parts[part].check.judge, Judge::Does { .. }) {
                    self.hangs_on(part, Aim::Across, from);
                }
            }
        }
    }

    /// A single point outside, or across a bound, decides; where most decide, half of them do.
    fn hangs_on(&self, part: usize, aim: Aim, from: usize) {
        let id = self.id();
        let check = self.parts[part].check;
        let (verdict, lies) = match aim {
            // What is weaker than the rule cannot refute it. These runs are of one machine.
            Aim::Outside
                if check
                    .shown_by_no_figure(ClaimVerdict::Fails, is_local(check))
                    .is_some() =>
            {
                (ClaimVerdict::Untestable, BoundPosition::Outside)
            }
            Aim::Outside => (ClaimVerdict::Fails, BoundPosition::Outside),
            _ => (ClaimVerdict::Undecided, BoundPosition::Across),
        };
        let claim = self.judged(part, aim, from);
        assert_eq!(
            claim.verdict, verdict,
            "{id}, part {part} {aim:?} from {from}: {claim:#?}"
        );
        let found = &claim.checks[part];
        assert_eq!(found.verdict, verdict, "{id}: {found:#?}");
        if let Some(point) = found.points.get(from) {
            assert_eq!(point.lies, lies, "{id} from {from}: {found:#?}");
        }
        let lying = found
            .points
            .iter()
            .filter(|point| point.lies == lies)
            .count();
        let many = match check.over {
            Over::Every => 1,
            Over::Most => found.points.len().div_ceil(2),
        };
        if !found.points.is_empty() {
            assert_eq!(lying, many, "{id} from {from}: {found:#?}");
        }
        // Of a bound that is 0 an effect is no share.
        let bounds = [check.at_least, check.at_most];
        let has_effect = verdict == ClaimVerdict::Undecided && !bounds.contains(&Some(0.0));
        assert_eq!(
            found.smallest_effect.is_some(),
            has_effect,
            "{id}: {found:#?}"
        );
    }

    /// Every point is called by all that sets it apart, and by nothing else.
    fn has_names(&self, found: &CheckReport, part: &Part<'_>) {
        let Some(planned) = part
            .planned
            .filter(|_| !matches!(part.check.judge, Judge::Peak { .. }))
        else {
            return;
        };
        let words = oracle::called(&part.text, &part.points, &planned.cells);
        for (point, words) in found.points.iter().zip(&words) {
            let mut own: Vec<&str> = point.at.split(" · ").filter(|w| !w.is_empty()).collect();
            let mut wanted: Vec<&str> = words.iter().map(String::as_str).collect();
            own.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(own, wanted, "{}: {}", self.id(), point.at);
        }
        let names: std::collections::BTreeSet<&str> =
            found.points.iter().map(|p| p.at.as_str()).collect();
        assert_eq!(names.len(), found.points.len(), "{}: {names:?}", self.id());
    }

    /// The figures of the rule, or of the plan, are beside the points that they are of.
    fn has_what_was_published(&self, found: &CheckReport, part: &Part<'_>) {
        for (point, members) in found.points.iter().zip(&part.points) {
            let right = super::published::of(part, members);
            let own = point.published;
            let same = match (own, right) {
                (Some(own), Some(right)) => (own - right).abs() <= 1e-9 * right.abs(),
                (own, right) => own == right,
            };
            assert!(
                same,
                "{} at {}: {own:?}, not {right:?}",
                self.id(),
                point.at
            );
        }
    }
}

/// Do two parts ask the same quantity of the same cells for two things? Then no evidence can be made of them one by one;
/// of PL8, `shapes` has it by hand.
fn entangled(parts: &[Part<'_>]) -> bool {
    let own = |part: &Part<'_>| -> Vec<usize> {
        let members = part.points.iter().flatten();
        members.map(|member| member[0]).collect()
    };
    let quantity = |part: &Part<'_>| part.text.get("quantity").cloned();
    let meet = |one: &Part<'_>, other: &Part<'_>| {
        let theirs = own(other);
        quantity(one) == quantity(other) && own(one).iter().any(|cell| theirs.contains(cell))
    };
    let rest = |at: usize| parts[at + 1..].iter();
    parts
        .iter()
        .enumerate()
        .any(|(at, one)| rest(at).any(|other| meet(one, other)))
}

fn chosen<'a>(report: &'a Report, claim: &'a Claim) -> Chosen<'a> {
    Chosen {
        report,
        claim,
        by_id: true,
    }
}

fn of_report(name: &str) {
    let report = reports()
        .unwrap()
        .iter()
        .find(|r| r.report == name)
        .unwrap();
    let with_checks = report
        .claims
        .iter()
        .filter(|claim| !claim.checks.is_empty());
    for claim in with_checks {
        let parts = Part::all(chosen(report, claim));
        if !entangled(&parts) {
            let chosen = chosen(report, claim);
            Ruled { chosen, parts }.follows_its_rule();
            continue;
        }
        for part in parts {
            let alone = Claim {
                checks: vec![part.check.clone()],
                ..claim.clone()
            };
            let chosen = chosen(report, &alone);
            let parts = vec![Part::of(chosen, &alone.checks[0], part.text)];
            Ruled { chosen, parts }.follows_its_rule();
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
    assert_eq!(without, ["NS9"]);
}

/// Is it about the CPU time of one end?
fn is_local(check: &Check) -> bool {
    check.of_cells().is_some_and(|(what, _)| what.is_local())
}
