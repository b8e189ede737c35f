//! Which cells of which plans claims need: claims that need the same cells share them.

use std::collections::{BTreeMap, BTreeSet};

use super::Chosen;
use super::lacking::{few_cpus, lacking};
use super::rule::{Check, Judge};
use super::select::Selection;
use super::what::What;
use crate::lab;
use crate::model::{AXES, Cell};
use crate::plan::{self, ExpandError, Part, Paths, Plan};

/// What claims need of one plan.
#[derive(Debug, Clone)]
pub struct PlanDemand {
    /// The plan with nothing but the cells needed.
    pub plan: Plan,
    /// Is a profile needed of them?
    pub profile: bool,
    /// Claims that are judged by it on this machine.
    pub claims: u32,
    /// Paths that this host cannot build, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// What claims need.
#[derive(Debug, Default)]
pub struct Demand {
    pub plans: Vec<PlanDemand>,
    /// Plans of which nothing can be built, with the reason.
    pub not_run: BTreeMap<String, String>,
    /// Deeds by name.
    pub deeds: BTreeSet<String>,
    /// Benches by name.
    pub benches: BTreeSet<String>,
}

/// A check that is about cells of a plan, with its claim.
pub(super) type Asked<'a> = (Chosen<'a>, &'a Check);

/// What decides whether a check can be tested.
pub(super) struct Host<'a> {
    pub(super) cpus: u32,
    /// Why a path cannot be built.
    pub(super) lacking: &'a dyn Fn(&str) -> Option<String>,
}

/// The cells that a check needs among those of its plan: each with what it is compared with.
pub(super) fn pairs<'a>(check: &Check, cells: &'a [Cell]) -> Vec<(&'a Cell, Vec<&'a Cell>)> {
    let Some((_, selection)) = check.of_cells() else {
        return Vec::new();
    };
    let bases = check.bases();
    let partners = |cell: &Cell| -> Vec<&'a Cell> {
        let of = |base: &crate::model::Base<'_>| cells.iter().find(|other| base.is_of(cell, other));
        bases.iter().filter_map(of).collect()
    };
    let own = cells.iter().filter(|cell| selection.has(cell));
    own.map(|cell| {
        let others = partners(cell).into_iter().filter(|other| *other != cell);
        let mut others: Vec<&Cell> = others.collect();
        // What the base is where the two are told apart by the rest.
        if let (Judge::Corrected { .. }, [_, less]) = (&check.judge, others.as_slice()) {
            let base_less = partners(less).into_iter().find(|other| other != less);
            others.extend(base_less);
        }
        (cell, others)
    })
    .filter(|(_, others): &(&Cell, Vec<&Cell>)| match check.judge {
        Judge::Level { .. } | Judge::Peak { .. } | Judge::Curve { to: None, .. } => true,
        Judge::Share { .. } => others.len() == 2,
        Judge::Corrected { .. } => others.len() == 3,
        _ => !others.is_empty(),
    })
    .collect()
}

