//! What a path is, and what can be asked of each.

use std::fmt;
use std::time::Duration;

use super::Need;
use crate::axes::ON_LAB;
use crate::load::Sockets;
use crate::model::{Attach, Axes, Axis, DeviceOffloads, Family, Feature, LoadKind, Peer};
use crate::{Builder, Error, Result, Topology};

/// One way to connect an endpoint.
pub trait Path: Sync {
    /// Its name on the command line and in results.
    fn name(&self) -> &'static str;
    /// What it is, in a line.
    fn summary(&self) -> &'static str;
    /// The peers that make sense for it.
    fn peers(&self) -> &'static [Peer];
    /// Those of them that are left where its guest is attached like this.
    fn peers_attached(&self, _attach: Attach) -> &'static [Peer] {
        self.peers()
    }
    /// What this host must have for it.
    fn needs(&self) -> &'static [Need];
    /// What it must have besides for these axes.
    fn needs_for(&self, _: &Axes) -> &'static [Need] {
        &[]
    }
    /// The axes that it has beyond those of all paths.
    fn axes(&self) -> &'static [&'static str] {
        &[]
    }
    /// Has it a cell with these axes? Where it has not, whoever sweeps them goes without.
    fn has(&self, _: &Axes) -> bool {
        true
    }
    /// Do packet filter rules of the hub (nftables, iptables) see the packets between the endpoint and
    /// this peer? Where the hub is the peer, as a host sees its own.
    fn filter_sees(&self, peer: Peer) -> bool {
        peer == Peer::Host
    }
    /// Who else filters the traffic to this peer where rules of the hub do not see it, for people.
    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints"
    }
    /// Whose MTU is that of the path, for people.
    fn mtu_owner(&self) -> &'static str {
        "each pair of devices"
    }
    /// Does it put an endpoint into a VLAN by itself, untagged inside and tagged on the wire?
    fn has_vlans(&self, _: &Axes) -> bool {
        false
    }
    /// Does it find further Ethernet addresses behind an endpoint by itself, such as those of a bridge inside a container?
    fn learns(&self, _: &Axes) -> bool {
        false
    }
    /// Does an endpoint reach the host's own addresses without a further device on the host?
    fn reaches_host(&self, axes: &Axes) -> bool {
        let attach = axes.attach.unwrap_or_default();
        self.peers_attached(attach).contains(&Peer::Host)
    }
    /// Can anybody build it in a user namespace of their own? Devices can be made there; programs and hooks are mostly the host's.
    fn is_unprivileged(&self, peer: Peer, axes: &Axes) -> bool {
        let mut needs = self.needs().iter().chain(self.needs_for(axes));
        peer == Peer::Local && self.is_built() && needs.all(|need| need.is_device)
    }
    /// The sockets of its two ends. Without devices they are no TCP and UDP.
    fn sockets(&self) -> Sockets {
        Sockets::Internet
    }
    /// Which echo requests (ICMP) of that IP version are answered?
    fn echo(&self, _: Family) -> Echo {
        Echo::BothWays
    }
    /// Is it left out of "all", since it takes so much longer than others or is a question of its own?
    fn by_name_only(&self) -> bool {
        false
    }
    /// Is something built for it, rather than found?
    fn is_built(&self) -> bool {
        true
    }
    /// How much longer than others it takes to build and to take down, roughly.
    fn extra_time(&self) -> Duration {
        Duration::ZERO
    }
    /// Builds it. The peer is one of [`Path::peers`].
    ///
    /// # Errors
    /// The kernel cannot or will not.
    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology>;
}

/// Which echo requests are answered over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// From client to server, and back.
    BothWays,
    /// From client to server alone: the server has no way to begin with the client.
    ToServer,
    /// None, though all loads work: a program in between passes on TCP and UDP alone.
    None,
}

impl fmt::Debug for dyn Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl dyn Path {
    /// Can it be asked for with this peer?
    ///
    /// # Errors
    /// It has no such peer; the error lists those it has.
    pub fn check(&self, peer: Peer) -> Result<()> {
        if self.peers().contains(&peer) {
            return Ok(());
        }
        Err(Error::NoSuchPeer {
            path: self.name(),
            peer,
            choices: names(self.peers()),
        })
    }

