//! From a plan to its cells, checked against what this host can do before anything is built.

use std::collections::HashSet;

use super::{Paths, Plan};
use crate::lab::{self, PATHS};
use crate::load::LoadSpec;
use crate::model::{AXES, Axes, AxisError, Cell, Peer, UnknownName, axis};

/// More cells than this are a mistake.
const MOST_CELLS: usize = 10_000;

/// The cells of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// In the order of the plan: loads outermost, then axis values, then paths.
    pub cells: Vec<Cell>,
    /// Paths that "all" left out: name and reason.
    pub left_out: Vec<(String, String)>,
}

/// Why a plan cannot be carried out here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A value.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A path.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// Paths and peers do not fit.
    #[error("no path of the plan has peer {0}")]
    NoCells(String),
    /// An axis that no load of the plan has.
    #[error("axis `{axis}` does nothing for {loads} with peer {peers}: leave it out")]
    Idle {
        /// The axis.
        axis: &'static str,
        /// The plan's loads.
        loads: String,
        /// The plan's peers.
        peers: String,
    },
    /// An axis that no path of the plan has.
    #[error("axis `{axis}` does nothing for {paths}: leave it out, or choose among {have}")]
    NotOfPath {
        /// The axis.
        axis: &'static str,
        /// The plan's paths.
        paths: String,
        /// The paths that have it.
        have: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Together(String),
    /// This kernel has no such congestion control.
    #[error(
        "there is no congestion control `{name}` in this kernel: it has {available}; \
         others come as modules `tcp_{name}`"
    )]
    Congestion {
        /// What was asked.
        name: String,
        /// What there is.
        available: String,
    },
}

/// The cells of a plan on this host.
///
/// # Errors
/// Anything that would fail later for every sample: unknown names, values out of bounds, a named path
/// that cannot be built, a peer that no path has.
pub fn expand(plan: &Plan) -> Result<Expanded, Error> {
    let (paths, left_out) = choose_paths(plan)?;
    check_axes(plan, &paths)?;
    let combinations = combinations(plan)?;
    let mut cells: Vec<Cell> = Vec::new();
    let mut seen = HashSet::new();
    for &load in &plan.loads {
        for &peer in &plan.peers {
            for axes in &combinations {
                for path in paths.iter().filter(|path| path.peers().contains(&peer)) {
                    let axes = axes.for_cell(load, peer, path.axes());
                    LoadSpec::new(load, &axes)
                        .check()
                        .map_err(Error::Together)?;
                    path.available_with(&axes)?;
                    let cell = Cell {
                        path: path.name().to_owned(),
                        peer,
                        load,
                        axes,
                    };
                    // Values of an axis that this load or path does not have fall together.
                    if seen.insert(cell.clone()) {
                        cells.push(cell);
                    }
                }
                if cells.len() > MOST_CELLS {
                    return Err(Error::Together(format!(
                        "more than {MOST_CELLS} cells: sweep fewer values at once"
                    )));
                }
            }
        }
    }
    if cells.is_empty() {
        return Err(Error::NoCells(join(plan.peers.iter().map(|p| p.name()))));
    }
    check_congestion(&cells)?;
    Ok(Expanded { cells, left_out })
}

/// Available paths; a path asked for by name that is not there is an error.
#[expect(
    clippy::type_complexity,
    reason = "paths and (name, reason) pairs, used once"
)]
fn choose_paths(
    plan: &Plan,
) -> Result<(Vec<&'static dyn lab::Path>, Vec<(String, String)>), Error> {
    let mut chosen: Vec<&'static dyn lab::Path> = Vec::new();
    let mut left_out = Vec::new();
    match &plan.paths {
        Paths::All => {
            for path in PATHS {
                match path.available() {
                    Ok(()) => chosen.push(*path),
                    Err(e) if e.is_unsupported() => {
                        left_out.push((path.name().to_owned(), crate::chain(&e)));
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        }
        Paths::Named(names) => {
            for name in names {
                let path = lab::path(name)?;
                path.available()?;
                // With one peer asked for, each path named has to have it.
                if let [peer] = plan.peers[..] {
                    path.check(peer)?;
                }
                if !chosen.iter().any(|other| other.name() == path.name()) {
                    chosen.push(path);
                }
            }
        }
    }
    Ok((chosen, left_out))
}

/// Every axis set has to mean something for at least one load, peer and path.
fn check_axes(plan: &Plan, paths: &[&'static dyn lab::Path]) -> Result<(), Error> {
    for (name, _) in &plan.set {
        let axis = axis(name)?;
        let fits = |load| {
            plan.peers
                .iter()
                .any(|&peer: &Peer| (axis.fits)(load, peer))
        };
        let used = plan.loads.iter().any(|&load| fits(load));
        if used && axis.of_path && !paths.iter().any(|path| path.axes().contains(&axis.name)) {
            let have = PATHS.iter().filter(|path| path.axes().contains(&axis.name));
            return Err(Error::NotOfPath {
                axis: axis.name,
                paths: join(paths.iter().map(|path| path.name())),
                have: join(have.map(|path| path.name())),
            });
        }
        if !used {
            return Err(Error::Idle {
                axis: axis.name,
                loads: join(plan.loads.iter().map(|l| l.name())),
                peers: join(plan.peers.iter().map(|p| p.name())),
            });
        }
    }
    Ok(())
}

/// Full factorial of all values set, the first axis varying slowest, in the registry's order.
fn combinations(plan: &Plan) -> Result<Vec<Axes>, Error> {
    let mut all = vec![Axes::default()];
    for axis in AXES {
        let values: Vec<&String> = plan
            .set
            .iter()
            .filter(|(name, _)| name == axis.name)
            .flat_map(|(_, v)| v)
            .collect();
        if values.is_empty() {
            continue;
        }
        let mut next = Vec::with_capacity(all.len() * values.len());
        for axes in &all {
            for value in &values {
                let mut axes = axes.clone();
                (axis.set)(&mut axes, value)?;
                next.push(axes);
            }
        }
        all = next;
    }
    Ok(all)
}

fn check_congestion(cells: &[Cell]) -> Result<(), Error> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let Ok(available) = std::fs::read_to_string(file) else {
        return Ok(());
    };
    let wanted = cells
        .iter()
        .filter_map(|cell| cell.axes.congestion.as_deref());
    for name in wanted {
        // The kernel loads a module by itself for root, so only a name without one is refused.
        if !available.split_whitespace().any(|a| a == name) && !module_exists(name) {
            return Err(Error::Congestion {
                name: name.to_owned(),
                available: available.split_whitespace().collect::<Vec<_>>().join(", "),
            });
        }
    }
    Ok(())
}

/// Is there a module `tcp_NAME` for the running kernel?
fn module_exists(name: &str) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list = format!("/lib/modules/{}/modules.dep", release.trim());
    std::fs::read_to_string(list)
        .is_ok_and(|text| text.lines().any(|l| l.contains(&format!("/tcp_{name}.ko"))))
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