/// What these claims need; `quick` leaves out what a first look can do without. In a guest of another
/// kernel (`in_guest`) Open vSwitch may forward in the kernel though it does not here.
///
/// # Errors
/// A plan that comes along is wrong, which a test rules out.
pub fn demand(
    chosen: &[Chosen<'_>],
    quick: bool,
    in_guest: bool,
) -> Result<Demand, plan::FileError> {
    let lacking = |path: &str| lacking(path, in_guest);
    let host = Host {
        cpus: if in_guest { u32::MAX } else { own_cpus() },
        lacking: &lacking,
    };
    let (mut demand, by_plan) = sort_by_plan(chosen, quick, &host);
    for (name, checks) in by_plan {
        let mut plan = plan::find(name)?;
        let left_out = plan.leave_out(lacking);
        let kept = checks
            .iter()
            .find_map(|(one, _)| one.report.quick.get(name));
        match cells(&plan, &checks, kept.filter(|_| quick)) {
            Ok(cells) if cells.is_empty() => {
                let why = left_out.iter().map(|(name, why)| format!("{name}: {why}"));
                demand.not_run.insert(name.to_owned(), join(why));
            }
            Ok(cells) => {
                plan.parts = cells.iter().map(part).collect();
                if quick {
                    plan.apply_quick_preset();
                }
                demand.plans.push(PlanDemand {
                    plan,
                    profile: checks
                        .iter()
                        .any(|(_, check)| needs_profile(check) && !pairs(check, &cells).is_empty()),
                    claims: count_claims(&checks),
                    left_out,
                });
            }
            Err(why) => {
                demand.not_run.insert(name.to_owned(), crate::chain(&why));
            }
        }
    }
    Ok(demand)
}

/// What claims need: the checks that are about cells, by plan; the rest in the demand. Checks about more CPUs than there are need no
/// cells. A plan that only such checks need is not run, and the demand says why, with the paths that are missing besides.
pub(super) fn sort_by_plan<'a>(
    chosen: &[Chosen<'a>],
    quick: bool,
    host: &Host<'_>,
) -> (Demand, BTreeMap<&'a str, Vec<Asked<'a>>>) {
    let mut demand = Demand::default();
    let mut by_plan: BTreeMap<&str, Vec<Asked<'a>>> = BTreeMap::new();
    let mut too_large: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (one, check) in chosen
        .iter()
        .flat_map(|one| one.claim.measured().map(move |check| (one, check)))
    {
        match &check.judge {
            Judge::Does { does } => {
                demand.deeds.insert(does.clone());
                continue;
            }
            Judge::Bench { bench } => {
                demand.benches.insert(bench.clone());
                continue;
            }
            Judge::Missing { .. } => continue,
            _ => {}
        }
        let plan = one.plan_of(check);
        if let Some(why) = put_off(one, plan, quick) {
            demand.not_run.entry(plan.to_owned()).or_insert(why);
            continue;
        }
        match few_cpus(check.cpus, host.cpus, || missing_paths(check, host)) {
            None => by_plan.entry(plan).or_default().push((*one, check)),
            Some(mut why) => {
                let known = too_large.entry(plan).or_default();
                why.retain(|one| !known.contains(one));
                known.extend(why);
            }
        }
    }
    for (plan, why) in too_large {
        if !by_plan.contains_key(plan) {
            let not_run = demand.not_run.entry(plan.to_owned());
            not_run.or_insert_with(|| join(why.into_iter()));
        }
    }
    (demand, by_plan)
}

/// The paths that a check names and this host cannot build, with the reason.
fn missing_paths(check: &Check, host: &Host<'_>) -> Vec<String> {
    let named = check.named_paths().into_iter();
    named
        .filter_map(|path| Some(format!("{path}: {}", (host.lacking)(&path)?)))
        .collect()
}

/// CPUs of this machine; where that is not known, as many as anything takes.
fn own_cpus() -> u32 {
    let online = hopyard_net::cpu::online_cpus();
    online.map_or(u32::MAX, |all| u32::try_from(all.len()).unwrap_or(u32::MAX))
}

/// Why a plan is not run now, though it could be.
pub(super) fn put_off(one: &Chosen<'_>, plan: &str, quick: bool) -> Option<String> {
    let among = |plans: &[String]| plans.iter().any(|name| name == plan);
    let takes = one.report.by_id_only.get(plan);
    if let Some(takes) = takes.filter(|_| quick || !one.by_id) {
        Some(format!(
            "plan {plan} takes {takes}, so it runs only for claims that are named (`hopyard claims ID`)"
        ))
    } else if among(&one.report.slow) && quick {
        Some(format!(
            "plan {plan} takes too long for a first look: `hopyard claims ID` runs it"
        ))
    } else {
        None
    }
}

/// How many claims the checks are of.
pub(super) fn count_claims(checks: &[Asked<'_>]) -> u32 {
    let ids = checks.iter().map(|(one, _)| one.claim.id.as_str());
    let ids: BTreeSet<&str> = ids.collect();
    u32::try_from(ids.len()).unwrap_or(u32::MAX)
}

fn join(sentences: impl Iterator<Item = String>) -> String {
    sentences.collect::<Vec<_>>().join("; ")
}

pub(super) fn needs_profile(check: &Check) -> bool {
    let of_profile = |what: &What| {
        matches!(
            what,
            What::ProfileShare(_) | What::CostShare(_) | What::SoftirqRatio
        )
    };
    let own = check.of_cells().map(|(what, _)| what);
    own.into_iter().chain(check.of_base()).any(of_profile)
}

/// The cells that checks need, in the order of the plan.
fn cells(
    plan: &Plan,
    checks: &[Asked<'_>],
    kept: Option<&Selection>,
) -> Result<Vec<Cell>, ExpandError> {
    if plan.parts.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = plan::expand(plan)?.cells;
    all.retain(|cell| kept.is_none_or(|kept| kept.allows(cell)));
    let needs = |check: &Check, cell: &Cell| {
        let mut pairs = pairs(check, &all).into_iter();
        pairs.any(|(own, others)| own == cell || others.contains(&cell))
    };
    let needed = |cell: &Cell| {
        checks.iter().any(|(_, check)| {
            let given = check.given.as_ref().map(|given| &*given.check);
            needs(check, cell) || given.is_some_and(|given| needs(given, cell))
        })
    };
    Ok(all.iter().filter(|cell| needed(cell)).cloned().collect())
}

/// A part that is one cell.
pub(super) fn part(cell: &Cell) -> Part {
    // Ends without devices have some axes at no value, which would be read as their default.
    let has =
        |axis: &crate::model::Axis| lab::path(&cell.path).is_ok_and(|path| path.has_axis(axis));
    let set = |axis: &&crate::model::Axis| {
        let shown = axis.value(cell.load, &cell.axes)?;
        Some((axis.name.to_owned(), vec![shown]))
    };
    Part {
        paths: Paths::Named(vec![cell.path.clone()]),
        peers: vec![cell.peer],
        loads: vec![cell.load],
        set: AXES
            .iter()
            .filter(|axis| has(axis))
            .filter_map(|axis| set(&axis))
            .collect(),
    }
}