    /// Can it be asked for with this peer and these axes?
    ///
    /// # Errors
    /// As [`Path::check`](Self::check).
    pub fn check_with(&self, peer: Peer, axes: &Axes) -> Result<()> {
        self.check(peer)?;
        let attach = axes.attach.unwrap_or_default();
        let peers = self.peers_attached(attach);
        if peers.contains(&peer) {
            return Ok(());
        }
        Err(Error::NoSuchPeerAttached {
            path: self.name(),
            peer,
            attach,
            choices: names(peers),
        })
    }

    /// The first release of Linux that has all it needs, where something is built.
    #[must_use]
    pub fn since(&self) -> Option<&'static str> {
        let number = |release: &&str| -> Vec<u32> {
            let parts = release.split('.').filter_map(|part| part.parse().ok());
            parts.collect()
        };
        let needs = self.needs().iter().map(|need| need.since);
        let newest = needs.chain([NAMESPACES]).max_by_key(number);
        newest.filter(|_| self.is_built())
    }

    /// Has it this axis?
    #[must_use]
    pub fn has_axis(&self, axis: &Axis) -> bool {
        match axis.of_path {
            true => self.axes().contains(&axis.name),
            false => !axis.of_devices || self.sockets() == Sockets::Internet,
        }
    }

    /// What of these axes matters for a cell of it.
    #[must_use]
    pub fn axes_of(&self, axes: &Axes, load: LoadKind, peer: Peer) -> Axes {
        let axes = axes.for_cell(load, peer, self.axes());
        match self.sockets() {
            Sockets::Internet => axes,
            Sockets::UnixStream | Sockets::UnixSeqpacket => axes.without_devices(),
        }
    }

    /// Can its sockets carry a load?
    ///
    /// # Errors
    /// They cannot; the error says which loads they can.
    pub fn check_load(&self, load: LoadKind) -> Result<()> {
        let carried = self.sockets().carry(load);
        carried.map_err(|why| Error::NotCarried {
            path: self.name(),
            why,
        })
    }

    /// Can this host build it? Found out by making what it needs in a throw-away namespace.
    ///
    /// # Errors
    /// What is missing and what would provide it, or no privilege to find out.
    pub fn available(&self) -> Result<()> {
        self.probe(self.needs())
    }

    /// Can this host build it with these axes, where it can be built at all?
    ///
    /// # Errors
    /// As [`Path::available`](Self::available).
    pub fn available_with(&self, axes: &Axes) -> Result<()> {
        self.probe(self.needs_for(axes))?;
        for axis in ON_LAB {
            self.probe(axis.needs(axes))?;
            axis.check(axes)?;
        }
        // Offload switches for devices of one path name one that there is.
        let switches = axes.device_offload.iter().flat_map(DeviceOffloads::iter);
        for path in switches.filter_map(|one| one.path.as_deref()) {
            super::path(path)?;
        }
        Ok(())
    }

    /// What it offers beside its speed, between an endpoint and this peer.
    pub fn offers(&self, peer: Peer, axes: &Axes) -> Vec<Feature> {
        let offers = |feature: &Feature| match feature {
            Feature::Filter => self.filter_sees(peer),
            Feature::Vlan => self.has_vlans(axes),
            Feature::HostAccess => self.reaches_host(axes),
            Feature::Unprivileged => self.is_unprivileged(peer, axes),
            Feature::Learning => self.learns(axes),
        };
        Feature::ALL.into_iter().filter(offers).collect()
    }

    fn probe(&self, needs: &[Need]) -> Result<()> {
        for need in needs {
            need.probe().map_err(|source| match source {
                source @ hopyard_net::Error::Unsupported { .. } => Error::Unsupported {
                    path: self.name(),
                    source,
                },
                other => Error::Net(other),
            })?;
        }
        Ok(())
    }
}

/// The first release of Linux with network namespaces.
const NAMESPACES: &str = "2.6.24";

fn names(peers: &[Peer]) -> String {
    let names: Vec<_> = peers.iter().map(|peer| peer.name()).collect();
    names.join(", ")
}
