//! `hopyard lab` and `hopyard clean`.

use std::process::ExitCode;

use super::args::{LabArgs, LabCommand};
use super::named::each_once;
use super::{Done, Failure, pretty, print};
use crate::lab::{self, clean as cleaning, keep};
use crate::model::{Axes, Decides, LoadKind, Peer};
use crate::signals;

pub(super) fn lab(args: LabArgs) -> Done {
    match args.command {
        LabCommand::Up {
            path,
            name,
            peer,
            set,
        } => up(&path, name.as_deref(), peer, &set),
        LabCommand::Exec {
            name,
            endpoint,
            command,
        } => match keep::exec(&name, &endpoint, &command)? {},
        LabCommand::Down { name, force } => {
            cleaning::down(&name, force)?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::List { json } => list(json),
    }
}

/// Axes that shape no device, but the processes that make a load.
const OF_WORKERS: [&str; 2] = ["placement", "scheduler"];

fn up(path: &str, name: Option<&str>, peer: Peer, set: &[(String, Vec<String>)]) -> Done {
    let path = lab::path(path)?;
    path.check(peer)?;
    path.available()?;
    let mut axes = Axes::default();
    for (axis, values) in &each_once(set)? {
        let axis = crate::model::axis(axis)?;
        let [value] = &values[..] else {
            return Err(Failure::request(format!(
                "a lab has one value of `{}`, not {}: a sweep is for `hopyard run`",
                axis.name,
                values.join(", ")
            )));
        };
        if !path.has_axis(axis) {
            return Err(Failure::request(format!(
                "axis `{}` does nothing for {}: leave it out",
                axis.name, path.name
            )));
        }
        if axis.decides == Decides::Lab && !(axis.fits)(LoadKind::TcpStream, peer) {
            return Err(Failure::request(format!(
                "axis `{}` does nothing with peer {peer}: leave it out, or name another --peer",
                axis.name
            )));
        }
        if matches!(axis.decides, Decides::Message | Decides::Traffic)
            || OF_WORKERS.contains(&axis.name)
        {
            return Err(Failure::request(format!(
                "axis `{}` is of a load, and a kept lab has none: leave it out",
                axis.name
            )));
        }
        (axis.set)(&mut axes, value)?;
    }
    // Only what shapes the lab itself is kept; sizes and flows belong to a load.
    let axes = path.axes_of(&axes, LoadKind::TcpStream, peer);
    if !(path.has)(&axes) {
        return Err(Failure::request(format!(
            "path `{}` has no lab with these values of its axes: leave them out, or set others",
            path.name
        )));
    }
    path.check_with(peer, &axes)?;
    path.available_with(&axes)?;
    // A signal without a handler would end this program and leave what is built by then.
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let kept = keep::up(name.unwrap_or(path.name), path, peer, &axes).map_err(|error| {
        if signals::interrupted() {
            Failure::interrupted()
        } else {
            error.into()
        }
    })?;
    let mut text = format!(
        "lab `{}` is up: path {}, peer {}\n",
        kept.name, kept.path, kept.peer
    );
    let (containers, others): (Vec<_>, Vec<_>) = kept
        .spaces
        .iter()
        .partition(|space| lab::role::is_container(&space.role));
    let shown = containers.len().min(SHOWN);
    for space in others.iter().chain(&containers[..shown]) {
        let address = space.address.as_deref().unwrap_or("-");
        text += &format!(
            "  {:<4} {:<14} {}\n",
            space.role,
            address,
            some(&space.devices)
        );
    }
    if let Some(last) = containers[shown..].last() {
        text += &format!("  … {} more, to {}\n", containers.len() - shown, last.role);
    }
    for switch in kept.switches() {
        text += &format!("  {switch}\n");
    }
    text += &format!(
        "hopyard lab exec {0} {1} -- ip address; hopyard lab down {0}\n",
        kept.name,
        containers
            .first()
            .map_or(lab::role::A, |first| &*first.role)
    );
    print(&text)
}

/// The most containers that are listed.
const SHOWN: usize = 8;

/// The first of many names.
fn some(names: &[String]) -> String {
    const NAMED: usize = 8;
    match names.split_at_checked(NAMED) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("{}, … {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

fn list(json: bool) -> Done {
    let keep::Survey {
        whole: labs,
        foreign,
        ..
    } = keep::survey()?;
    for lab in foreign {
        crate::note(format_args!("{lab}"));
    }
    if json {
        return print(&pretty(&labs)?);
    }
    if labs.is_empty() {
        return print("no lab is up\n");
    }
    let mut table = super::table(&["lab", "path", "peer", "namespaces"]);
    for kept in labs {
        let spaces: Vec<String> = kept
            .spaces
            .iter()
            .map(|s| match &s.address {
                Some(address) => format!("{} ({address})", s.role),
                None => s.role.clone(),
            })
            .collect();
        table.add_row([kept.name, kept.path, kept.peer.to_string(), some(&spaces)]);
    }
    print(&format!("{table}\n"))
}

pub(super) fn clean(force: bool) -> Done {
    let cleaned = cleaning::clean(force)?;
    for removed in &cleaned.removed {
        print(&format!("removed {removed}\n"))?;
    }
    let relays = hopyard_fleet::remove_abandoned_relays();
    if relays > 0 {
        print(&format!(
            "removed directories that relays of fleets left: {relays}\n"
        ))?;
    }
    let fetches = crate::guest::fetch::remove_abandoned();
    if fetches > 0 {
        print(&format!(
            "removed directories that fetches of kernels left: {fetches}\n"
        ))?;
    }
    for problem in cleaned.problems.iter().chain(&cleaned.left_alone) {
        crate::note(format_args!("{problem}"));
    }
    if cleaned.removed.is_empty() && cleaned.problems.is_empty() && relays + fetches == 0 {
        print("nothing to clean\n")?;
    }
    Ok(ExitCode::from(u8::from(!cleaned.problems.is_empty())))
}
