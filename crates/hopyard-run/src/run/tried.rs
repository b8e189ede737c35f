//! Trials before a run: each different lab, and the generator alone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::Error;
use crate::lab::{self, Lab, LabKey};
use crate::measure::{self, Sampler};
use crate::model::{Axes, Cell, FilterChain, LoadKind};
use crate::signals;

/// What the generator's ceiling depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LoopKey {
    load: LoadKind,
    axes: Axes,
}

impl LoopKey {
    pub(super) fn of(cell: &Cell) -> Self {
        Self {
            load: cell.load,
            axes: cell.axes.of_message(),
        }
    }
}

/// What is tried once: a lab, and with rules of the user each load in it, because they may stop one load and not
/// another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TrialKey {
    lab: LabKey,
    load: Option<LoadKind>,
}

impl TrialKey {
    pub(super) fn of(cell: &Cell) -> Self {
        let has_rules = cell
            .axes
            .ruleset
            .as_ref()
            .is_some_and(|rules| rules.name().is_some());
        Self {
            lab: LabKey::of(cell),
            load: has_rules.then_some(cell.load),
        }
    }
}

/// Results of the trials.
#[derive(Debug, Default)]
pub(super) struct Tried {
    /// Labs that cannot be built here, with the reason.
    pub(super) missing: HashMap<TrialKey, String>,
    /// Which chains of the user's rules saw the traffic, for labs with such rules.
    pub(super) chains: HashMap<TrialKey, Vec<FilterChain>>,
}

/// Builds each different lab once.
pub(super) fn try_labs(sampler: &Sampler, cells: &[Cell]) -> Result<Tried, Error> {
    let cpus = hopyard_net::cpu::current_affinity().map_err(measure::Error::from)?;
    let mut known = HashSet::new();
    let mut tried = Tried::default();
    for cell in cells {
        if signals::interrupted() {
            return Err(measure::Error::Interrupted.into());
        }
        let key = TrialKey::of(cell);
        if !known.insert(key.clone()) {
            continue;
        }
        match unless_interrupted(try_lab(sampler, cell, &cpus))? {
            Outcome::Missing(why) => _ = tried.missing.insert(key, why),
            Outcome::Seen(chains) => _ = tried.chains.insert(key, chains),
            Outcome::Built => {}
        }
    }
    Ok(tried)
}

/// The result of one trial.
enum Outcome {
    Built,
    /// What the user's rules saw.
    Seen(Vec<FilterChain>),
    /// Why this host cannot build it.
    Missing(String),
}

fn try_lab(sampler: &Sampler, cell: &Cell, cpus: &[usize]) -> Result<Outcome, Error> {
    let built = lab::path(&cell.path)
        .map_err(lab::Error::from)
        .and_then(|path| {
            // The CPUs of existing endpoints may be those of other machines.
            if path.is_built {
                measure::places(cell.axes.placement, cpus)?;
            }
            Lab::build_between(path, cell.peer, &cell.axes, sampler.endpoints.as_ref())
        });
    match built {
        Ok(lab) => match sampler.chains_that_see(&lab, cell) {
            Ok(Some(chains)) => Ok(Outcome::Seen(chains)),
            Ok(None) => Ok(Outcome::Built),
            Err(blocked @ measure::Error::Blocked { .. }) => {
                Ok(Outcome::Missing(crate::chain(&blocked)))
            }
            Err(other) => Err(other.into()),
        },
        Err(e) if e.is_unsupported() || is_for_root_of_the_host(&e) => {
            Ok(Outcome::Missing(crate::chain(&e)))
        }
        Err(e) => Err(measure::Error::Lab(e).into()),
    }
}

/// Is it something that root of a user namespace is refused, as whoever runs without root is? Other labs may have none of it.
fn is_for_root_of_the_host(error: &lab::Error) -> bool {
    let denied = matches!(error, lab::Error::Net(hopyard_net::Error::Denied { .. }));
    denied && !hopyard_net::is_in_first_user_namespace()
}

/// The most that the generator can do, for each different load.
pub(super) fn ceilings(sampler: &Sampler, cells: &[Cell]) -> Result<HashMap<LoopKey, f64>, Error> {
    let mut ceilings = HashMap::new();
    for cell in cells {
        if signals::interrupted() {
            return Err(measure::Error::Interrupted.into());
        }
        if let Entry::Vacant(unknown) = ceilings.entry(LoopKey::of(cell)) {
            unknown.insert(unless_interrupted(sampler.ceiling(cell.load, &cell.axes))?);
        }
    }
    Ok(ceilings)
}

/// A failure during an interruption counts as the interruption: a terminal sends Ctrl-C to workers too, and one that
/// has just started dies of it.
fn unless_interrupted<T>(outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
    match outcome {
        Err(_) if signals::interrupted() => Err(measure::Error::Interrupted.into()),
        outcome => outcome.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests;
