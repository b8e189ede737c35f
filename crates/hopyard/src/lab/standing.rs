//! A lab that stands.

use hopyard_net::Cgroup;

use super::axes::ON_LAB;
use super::daemon::{self, Service};
use super::guests::Guest;
use super::ovs::Ovs;
use super::paths::Path;
use super::topology::{Space, Topology};
use super::{Builder, Error, LabId, Result, offloads, switching};
use crate::model::{Axes, Datapath, OffloadState, Peer};

/// A path as it stands, ready to be used. Dropping it takes it down.
#[derive(Debug)]
pub struct Lab {
    builder: Builder,
    /// The path that the lab was built from.
    pub path: &'static dyn Path,
    /// Endpoints and the way between them.
    pub topology: Topology,
    /// Offload flags of every device, as read back.
    pub offloads: Vec<OffloadState>,
}

impl Lab {
    /// Builds a path towards a peer.
    ///
    /// # Errors
    /// The path has no such peer, this host cannot build it, or the kernel refused; what was made up
    /// to then is gone again.
    pub fn build(path: &'static dyn Path, peer: Peer, axes: &Axes) -> Result<Self> {
        Self::build_with(path, peer, Builder::new(axes, false))
    }

    /// The same for a lab that may stand when this process is gone: [`Lab::leave_standing`].
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub fn build_to_keep(path: &'static dyn Path, peer: Peer, axes: &Axes) -> Result<Self> {
        Self::build_with(path, peer, Builder::new(axes, true))
    }

    fn build_with(path: &'static dyn Path, peer: Peer, mut builder: Builder) -> Result<Self> {
        path.check_with(peer, builder.axes())?;
        let topology = path
            .build(&mut builder, peer)
            .map_err(|e| unsupported(path, e))?;
        for axis in ON_LAB {
            axis.apply(&mut builder).map_err(|e| unsupported(path, e))?;
        }
        builder.settle()?;
        let offloads = offloads::apply(&builder, path.name())?;
        Ok(Self {
            builder,
            path,
            topology,
            offloads,
        })
    }

    /// Id of the lab, which its control groups and daemons carry.
    #[must_use]
    pub fn id(&self) -> LabId {
        self.builder.id
    }

    /// What it was built for.
    pub(super) fn axes(&self) -> &Axes {
        self.builder.axes()
    }

    /// Its namespaces with their roles.
    #[must_use]
    pub fn spaces(&self) -> &[Space] {
        &self.builder.spaces
    }

    /// The namespace of a role.
    ///
    /// # Errors
    /// This lab has none of that role.
    pub fn space(&self, role: &str) -> Result<&Space> {
        self.builder.find(role).ok_or_else(|| {
            Error::UnknownName(crate::model::UnknownName {
                kind: "endpoint",
                name: role.to_owned(),
                choices: self
                    .spaces()
                    .iter()
                    .map(|s| s.role)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        })
    }

    /// The control group of its processes, where the machine has cgroup v2.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.builder.cgroup.as_ref()
    }

    /// The name of its direct switch, which is state beside its namespaces.
    #[must_use]
    pub fn switch(&self) -> Option<&str> {
        self.builder.switch.as_deref()
    }

    /// The name of its Open vSwitch, which is daemons and a directory beside its namespaces.
    #[must_use]
    pub fn ovs(&self) -> Option<&str> {
        self.builder.ovs.as_ref().map(Ovs::name)
    }

    /// The switch of its own that is one daemon and a directory.
    pub(super) fn service(&self) -> Option<&Service> {
        self.builder.service.as_ref()
    }

    /// Processes that forward, beside the load's own.
    #[must_use]
    pub fn daemons(&self) -> Vec<u32> {
        let mut pids = self.builder.ovs.as_ref().map_or_else(Vec::new, Ovs::pids);
        pids.extend(self.service().and_then(Service::pid));
        pids
    }

    /// What forwards, where a path can be built in more than one way, or by a program.
    #[must_use]
    pub fn datapath(&self) -> Option<Datapath> {
        let service = || self.service().map(|service| service.datapath().clone());
        let direct = || {
            self.switch()
                .map(|_| switching::datapath(self.builder.hooks))
        };
        self.builder
            .ovs
            .as_ref()
            .map(Ovs::datapath)
            .or_else(service)
            .or_else(direct)
    }

    /// A process that forwards is gone, and how it ended.
    #[must_use]
    pub fn death(&self) -> Option<daemon::Error> {
        let service = || self.service().and_then(Service::death);
        self.builder
            .ovs
            .as_ref()
            .and_then(Ovs::death)
            .or_else(service)
    }

    /// Its guests.
    pub(super) fn guests(&self) -> &[Guest] {
        &self.builder.guests
    }

    /// Lets everything stand when this value goes; whoever calls this has named the namespaces.
    pub fn leave_standing(mut self) {
        self.builder.keep = true;
        if let Some(ovs) = &mut self.builder.ovs {
            ovs.leave_running();
        }
        if let Some(service) = &mut self.builder.service {
            service.leave_running();
        }
    }
}

/// A missing kernel feature, said of the path.
fn unsupported(path: &'static dyn Path, error: Error) -> Error {
    match error {
        Error::Net(source @ hopyard_net::Error::Unsupported { .. }) => Error::Unsupported {
            path: path.name(),
            source,
        },
        other => other,
    }
}
