//! A lab that stands.

use hopyard_net::Cgroup;

use super::axes::ON_LAB;
use super::daemon::{self, Service};
use super::kinds::KINDS;
use super::part::Part;
use super::paths::{Path, no_cable};
use super::topology::{Space, Topology};
use super::{Builder, Endpoints, Error, LabId, Result, offloads, tap};
use crate::model::{Axes, Datapath, DeviceCount, GuestUsed, LinkEnd, OffloadState, Peer};

/// A path as it stands, ready to be used. Dropping it takes it down.
#[derive(Debug)]
pub struct Lab {
    pub(super) builder: Builder,
    /// The path that the lab was built from.
    pub path: &'static Path,
    /// Endpoints and the way between them.
    pub topology: Topology,
    /// Offload flags of every device, as read back.
    pub offloads: Vec<OffloadState>,
    /// The ends of the wire, where traffic passes it.
    pub link: Vec<LinkEnd>,
}

impl Lab {
    /// Builds a path towards a peer.
    ///
    /// # Errors
    /// The path has no such peer, this host cannot build it, or the kernel refused; what was made up
    /// to then is gone again.
    pub fn build(path: &'static Path, peer: Peer, axes: &Axes) -> Result<Self> {
        Self::build_with(path, peer, Builder::new(axes, false))
    }

    /// The same where a path may be between endpoints that stand already, which then are these.
    ///
    /// # Errors
    /// As [`Lab::build`]; an endpoint cannot be reached.
    pub fn build_between(
        path: &'static Path,
        peer: Peer,
        axes: &Axes,
        endpoints: Option<&Endpoints>,
    ) -> Result<Self> {
        let mut builder = Builder::new(axes, false);
        builder.endpoints = endpoints.cloned();
        Self::build_with(path, peer, builder)
    }

    /// The same for a lab that may be kept: its daemons do not end with this process.
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub(crate) fn build_to_keep(path: &'static Path, peer: Peer, axes: &Axes) -> Result<Self> {
        Self::build_with(path, peer, Builder::new(axes, true))
    }

    fn build_with(path: &'static Path, peer: Peer, mut builder: Builder) -> Result<Self> {
        path.check_with(peer, builder.axes())?;
        let across = path.is_built && builder.has_real_wire();
        if across && !(peer == Peer::Far && path.crosses_cable) {
            return Err(no_cable(path.name));
        }
        builder.keep_switches_of(path.name);
        let topology = (path.build)(&mut builder, peer).map_err(|e| unsupported(path, e))?;
        if across {
            builder.reach_built(&topology)?;
        }
        // What `clean` does not know would outlive a SIGKILL.
        debug_assert!(
            builder.parts::<Service>().all(is_kind),
            "a daemon's home is missing in KINDS"
        );
        builder.settle()?;
        let offloads = offloads::apply(&builder, path.name, peer)?;
        for axis in ON_LAB {
            axis.apply(&mut builder).map_err(|e| unsupported(path, e))?;
        }
        if across {
            // Some drivers begin anew where a flag changes.
            builder.wait_for_cable()?;
        }
        let link = builder.link_ends(&topology)?;
        Ok(Self {
            builder,
            path,
            topology,
            offloads,
            link,
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
            Error::UnknownName(crate::model::UnknownName::new(
                "endpoint",
                role,
                self.spaces().iter().map(|s| s.role),
            ))
        })
    }

    /// The control group of its processes, where the machine has cgroup v2.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.builder.cgroup()
    }

    /// The name of its direct switch, which is state beside its namespaces.
    #[must_use]
    pub fn switch(&self) -> Option<&str> {
        self.builder.switch_name()
    }

    /// What its guest was booted with.
    #[must_use]
    pub fn guest_used(&self) -> Option<GuestUsed> {
        self.builder.guest_used()
    }

    /// What was counted of the queues of its taps since the lab was built; `None` where there is one queue alone, or
    /// nobody who counts.
    ///
    /// # Errors
    /// The tap switch does not answer.
    pub fn queue_counts(&self) -> Result<Option<tap::QueueCounts>> {
        tap::queue_counts(self.service())
    }

    /// The switch of its own that is daemons.
    pub(super) fn service(&self) -> Option<&Service> {
        self.builder.parts().next()
    }

    /// Processes that forward, beside the load's own.
    #[must_use]
    pub fn daemons(&self) -> Vec<u32> {
        self.builder.stack().flat_map(Part::pids).collect()
    }

    /// What forwards, where a path can be built in more than one way, or by a program.
    #[must_use]
    pub fn datapath(&self) -> Option<Datapath> {
        self.builder.stack().find_map(Part::datapath)
    }

    /// What is counted beside devices or in their place: joined sockets, what IPsec encrypts, what programs hand on.
    ///
    /// # Errors
    /// Who counts it does not answer.
    pub fn counted(&self) -> Result<Vec<DeviceCount>> {
        let mut counts = self.joined_counts()?;
        for part in self.builder.stack() {
            counts.extend(part.counted()?);
        }
        Ok(counts)
    }

    /// A process that forwards is gone, and how it ended.
    #[must_use]
    pub fn death(&self) -> Option<daemon::Error> {
        self.builder.stack().find_map(Part::death)
    }
}

fn is_kind(service: &Service) -> bool {
    KINDS
        .iter()
        .any(|kind| std::ptr::addr_eq(*kind, service.home))
}

/// A missing kernel feature, said of the path.
fn unsupported(path: &'static Path, error: Error) -> Error {
    match error {
        Error::Net(source @ hopyard_net::Error::Unsupported { .. }) => Error::Unsupported {
            path: path.name,
            source,
        },
        other => other,
    }
}
