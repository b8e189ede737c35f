//! What this machine's kernel lacks, tried in a guest with another one.
//!
//! ```text
//! guest/PLAN/   a run directory for each plan, in a directory of claims
//! ```
//!
//! Deeds have the same verdict wherever they are done. Figures count where the guest has the machine's own CPUs (KVM); those of an
//! emulated CPU have a shape and no size, so that they are said and not judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bench::{Done, FunctionalCheck};
use super::demand::{Demand, PlanDemand, pairs, part};
use super::evidence;
use super::figure::Gathered;
use super::judge;
use super::rule::{Check, Judge};
use super::{Chosen, Evidence};
use crate::lab;
use crate::model::{Blocks, Cell};
use crate::plan::{self, ExpandError};
use crate::report::claims::quoted;
use crate::run::guest::protocol::Tried;
use crate::store::Run;

/// Where the runs are, in a directory of claims.
pub(super) const DIRECTORY: &str = "guest";
/// An emulated CPU shows that a path carries, and which way a figure goes; more blocks would not make it truer.
const EMULATED_BLOCKS: Blocks = Blocks { min: 2, max: 2 };

/// What a guest said, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// The release of its kernel.
    pub release: String,
    /// Was its CPU emulated?
    pub emulated: bool,
    /// Deeds by name.
    #[serde(default)]
    pub done: BTreeMap<String, Done>,
    /// Why a plan could not be run there.
    #[serde(default)]
    pub not_run: BTreeMap<String, String>,
}

impl Guest {
    /// In words: `a guest with Linux 6.1.0, emulated`.
    fn described(&self) -> String {
        let how = if self.emulated { ", emulated" } else { "" };
        format!("a guest with Linux {}{how}", self.release)
    }

    /// Takes note of what came of deeds.
    pub fn add(&mut self, deeds: BTreeMap<String, Tried>) {
        let done = |tried: Tried| match tried.passed {
            Some(passed) => Ok(FunctionalCheck {
                passed,
                seen: tried.seen,
            }),
            None => Err(tried.seen),
        };
        let deeds = deeds.into_iter().map(|(name, tried)| (name, done(tried)));
        self.done.extend(deeds);
    }
}

/// A guest with its runs.
#[derive(Debug, Default)]
pub struct Beside {
    pub guest: Guest,
    pub runs: Vec<Run>,
}

/// Tries a deed on behalf of a host: what a guest says of it.
#[must_use]
pub fn try_out(name: &str) -> Tried {
    match super::bench::carry_out(name) {
        Ok(check) => Tried {
            passed: Some(check.passed),
            seen: check.seen,
        },
        Err(why) => Tried {
            passed: None,
            seen: why,
        },
    }
}

