//! The control group of a lab's processes.

use std::path::Path;

use hopyard_net::Cgroup;

use super::kept::Kept;
use super::part::{Kind, Names, Part, Undone};
use super::{Builder, Result};

pub(super) static GROUPS: Groups = Groups;

pub(super) struct Groups;

/// The group of a lab that is being built or used.
#[derive(Debug)]
struct Group(Cgroup);

impl Builder {
    /// Without cgroup v2 the lab goes on: processes are then told apart by their ids.
    pub(super) fn make_group(&mut self) {
        if let Ok(group) = Cgroup::create(&self.id.to_string()) {
            self.push(Group(group));
        }
    }

    /// Workers of endpoints that stand already stay in the groups that they have there.
    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        if self.endpoints_are_reached() {
            return None;
        }
        self.parts::<Group>().next().map(|group| &group.0)
    }
}

impl Part for Group {
    fn undo(&mut self) -> Undone {
        Undone::of("control group", self.0.remove())
    }

    /// No process of ours is in it: a kept lab is for other people's commands.
    fn keep(&mut self, _: &Path, _: &mut Kept) -> Result<()> {
        Ok(self.0.remove()?)
    }
}

impl Kind for Groups {
    fn names(&self) -> Result<Names> {
        match Cgroup::list() {
            // No cgroup v2: no lab has made a group.
            Err(hopyard_net::Error::Unsupported { .. }) => Ok(Names::Of(Vec::new())),
            names => Ok(Names::Of(names?)),
        }
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(Left(name))
    }
}

/// The group of a lab whose builder is dead, perhaps with workers in it that were stopped.
#[derive(Debug)]
struct Left(String);

impl Part for Left {
    fn undo(&mut self) -> Undone {
        let what = format!("control group of lab {}", self.0);
        let outcome = Cgroup::open(&self.0).and_then(|group| {
            let processes = group.all_procs()?.len();
            group.kill()?;
            group.remove()?;
            Ok(processes)
        });
        match outcome {
            Ok(0) => Undone::gone(what),
            Ok(n) => Undone::gone(format!("{what} and {n} process(es) in it")),
            // Its owner was just about to go, and took it along.
            Err(hopyard_net::Error::Missing { .. }) => Undone::default(),
            Err(error) => Undone::failed(&error),
        }
    }
}
