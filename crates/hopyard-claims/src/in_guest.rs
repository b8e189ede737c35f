//! What this machine's kernel lacks, tried in a guest with another one.
//!
//! ```text
//! guest/PLAN/   a run directory for each plan, in a directory of claims
//! ```
//!
//! Deeds have the same verdict wherever they are done. Figures count where the guest has the machine's own CPUs (KVM); those of an
//! emulated CPU have a shape and no size, so that they are said and not judged.

use std::collections::BTreeMap;

use super::Chosen;
use super::bench::Done;
use super::demand::{Demand, PlanDemand, pairs, part};
use super::lacking::lacking;
use super::rule::{Check, Judge};
use crate::lab;
use crate::model::{Blocks, Cell};
use crate::plan::{self, ExpandError};
use crate::run::guest::protocol::Tried;

/// An emulated CPU shows that a path carries, and which way a figure goes; more blocks would not make it truer.
const EMULATED_BLOCKS: Blocks = Blocks { min: 2, max: 2 };

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
    quick: bool,
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
        if quick || emulated {
            plan.apply_quick_preset();
        }
        if emulated {
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
    let is_lacking =
        |cell: &Cell| can_be_in_guest(&cell.path) && lacking(&cell.path, false).is_some();
    let needed = |cell: &Cell| {
        let premises = checks.iter().filter_map(|check| check.given.as_ref());
        let premises = premises.map(|given| &*given.check);
        let mut asked = checks.iter().copied().chain(premises);
        asked.any(|check| {
            pairs(check, &all).iter().any(|(own, others)| {
                let is_in = *own == cell || others.contains(&cell);
                is_in && (is_lacking(own) || others.iter().any(|other| is_lacking(other)))
            })
        })
    };
    Ok(all.iter().filter(|cell| needed(cell)).cloned().collect())
}

pub(super) fn can_be_in_guest(path: &str) -> bool {
    let needs = |path: &'static lab::Path| path.needs.contains(&lab::paths::Need::GUEST);
    lab::path(path).is_ok_and(|path| !needs(path))
}
