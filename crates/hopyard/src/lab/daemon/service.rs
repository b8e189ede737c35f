//! A switch of a lab that is one daemon and the directory it needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopyard_net::{Cgroup, NetNs};

use super::{Daemon, Error, Home, Household, Program, Starter};
use crate::lab::{LabId, Result};
use crate::model::Datapath;

/// A running switch. Dropping it ends it, unless it is kept.
#[derive(Debug)]
pub(in crate::lab) struct Service {
    home: &'static Home,
    /// Name of its directory: the lab's id.
    name: String,
    daemon: Option<Daemon>,
    /// Outlives the daemon, which ends with it.
    starter: Option<Starter>,
    datapath: Datapath,
    keep: bool,
}

/// What to start.
pub(in crate::lab) struct NewService<'a> {
    pub(in crate::lab) id: LabId,
    pub(in crate::lab) home: &'static Home,
    pub(in crate::lab) program: &'static Program,
    /// The namespace it lives in.
    pub(in crate::lab) hub: &'a NetNs,
    /// The group that counts its CPU time with the load's.
    pub(in crate::lab) cgroup: Option<&'a Cgroup>,
    /// Does it outlive this process?
    pub(in crate::lab) keep: bool,
    /// What forwards, for results.
    pub(in crate::lab) datapath: Datapath,
}

impl NewService<'_> {
    /// Starts it with the command that `command` makes for its directory, and waits until it listens on the socket
    /// that comes with it.
    pub(in crate::lab) fn start(
        self,
        command: impl FnOnce(&Path) -> std::result::Result<(Command, PathBuf), Error>,
    ) -> Result<Service> {
        let name = self.id.to_string();
        let home = self.home.make(&name)?;
        // Whatever fails from here on, dropping it undoes it.
        let mut service = Service {
            home: self.home,
            name,
            daemon: None,
            starter: None,
            datapath: self.datapath,
            keep: false,
        };
        let starter = Starter::new().map_err(|source| Error::Home {
            what: format!("start a thread for {}", self.program.called),
            source,
        })?;
        let starter = service.starter.insert(starter);
        let household = Household {
            hub: self.hub,
            // A kept lab has nothing to count, and nobody who would remove the group.
            cgroup: self.cgroup.filter(|_| !self.keep),
            keep: self.keep,
        };
        let (command, socket) = command(&home)?;
        let daemon = Daemon::start(self.program, command, &home, starter, &household)?;
        let daemon = service.daemon.insert(daemon);
        daemon.listens("start the switch", &socket)?;
        Ok(service)
    }
}

impl Service {
    /// Lets it run when this value goes.
    pub(in crate::lab) fn leave_running(&mut self) {
        self.keep = true;
    }

    /// How it ended, if it did.
    pub(in crate::lab) fn death(&self) -> Option<Error> {
        self.daemon.as_ref().and_then(Daemon::death)
    }

    pub(in crate::lab) fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(Daemon::pid)
    }

    pub(in crate::lab) fn home(&self) -> &'static Home {
        self.home
    }

    /// Name of its directory.
    pub(in crate::lab) fn name(&self) -> &str {
        &self.name
    }

    /// What forwards, for results.
    pub(in crate::lab) fn datapath(&self) -> &Datapath {
        &self.datapath
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Some(daemon) = &self.daemon {
            daemon.end();
        }
        if let Err(error) = self.home.remove_files(&self.name) {
            crate::note(format_args!(
                "could not remove the {} of a lab: {}",
                self.home.of,
                crate::chain(&error)
            ));
        }
    }
}