/// What a guest is to do of what claims need: cells of paths that cannot be built here, or that do not count here, with those that they
/// are compared with; and deeds that could not be done here. `emulated` guests get the least that shows anything.
///
/// # Errors
/// A plan that comes along is wrong, which a test rules out.
pub fn demand_of_guest(
    chosen: &[Chosen<'_>],
    done: &BTreeMap<String, Done>,
    emulated: bool,
) -> Result<Demand, plan::FileError> {
    let mut demand = Demand::default();
    let mut by_plan: BTreeMap<&str, Vec<&Check>> = BTreeMap::new();
    for one in chosen {
        for check in one.claim.measured() {
            match &check.judge {
                Judge::Does { does } if matches!(done.get(does), Some(Err(_))) => {
                    demand.deeds.insert(does.clone());
                }
                Judge::Does { .. } | Judge::Bench { .. } | Judge::Missing { .. } => {}
                _ => by_plan.entry(one.plan_of(check)).or_default().push(check),
            }
        }
    }
    for (name, checks) in by_plan {
        let mut plan = plan::find(name)?;
        let Ok(cells) = cells(&plan, &checks, emulated) else {
            continue;
        };
        if cells.is_empty() {
            continue;
        }
        plan.parts = cells.iter().map(part).collect();
        if emulated {
            plan.apply_quick_preset();
            plan.blocks = EMULATED_BLOCKS;
        }
        demand.plans.push(PlanDemand {
            plan,
            profile: false,
            claims: 0,
            left_out: Vec::new(),
        });
    }
    Ok(demand)
}

/// Cells of pairs in which a path is that this kernel cannot have. Of an emulated guest, with the fewest flows alone.
fn cells(plan: &plan::Plan, checks: &[&Check], emulated: bool) -> Result<Vec<Cell>, ExpandError> {
    let mut all = plan::expand(plan)?.cells;
    if emulated {
        let least = all.iter().map(|cell| cell.axes.flows).min();
        all.retain(|cell| Some(cell.axes.flows) == least);
    }
    // A guest has no guests, nor what other endpoints stand on.
    let is_lacking = |cell: &Cell| {
        can_be_in_guest(&cell.path) && super::demand::lacking(&cell.path, false).is_some()
    };
    let needed = |cell: &Cell| {
        checks.iter().any(|check| {
            pairs(check, &all).iter().any(|(own, others)| {
                let is_in = *own == cell || others.contains(&cell);
                is_in && (is_lacking(own) || others.iter().any(|other| is_lacking(other)))
            })
        })
    };
    Ok(all.iter().filter(|cell| needed(cell)).cloned().collect())
}

pub(super) fn can_be_in_guest(path: &str) -> bool {
    let needs = |path: &'static dyn lab::Path| path.needs().contains(&lab::paths::Need::GUEST);
    lab::path(path).is_ok_and(|path| !needs(path))
}

/// The deed as it was done here, or else in the guest.
pub(super) fn deed(name: &str, evidence: &Evidence) -> Option<Done> {
    let here = evidence.done.get(name);
    let guest = evidence.beside.as_ref().map(|beside| &beside.guest);
    let there = guest.and_then(|guest| Some((guest, guest.done.get(name)?)));
    match (here, there) {
        (None | Some(Err(_)), Some((guest, Ok(done)))) => Some(Ok(FunctionalCheck {
            passed: done.passed,
            seen: format!("{} (in {})", done.seen, guest.described()),
        })),
        (Some(Err(here)), Some((guest, Err(there)))) if here != there => {
            Some(Err(format!("{here}; in {}: {there}", guest.described())))
        }
        (here, _) => here.cloned(),
    }
}

/// Adds to what was gathered here what the guest has of paths that this machine lacks.
pub(super) fn add(check: &Check, plan: &str, evidence: &Evidence, gathered: &mut Gathered) {
    let Some(beside) = &evidence.beside else {
        return;
    };
    let Some(run) = beside.runs.iter().find(|run| run.header.plan == plan) else {
        if let Some(why) = beside.guest.not_run.get(plan) {
            gathered.note(format!("in {}: {why}", beside.guest.described()));
        }
        return;
    };
    let here = evidence.of_plan(plan).ok();
    let is_here = |path: &str| {
        here.is_some_and(|run| run.header.cells.iter().any(|one| one.cell.path == path))
    };
    for part in check.of_paths(&|path| !is_here(path)) {
        let there = judge::of_run(&part, plan, run);
        if there.points.is_empty() {
            let why = there.untested.join("; ");
            gathered.note(format!("in {}: {why}", beside.guest.described()));
        } else if run.header.environment.is_emulated() {
            gathered.note(shape(&beside.guest, &there));
        } else {
            let lacking = match evidence.of_plan(plan) {
                Ok(here) => evidence::left_out(here, &judge::named_paths(check)),
                Err(why) => vec![why],
            };
            gathered.untested.retain(|why| !lacking.contains(why));
            gathered.take(there, &format!("in {}", beside.guest.described()));
        }
    }
}

/// What an emulated guest has to say: `in a guest with Linux 6.1.0, emulated, whose figures have a shape and no size: goodput is …`.
fn shape(guest: &Guest, there: &Gathered) -> String {
    let each = there.points.iter().map(|point| {
        let measured = point.figure.interval(there.confidence);
        let said = measured.map_or_else(
            || "measured once".to_owned(),
            |measured| quoted(there.quantity.as_deref(), &measured),
        );
        match point.at.as_str() {
            "" => said,
            at => format!("{said} {at}"),
        }
    });
    format!(
        "in {}, whose figures have a shape and no size: {} {}",
        guest.described(),
        there.what,
        each.collect::<Vec<_>>().join(", ")
    )
}
