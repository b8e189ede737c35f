//! From a plan to its cells, checked against what this host can do before anything is built.

mod kernel;

use std::collections::HashSet;

use super::choice::{Chosen, choose_paths};
use super::trace::{self, TraceError};
use super::{Part, Plan};
use crate::lab::{self, PATHS};
use crate::load::{LoadSpec, least_load, pace_of};
use crate::model::stored::by_reason;
use crate::model::{
    AXES, Axes, Axis, AxisError, Cell, LoadKind, Peer, Rate, UnknownName, axis, distinct,
};
use crate::units;

/// More cells than this are a mistake.
const MOST_CELLS: usize = 10_000;

/// The cells of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// In the order of the plan: loads outermost, then axis values, then paths.
    pub cells: Vec<Cell>,
    /// Paths that were left out because this host cannot build them: name and reason.
    pub left_out: Vec<(String, String)>,
    /// Paths that lack the cells of some load, which they do not carry: name and reason.
    pub without: Vec<(String, String)>,
}

/// Why a plan cannot run here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no path, load or axis with that name.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A value does not fit its axis.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A path cannot be built with the values of the plan.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// Nothing remains of a plan that leaves out what this host lacks.
    #[error("this host can build no path of the plan: {0}")]
    NoPaths(String),
    /// Paths and peers do not fit.
    #[error("no path of the plan has peer {0}")]
    NoCells(String),
    /// An axis that no load of the plan uses.
    #[error("axis `{axis}` does nothing for {loads} with peer {peers}: leave it out{have}")]
    Idle {
        axis: &'static str,
        /// The loads of the plan, as text for people.
        loads: String,
        /// The peers of the plan, as text for people.
        peers: String,
        /// The loads or peers for which it would have an effect, if only those are missing.
        have: String,
    },
    /// An axis that no path of the plan has.
    #[error("axis `{axis}` does nothing for {paths}: leave it out, or choose among {have}")]
    NotOfPath {
        axis: &'static str,
        /// The paths of the plan, as text for people.
        paths: String,
        /// The paths that have it.
        have: String,
    },
    /// Values that cannot be combined.
    #[error("{0}")]
    Together(String),
    /// This kernel has no such congestion control.
    #[error(
        "there is no congestion control `{name}` in this kernel: it has {available}; \
         others come as modules `tcp_{name}`"
    )]
    Congestion {
        /// The congestion control that was asked for.
        name: String,
        /// Those that the kernel has, as text for people.
        available: String,
    },
    /// This kernel has no Multipath TCP.
    #[error(
        "this kernel has no Multipath TCP: use one with CONFIG_MPTCP (Linux 5.6), or leave `mptcp` out"
    )]
    NoMptcp,
    /// A trace cannot be replayed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// This process may not use io_uring.
    #[error("api=uring: {0}")]
    NoUring(hopyard_net::Error),
}

/// The cells of a plan on this host.
///
/// # Errors
/// Anything that would fail later for every sample: unknown names, values out of bounds, a named path that cannot be
/// built, a peer that no path has.
pub fn expand(plan: &Plan) -> Result<Expanded, Error> {
    let mut cells = Vec::new();
    let mut seen = HashSet::new();
    let mut left_out: Vec<(String, String)> = Vec::new();
    let mut without = Vec::new();
    let mut chosen = Vec::new();
    for part in &plan.parts {
        let paths = choose_paths(part, plan)?;
        let not_carried = paths.without.iter();
        without.extend(not_carried.map(|(path, _, why)| (path.name.to_owned(), why.clone())));
        for (path, why) in &paths.missing {
            if !left_out.iter().any(|(name, _)| name == path.name) {
                left_out.push((path.name.to_owned(), why.clone()));
            }
        }
        chosen.push((part, paths));
    }
    if chosen.iter().all(|(_, paths)| paths.there.is_empty()) {
        let reasons = by_reason(&left_out);
        let said = reasons
            .iter()
            .map(|(why, names)| format!("{}: {why}", names.join(", ")));
        return Err(Error::NoPaths(said.collect::<Vec<_>>().join("; ")));
    }
    check_axes(&chosen)?;
    for (part, paths) in chosen.iter().filter(|(_, paths)| !paths.there.is_empty()) {
        for cell in part_cells(part, paths)? {
            // Without an axis, cells that differ only in it are equal.
            if seen.insert(cell.clone()) {
                cells.push(cell);
            }
        }
    }
    kernel::check(&cells)?;
    if plan.settings.is_none() && cells.iter().any(|cell| cell.axes.setting.is_some()) {
        return Err(Error::Together(format!(
            "axis `{}` is for --a and --b, which say what the settings are: give both, or leave it out",
            Plan::SETTING
        )));
    }
    Ok(Expanded {
        cells,
        left_out,
        without: distinct(without),
    })
}

