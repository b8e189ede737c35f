//! What is tried out before a run: each different lab, and the generator by itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Error;
use crate::lab::{self, Endpoints, Lab, LabKey};
use crate::measure::{self, Sampler};
use crate::model::{Axes, Cell, LoadKind};
use crate::signals;

/// What decides the generator's ceiling.
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

/// Builds each different lab once, and answers with why those that cannot be built here cannot.
pub(super) fn try_labs(
    cells: &[Cell],
    endpoints: Option<&Endpoints>,
) -> Result<HashMap<LabKey, String>, Error> {
    let cpus = hopyard_net::cpu::current_affinity().map_err(measure::Error::from)?;
    let mut tried: HashMap<LabKey, Option<String>> = HashMap::new();
    for cell in cells {
        if signals::interrupted() {
            return Err(measure::Error::Interrupted.into());
        }
        if let Entry::Vacant(unknown) = tried.entry(LabKey::of(cell)) {
            unknown.insert(unless_interrupted(try_lab(cell, &cpus, endpoints))?);
        }
    }
    let missing = tried.into_iter();
    Ok(missing.filter_map(|(key, why)| Some((key, why?))).collect())
}

/// Builds a cell's lab; `Some` says why this host cannot.
fn try_lab(
    cell: &Cell,
    cpus: &[usize],
    endpoints: Option<&Endpoints>,
) -> Result<Option<String>, Error> {
    let built = lab::path(&cell.path)
        .map_err(lab::Error::from)
        .and_then(|path| {
            // The CPUs of endpoints that stand already are their own.
            if path.is_built() {
                measure::places(cell.axes.placement, cpus)?;
            }
            Lab::build_between(path, cell.peer, &cell.axes, endpoints).map(drop)
        });
    match built {
        Ok(()) => Ok(None),
        Err(e) if e.is_unsupported() => Ok(Some(crate::chain(&e))),
        Err(e) => Err(measure::Error::Lab(e).into()),
    }
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

/// What fails while the user interrupts is the interruption: a terminal sends Ctrl-C to workers too, and one that has only
/// just been started dies of it.
fn unless_interrupted<T>(outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
    match outcome {
        Err(_) if signals::interrupted() => Err(measure::Error::Interrupted.into()),
        outcome => outcome.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests;
