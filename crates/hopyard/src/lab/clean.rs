//! Finding and removing what an interrupted lab left.
//!
//! Namespaces of a lab end with its processes. What can stay behind a SIGKILL is a control group, with
//! a worker in it that was stopped, a direct switch, the directory of a switch that is a program (with
//! its daemons, if the lab was to be kept), and a kept lab that was never finished. All of them are named by
//! the id of their lab, which tells whether its builder lives. What cannot be judged is named and left alone.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use hopyard_net::Cgroup;
use hopyard_switch::Switch;

use super::daemon::home::{HOMES, Home};
use super::id::Life;
use super::keep::Survey;
use super::{LabId, Result, keep};

/// What was found, and what became of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// A sentence for each thing removed.
    pub removed: Vec<String>,
    /// A sentence for each thing that would not go.
    pub problems: Vec<String>,
    /// A sentence for each thing that was left alone because it cannot be judged from here.
    pub left_alone: Vec<String>,
}

impl Cleaned {
    fn note(&mut self, removed: String, problems: Vec<String>) {
        if problems.is_empty() {
            self.removed.push(removed);
        }
        self.problems.extend(problems);
    }

    fn unfinished_labs(&mut self, survey: &Survey) {
        for name in &survey.unfinished {
            self.note(format!("unfinished lab `{name}`"), keep::remove(name));
        }
    }

    fn foreign_labs(&mut self, survey: &Survey, force: bool) {
        for foreign in &survey.foreign {
            if force {
                let removed = format!("lab `{}`, which is {}", foreign.name, foreign.why);
                self.note(removed, keep::remove(&foreign.name));
            } else {
                self.left_alone.push(format!(
                    "{foreign}: left alone; take it down with the version that built it, or with \
                     `hopyard clean --force`"
                ));
            }
        }
    }

    fn groups(&mut self, names: &[String]) {
        for name in names {
            let outcome = Cgroup::open(name).and_then(|group| {
                let processes = group.procs()?.len();
                group.kill()?;
                group.remove()?;
                Ok(processes)
            });
            match outcome {
                Ok(0) => self.removed.push(format!("control group of lab {name}")),
                Ok(n) => self.removed.push(format!(
                    "control group of lab {name} and {n} process(es) in it"
                )),
                // Its owner was just about to go, and took it along.
                Err(hopyard_net::Error::Missing { .. }) => {}
                Err(e) => self.problems.push(crate::chain(&e)),
            }
        }
    }

    fn switches(&mut self, names: &[String]) {
        for name in names {
            match Switch::discard(name) {
                Ok(()) => self.removed.push(format!("switch `{name}` of a lab")),
                Err(e) => self.problems.push(crate::chain(&e)),
            }
        }
    }

    fn homes(&mut self, homes: &[(&'static Home, String)]) {
        for (home, name) in homes {
            let (daemons, problems) = home.remove(name);
            let with = match daemons {
                0 => String::new(),
                n => format!(" and its {n} daemon(s)"),
            };
            self.note(format!("{} of lab {name}{with}", home.of), problems);
        }
    }
}

/// Removes everything whose owner is dead. Labs that live, and kept labs that are whole, stay; so do kept labs that
/// this version does not understand, unless `force`.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn clean(force: bool) -> Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    // First: what a lab.json names is no leftover.
    let survey = keep::survey()?;
    cleaned.unfinished_labs(&survey);
    cleaned.foreign_labs(&survey, force);
    let found = Abandoned::find()?;
    cleaned.groups(&found.groups);
    cleaned.switches(&found.switches);
    cleaned.homes(&found.homes);
    if found.switches_closed {
        cleaned.left_alone.push(
            "only root can see the switches of interrupted labs: run `hopyard clean` as root to remove them too"
                .to_owned(),
        );
    }
    let hidden: BTreeSet<String> = found.hidden.into_iter().chain(survey.hidden).collect();
    for lab in hidden {
        cleaned.left_alone.push(format!(
            "lab {lab} was built in another PID namespace, whose processes cannot be seen from here: left \
             alone; run `hopyard clean` there, or as root outside of all containers"
        ));
    }
    Ok(cleaned)
}

/// What [`clean`] would remove, by name, of what whoever asks may see.
///
/// # Errors
/// The places where leftovers would be cannot be read.
pub fn find() -> Result<Vec<String>> {
    let found = Abandoned::find()?;
    let mut names = found.groups;
    names.extend(found.switches);
    names.extend(found.homes.into_iter().map(|(_, name)| name));
    names.extend(keep::survey()?.unfinished);
    Ok(names)
}

/// What belongs to labs whose builder is dead and which are not kept.
#[derive(Default)]
struct Abandoned {
    groups: Vec<String>,
    switches: Vec<String>,
    homes: Vec<(&'static Home, String)>,
    /// Ids of labs whose builder cannot be seen.
    hidden: Vec<String>,
    /// Only root may look for switches, as with the BPF file system that systemd mounts.
    switches_closed: bool,
}

impl Abandoned {
    fn find() -> Result<Self> {
        let mut found = Self::default();
        let groups = groups()?;
        found.groups = found.of_the_dead(groups, |name| name.parse().ok());
        match switches()? {
            Some(names) => found.switches = found.of_the_dead(names, |name| LabId::of_switch(name)),
            None => found.switches_closed = true,
        }
        for home in HOMES {
            let dead = found.of_the_dead(home.names()?, |name| name.parse().ok());
            found
                .homes
                .extend(dead.into_iter().map(|name| (home, name)));
        }
        // In this order: a lab that is kept meanwhile has a builder that lives.
        let kept = keep::States::read()?;
        found.switches.retain(|name| !kept.may_have(name));
        found.homes.retain(|(_, name)| !kept.may_have(name));
        Ok(found)
    }

    /// Those of some names that are of labs whose builder is dead; notes those whose builder cannot be seen.
    fn of_the_dead(
        &mut self,
        names: Vec<String>,
        id: impl Fn(&String) -> Option<LabId>,
    ) -> Vec<String> {
        let mut dead = names;
        dead.retain(|name| {
            let Some(id) = id(name) else { return false };
            let life = id.owner.life();
            if life == Life::Hidden {
                self.hidden.push(id.to_string());
            }
            life == Life::Gone
        });
        dead
    }
}

fn groups() -> Result<Vec<String>> {
    match Cgroup::list() {
        // No cgroup v2: no lab has made a group.
        Err(hopyard_net::Error::Unsupported { .. }) => Ok(Vec::new()),
        names => Ok(names?),
    }
}

/// `None` where only root may look.
fn switches() -> Result<Option<Vec<String>>> {
    match Switch::names() {
        Err(hopyard_switch::Error::File { source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            Ok(None)
        }
        names => Ok(Some(names?)),
    }
}