/// The plan's base as its cells have it: a file with rules or a trace has its digest.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn base_with_digest(plan: &Plan) -> Result<Option<String>, Error> {
    let Some(base) = &plan.base else {
        return Ok(None);
    };
    Ok(Some(match base.split_once('=') {
        Some(("ruleset", file)) => {
            let rules = lab::with_digest(&file.parse().map_err(Error::Axis)?)?;
            format!("ruleset={rules}")
        }
        Some(("trace", file)) => {
            let trace = trace::with_digest(&file.parse().map_err(Error::Axis)?)?;
            format!("trace={trace}")
        }
        _ => base.clone(),
    }))
}

/// The cells of a part, possibly with duplicates.
fn part_cells(part: &Part, chosen: &Chosen) -> Result<Vec<Cell>, Error> {
    let paths = &chosen.there[..];
    let mut combinations = combinations(part)?;
    for axes in &mut combinations {
        if let Some(rules) = &mut axes.ruleset {
            *rules = lab::with_digest(rules)?;
        }
        if let Some(trace) = &mut axes.trace {
            *trace = trace::with_digest(trace)?;
        }
    }
    let mut cells = Vec::new();
    for &load in &part.loads {
        for &peer in &part.peers {
            for axes in &combinations {
                for path in paths {
                    let may_be = (path.has)(axes) && chosen.carries(path, load);
                    if may_be && has_peer(part, path, peer, axes)? {
                        cells.push(cell(path, peer, load, axes)?);
                    }
                }
                few_enough(cells.len())?;
            }
        }
    }
    if let Some(path) = paths
        .iter()
        .find(|path| !combinations.iter().any(|axes| (path.has)(axes)))
    {
        return Err(Error::Together(format!(
            "path `{}` has no cell with these values of its axes ({}): leave it out, or set others",
            path.name,
            path.axes.join(", ")
        )));
    }
    if cells.is_empty() {
        return Err(Error::NoCells(join(part.peers.iter().map(|p| p.name()))));
    }
    Ok(cells)
}

/// Whether there is such a cell. If only one peer is asked for, each named path must have it, whatever the axes.
fn has_peer(part: &Part, path: &'static lab::Path, peer: Peer, axes: &Axes) -> Result<bool, Error> {
    match path.check_with(peer, axes) {
        Err(error) if part.peers.len() == 1 && path.peers.contains(&peer) => Err(error.into()),
        checked => Ok(checked.is_ok()),
    }
}

/// A path's cell with those of these axes that apply to it.
fn cell(path: &'static lab::Path, peer: Peer, load: LoadKind, axes: &Axes) -> Result<Cell, Error> {
    path.check_load(load)?;
    let axes = path.axes_of(axes, load, peer);
    if axes.search.is_some() {
        check_search(path, &axes)?;
        LoadSpec::new(load, &axes.at_pace(pace_of(&axes, least_load(&axes))))
    } else {
        trace::spec_of(load, &axes)?
    }
    .over(path.sockets)
    .check()
    .and_then(|()| (load.info().fits)(axes.packets()))
    .map_err(Error::Together)?;
    path.available_with(&axes)?;
    Ok(Cell {
        path: path.name.to_owned(),
        peer,
        load,
        axes,
    })
}

