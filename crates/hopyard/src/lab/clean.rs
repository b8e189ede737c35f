//! Finding and removing what an interrupted lab left.
//!
//! Namespaces of a lab end with its processes. What can stay behind a SIGKILL is a control group, with
//! a worker in it that was stopped, a direct switch, the directory of a switch that is a program (with
//! its daemons, if the lab was to be kept), and a kept lab that was never finished.

use std::io::ErrorKind;

use hopyard_net::Cgroup;
use hopyard_switch::Switch;

use super::daemon::home::{HOMES, Home};
use super::switching::lab_of_switch;
use super::{LabId, Result, keep};

/// What was found, and what became of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// A sentence for each thing removed.
    pub removed: Vec<String>,
    /// A sentence for each thing that would not go.
    pub problems: Vec<String>,
    /// A sentence for each place that is closed to whoever asks.
    pub closed: Vec<String>,
}

/// Removes everything whose owner is dead. Labs that live, and kept labs that are whole, stay.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn clean() -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    for name in abandoned_groups()? {
        let outcome = Cgroup::open(&name).and_then(|group| {
            let processes = group.procs()?.len();
            group.kill()?;
            group.remove()?;
            Ok(processes)
        });
        match outcome {
            Ok(0) => cleaned.removed.push(format!("control group of lab {name}")),
            Ok(n) => cleaned.removed.push(format!(
                "control group of lab {name} and {n} process(es) in it"
            )),
            // Its owner was just about to go, and took it along.
            Err(hopyard_net::Error::Missing { .. }) => {}
            Err(e) => cleaned.problems.push(crate::chain(&e)),
        }
    }
    let switches = abandoned_switches()?;
    if switches.is_none() {
        cleaned.closed.push(
            "switches of interrupted labs are root's to see: run as root to have them cleaned too"
                .to_owned(),
        );
    }
    for name in switches.unwrap_or_default() {
        match Switch::discard(&name) {
            Ok(()) => cleaned.removed.push(format!("switch `{name}` of a lab")),
            Err(e) => cleaned.problems.push(crate::chain(&e)),
        }
    }
    for (home, name) in abandoned_homes()? {
        let (daemons, problems) = home.remove(&name);
        if problems.is_empty() {
            let with = match daemons {
                0 => String::new(),
                n => format!(" and {n} daemon(s) of it"),
            };
            let of = home.of;
            cleaned.removed.push(format!("{of} of lab {name}{with}"));
        }
        cleaned.problems.extend(problems);
    }
    for name in keep::leftovers()? {
        let problems = keep::remove(&name);
        if problems.is_empty() {
            cleaned.removed.push(format!("unfinished lab `{name}`"));
        }
        cleaned.problems.extend(problems);
    }
    Ok(cleaned)
}

/// What [`clean`] would remove, by name, of what whoever asks may see.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn find() -> Result<Vec<String>> {
    let mut found = abandoned_groups()?;
    found.extend(abandoned_switches()?.unwrap_or_default());
    found.extend(abandoned_homes()?.into_iter().map(|(_, name)| name));
    found.extend(keep::leftovers()?);
    Ok(found)
}

/// Switches of labs whose builder is dead and which are not kept; `None` where only root may look, as with the BPF file
/// system that systemd mounts.
fn abandoned_switches() -> Result<Option<Vec<String>>> {
    let kept: Vec<String> = keep::list()?.into_iter().filter_map(|k| k.switch).collect();
    let dead = |name: &String| lab_of_switch(name).is_some_and(|id| !id.owner.lives());
    let mut names = match Switch::names() {
        Ok(names) => names,
        Err(hopyard_switch::Error::File { source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    names.retain(|name| dead(name) && !kept.contains(name));
    Ok(Some(names))
}

/// Directories of daemons of labs whose builder is dead and which are not kept.
fn abandoned_homes() -> Result<Vec<(&'static Home, String)>> {
    // In this order: a lab that is kept meanwhile has a builder that lives.
    let mut found = Vec::new();
    for home in HOMES {
        let names = home.names()?;
        found.extend(names.into_iter().map(|name| (home, name)));
    }
    let dead = |name: &str| name.parse::<LabId>().is_ok_and(|id| !id.owner.lives());
    found.retain(|(_, name)| dead(name));
    let kept: Vec<_> = keep::list()?.iter().flat_map(keep::Kept::homes).collect();
    found.retain(|one| !kept.contains(one));
    Ok(found)
}

fn abandoned_groups() -> Result<Vec<String>> {
    let names = match Cgroup::list() {
        Ok(names) => names,
        // No cgroup v2: no lab has made a group.
        Err(hopyard_net::Error::Unsupported { .. }) => Vec::new(),
        Err(e) => return Err(e.into()),
    };
    Ok(names
        .into_iter()
        .filter(|name| name.parse::<LabId>().is_ok_and(|id| !id.owner.lives()))
        .collect())
}
