//! Open vSwitch of labs, as the machine shows it.

use std::path::PathBuf;
use std::time::Duration;

use super::cli::Running;
use super::procs::{self, Process};
use super::walk::machine_has;
use super::{skip, until};

/// Where labs have the directories of their Open vSwitch.
pub(crate) const HOME: &str = "/run/hopyard-ovs";
pub(crate) const DAEMONS: [&str; 2] = ["ovs-vswitchd", "ovsdb-server"];

/// Can it be run here? Records the test as skipped where it cannot.
#[track_caller]
pub(crate) fn is_here() -> bool {
    let path = hopyard::lab::path("ovs-veth").unwrap();
    let outcome = path.available();
    if let Err(error) = &outcome {
        let present = machine_has(hopyard::lab::ovs::NEED);
        skip("Open vSwitch", present, &hopyard::chain(error));
    }
    outcome.is_ok()
}

/// Is the program of that process called so?
fn is_called(process: &Process, name: &str) -> bool {
    let program = process.arguments.first().map(PathBuf::from);
    program.is_some_and(|program| program.ends_with(name))
}

/// Daemons of labs among some processes.
pub(crate) fn daemons(among: Vec<Process>) -> Vec<Process> {
    let inside = format!("--unixctl={HOME}/");
    let mut found = among;
    found.retain(|p| p.arguments.iter().any(|a| a.starts_with(&inside)));
    found
}

/// Daemons of all labs.
pub(crate) fn all() -> Vec<Process> {
    daemons(procs::all())
}

/// The daemon of that name among them.
pub(crate) fn named<'a>(daemons: &'a [Process], name: &str) -> Option<&'a Process> {
    daemons.iter().find(|process| is_called(process, name))
}

/// Waits for a sample under way in a lab with Open vSwitch; gives its daemons.
pub(crate) fn until_measured(running: &Running) -> Vec<Process> {
    let mut found = Vec::new();
    let what = "two workers and two daemons run";
    until(what, Duration::from_secs(30), || {
        found = daemons(running.processes());
        found.len() == 2 && running.lab_workers().len() == 2
    });
    found
}

/// What there is of labs' directories.
pub(crate) fn directories() -> Vec<String> {
    let names = |entries: std::fs::ReadDir| {
        let names = entries.flatten().map(|e| e.file_name());
        names.map(|n| n.to_string_lossy().into_owned()).collect()
    };
    std::fs::read_dir(HOME).map_or_else(|_| Vec::new(), names)
}