/// A search sets the pace of each trial, and must know which datagrams were due.
fn check_search(path: &'static lab::Path, axes: &Axes) -> Result<(), Error> {
    if let Some(Rate(Some(pace))) = axes.pace_bps {
        return Err(Error::Together(format!(
            "pace {} and a search: a search finds the pace by itself, leave one of them out",
            units::show_rate(pace)
        )));
    }
    // If an endpoint is a guest.
    if path.axes.contains(&"guest_cpus") {
        return Err(Error::Together(format!(
            "path `{}` and a search: a guest has a clock of its own, so what was due in a trial cannot be told; choose \
             another path",
            path.name
        )));
    }
    Ok(())
}

fn few_enough(cells: usize) -> Result<(), Error> {
    if cells > MOST_CELLS {
        return Err(Error::Together(format!(
            "more than {MOST_CELLS} cells: sweep fewer values at once"
        )));
    }
    Ok(())
}

/// Every given axis must have an effect for at least one load, peer and path.
fn check_axes(parts: &[(&Part, Chosen)]) -> Result<(), Error> {
    let names: HashSet<&String> = parts
        .iter()
        .flat_map(|(part, _)| part.set.iter().map(|(name, _)| name))
        .collect();
    for name in names {
        let axis = axis(name)?;
        let fits = |part: &Part| {
            let load = |&load: &LoadKind| part.peers.iter().any(|&peer| (axis.fits)(load, peer));
            part.loads.iter().any(load)
        };
        let has = |path: &'static lab::Path| path.has_axis(axis);
        let mut used = parts.iter().filter(|(part, _)| fits(part)).peekable();
        if used.peek().is_none() {
            return Err(Error::Idle {
                axis: axis.name,
                loads: join(parts.iter().flat_map(|(p, _)| &p.loads).map(|l| l.name())),
                peers: join(parts.iter().flat_map(|(p, _)| &p.peers).map(|p| p.name())),
                have: instead(axis, parts),
            });
        }
        let mut paths = used.flat_map(|(_, paths)| paths.all());
        if !paths.any(has) {
            return Err(Error::NotOfPath {
                axis: axis.name,
                paths: join(
                    parts
                        .iter()
                        .flat_map(|(_, p)| p.all())
                        .map(|path| path.name),
                ),
                have: join(PATHS.iter().filter(|path| has(path)).map(|path| path.name)),
            });
        }
    }
    Ok(())
}

/// The loads for which an axis has an effect with a plan's peers, else the peers with its loads, as the end of a
/// sentence.
fn instead(axis: &Axis, parts: &[(&Part, Chosen)]) -> String {
    let has_peer = |peer: &Peer| parts.iter().any(|(part, _)| part.peers.contains(peer));
    let has_load = |load: &LoadKind| parts.iter().any(|(part, _)| part.loads.contains(load));
    let peers: Vec<Peer> = Peer::ALL.into_iter().collect();
    let loads = LoadKind::ALL.into_iter().filter(|load| {
        let mut own = peers.iter().filter(|peer| has_peer(peer));
        own.any(|peer| (axis.fits)(*load, *peer))
    });
    let others = peers.iter().filter(|peer| {
        let mut own = LoadKind::ALL.into_iter().filter(has_load);
        own.any(|load| (axis.fits)(load, **peer))
    });
    match (
        join(loads.map(LoadKind::name)),
        join(others.map(|peer| peer.name())),
    ) {
        (loads, _) if !loads.is_empty() => format!(", or choose load {loads}"),
        (_, peers) if !peers.is_empty() => format!(", or choose peer {peers}"),
        _ => String::new(),
    }
}

/// All combinations of the given values, the first axis varying slowest, in the registry's order.
pub(super) fn combinations(part: &Part) -> Result<Vec<Axes>, Error> {
    let mut all = vec![Axes::default()];
    for axis in AXES {
        let values: Vec<&String> = part
            .set
            .iter()
            .filter(|(name, _)| name == axis.name)
            .flat_map(|(_, v)| v)
            .collect();
        if values.is_empty() {
            continue;
        }
        few_enough(all.len() * values.len())?;
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

/// Each name once.
fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    distinct(names).join(", ")
}

#[cfg(test)]
mod tests;
