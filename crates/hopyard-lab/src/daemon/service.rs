//! A switch of a lab that is daemons and the directory they need.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopyard_net::NetNs;

use super::{Daemon, Error, Home, Household, Program, Ready, Starter};
use crate::kept::Kept;
use crate::model::{Datapath, DeviceCount};
use crate::part::{Part, Undone};
use crate::topology::role;
use crate::{Builder, Result};

/// A switch whose daemons are children of this process.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) home: &'static Home,
    /// Name of its directory: the lab's id.
    pub(crate) name: String,
    pub(crate) datapath: Datapath,
    household: Household,
    /// In the order in which they started.
    daemons: Vec<Daemon>,
    /// Outlives the daemons, which end with it.
    starter: Starter,
}

impl Builder {
    /// Makes the directory of a switch of the hub; [`Service::start`] starts its daemons.
    pub(crate) fn service(
        &mut self,
        home: &'static Home,
        datapath: Datapath,
    ) -> Result<&mut Service> {
        let keep = self.is_to_keep();
        let household = Household {
            hub: self.space(role::HUB)?.ns().try_clone()?,
            // A kept lab has nothing to count, and nobody who would remove the group.
            cgroup: self.cgroup().filter(|_| !keep).cloned(),
            keep,
        };
        let starter = Starter::new().map_err(|source| Error::Home {
            what: format!("start a thread for the daemons of {}", home.of),
            source,
        })?;
        let name = self.id.to_string();
        // Nothing can fail from here until it is on the stack.
        home.make(&name)?;
        Ok(self.push(Service {
            home,
            name,
            datapath,
            household,
            daemons: Vec::new(),
            starter,
        }))
    }
}

impl Service {
    pub(crate) fn directory(&self) -> PathBuf {
        self.home.directory(&self.name)
    }

    /// Starts a daemon in the hub and waits until it is ready, if it is said how that shows.
    pub(crate) fn start(
        &mut self,
        program: &'static Program,
        command: Command,
        ready: Option<Ready>,
    ) -> Result<()> {
        let hub = self.household.hub.try_clone()?;
        self.start_in(&hub, program, command, ready)
    }

    /// The same in another namespace.
    pub(crate) fn start_in(
        &mut self,
        inside: &NetNs,
        program: &'static Program,
        mut command: Command,
        ready: Option<Ready>,
    ) -> Result<()> {
        inside.adopt(&mut command)?;
        let (home, household) = (self.directory(), &self.household);
        let daemon = Daemon::start(program, command, &home, &self.starter, household)?;
        self.daemons.push(daemon);
        match (self.daemons.last(), ready) {
            (Some(daemon), Some(ready)) => daemon.is_ready(self.home.of, &ready),
            _ => Ok(()),
        }
    }
}

impl Part for Service {
    /// Ends the daemons, the last started first, and removes their directory.
    fn undo(&mut self) -> Undone {
        self.daemons.iter().rev().for_each(Daemon::end);
        Undone::of(self.home.of, self.home.remove_files(&self.name))
    }

    fn keep(&mut self, _: &Path, kept: &mut Kept) -> Result<()> {
        let record = self.home.record(&self.name, Some(&self.datapath));
        kept.note(self.home.key, &record)
    }

    fn pids(&self) -> Vec<u32> {
        self.daemons.iter().map(Daemon::pid).collect()
    }

    fn death(&self) -> Option<Error> {
        self.daemons.iter().rev().find_map(Daemon::death)
    }

    fn datapath(&self) -> Option<Datapath> {
        Some(self.datapath.clone())
    }

    fn counted(&self) -> Result<Vec<DeviceCount>> {
        let counted = self.home.counted;
        counted.map_or_else(|| Ok(Vec::new()), |counted| counted(&self.name))
    }
}
