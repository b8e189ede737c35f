//! What is named on the command line has an effect, or is refused.

use std::collections::BTreeSet;

use super::Failure;
use super::args::RunArgs;
use crate::model::{Cell, Peer, together};
use crate::plan::{self, Plan};

/// The axes that a run sets, each with its values.
///
/// # Errors
/// An axis is there twice.
pub(super) fn axes(args: &RunArgs) -> Result<Vec<(String, Vec<String>)>, Failure> {
    for (option, axis, is_given) in [
        ("--search", "search", args.search.is_some()),
        ("--ruleset", "ruleset", !args.ruleset.is_empty()),
    ] {
        if is_given && args.sets(axis) {
            return Err(Failure::request(format!(
                "{option} and --set {axis} are one thing: give all its values by one of them"
            )));
        }
    }
    each_once(&args.set)
}

/// The axes of all `--set`, each with its values; the switches of devices are one axis. An axis that is there twice is refused: only one of
/// the two could count.
pub(super) fn each_once(
    sets: &[(String, Vec<String>)],
) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let all = together(sets);
    let mut seen = BTreeSet::new();
    for (axis, _) in &all {
        if !seen.insert(axis) {
            return Err(Failure::request(format!(
                "--set {axis} is there twice: give all its values at once, separated by commas"
            )));
        }
    }
    Ok(all)
}

/// The path that has a guest with a kernel of its own.
const WITH_GUEST: &str = "vm";

/// Checks that each path has one of the peers, and each peer belongs to a path, whatever the guest can build.
pub(super) fn check_peers(args: &RunArgs) -> Result<(), Failure> {
    let (Some(names), Some(peers)) = (&args.paths, &args.peer) else {
        return Ok(());
    };
    if names.iter().any(|name| name == "all") {
        return Ok(());
    }
    let lacks_them = |name: &&String| {
        let path = hopyard_lab::path(name);
        path.is_ok_and(|path| !peers.iter().any(|peer| path.peers.contains(peer)))
    };
    if let Some(name) = names.iter().find(lacks_them) {
        return Err(without_peer(name));
    }
    let is_of_any = |peer: &Peer| names.iter().any(|name| peers_of(name).contains(peer));
    match peers.iter().find(|peer| !is_of_any(peer)) {
        Some(peer) => Err(of_no_path(*peer)),
        None => Ok(()),
    }
}

fn peers_of(path: &str) -> &'static [Peer] {
    hopyard_lab::path(path).map_or(&[], |path| path.peers)
}

fn without_peer(path: &str) -> Failure {
    let peers = peers_of(path).iter().map(|peer| peer.name());
    Failure::request(format!(
        "path `{path}` has none of the peers that were asked for: leave it out, or ask for one that it has ({})",
        peers.collect::<Vec<_>>().join(", ")
    ))
}

fn of_no_path(peer: Peer) -> Failure {
    Failure::request(format!(
        "no path of these has peer `{peer}`: leave it out, or choose others with --paths"
    ))
}

/// Checks that no path, no peer and no kernel of a guest was named for nothing. What this host cannot build may be left out, with its peers.
pub(super) fn check_cells(args: &RunArgs, plan: &Plan) -> Result<(), Failure> {
    if args.paths.is_none() && args.peer.is_none() && args.guest.guest_kernel.is_none() {
        return Ok(());
    }
    let expanded = plan::expand(plan)?;
    let has = |so: &dyn Fn(&Cell) -> bool| expanded.cells.iter().any(so);
    let left_out = || expanded.left_out.iter().map(|(path, _)| path.as_str());
    for name in args.paths.iter().flatten() {
        let is_left_out = left_out().any(|path| path == name);
        if name != "all" && !is_left_out && !has(&|cell| cell.path == *name) {
            return Err(without_peer(name));
        }
    }
    for peer in args.peer.iter().flatten() {
        let may_be_left_out = left_out().any(|path| peers_of(path).contains(peer));
        if !may_be_left_out && !has(&|cell| cell.peer == *peer) {
            return Err(of_no_path(*peer));
        }
    }
    let is_left_out = || left_out().any(|path| path == WITH_GUEST);
    if args.guest.guest_kernel.is_some() && !is_left_out() && !has(&|cell| cell.path == WITH_GUEST)
    {
        return Err(Failure::request(format!(
            "--guest-kernel is for path `{WITH_GUEST}`, which is not measured: leave it out, or name that path with --paths; \
             --kernel runs everything in a guest"
        )));
    }
    Ok(())
}
