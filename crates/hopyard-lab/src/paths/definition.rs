//! What a path is, and what can be asked of each.

use std::fmt;
use std::time::Duration;

use super::{Carried, Need};
use crate::axes::ON_LAB;
use crate::load::Sockets;
use crate::model::{Attach, Axes, Axis, DeviceOffloads, Family, Feature, LoadKind, Peer};
use crate::{Builder, Error, Result, Topology};

/// Builds a path towards one of its peers.
pub type Build = fn(&mut Builder, Peer) -> Result<Topology>;

/// One way to connect an endpoint.
pub struct Path {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The peers that make sense for it.
    pub peers: &'static [Peer],
    /// Those of them that are left where its guest is attached in some way, for a path with guests.
    pub(super) peers_of_attach: Option<fn(Attach) -> &'static [Peer]>,
    /// What this host must have for it.
    pub needs: &'static [Need],
    /// What it must have besides for these axes.
    pub needs_for: fn(&Axes) -> &'static [Need],
    /// The axes that it has beyond those of all paths.
    pub axes: &'static [&'static str],
    /// Has it a cell with these axes? Where it has not, whoever sweeps them goes without.
    pub has: fn(&Axes) -> bool,
    /// The peers for which packet filter rules of the hub (nftables, iptables) see the packets between the endpoint and them.
    /// Where the hub is the peer, as a host sees its own.
    pub filter_sees: &'static [Peer],
    /// Who else filters the traffic to a peer where rules of the hub do not see it, for people.
    pub rules_instead: fn(Peer) -> &'static str,
    /// Whose MTU is that of the path, for people.
    pub mtu_owner: &'static str,
    /// Does it put an endpoint into a VLAN by itself, untagged inside and tagged on the wire?
    pub(super) has_vlans: fn(&Axes) -> bool,
    /// Does it find further Ethernet addresses behind an endpoint by itself, such as those of a bridge inside a container?
    pub(super) learns: bool,
    /// Does an endpoint reach the host's own addresses without a further device on the host? `None` where it does if the
    /// host is one of its peers.
    pub(super) host_access: Option<bool>,
    /// The peers towards which anybody can build it in a user namespace of their own; `None` where that follows from its needs.
    pub(super) unprivileged: Option<&'static [Peer]>,
    /// Can its wire be a real cable to another machine? Its far end is the card alone then, or has what [`crate::far`] can ask for.
    pub crosses_cable: bool,
    /// The sockets of its two ends. Without devices they are no TCP and UDP.
    pub sockets: Sockets,
    /// Loads that it cannot carry though its sockets could: each with why, and what to choose.
    pub(super) refused_loads: &'static [(LoadKind, &'static str)],
    /// Which echo requests (ICMP) of an IP version are answered.
    pub echo: fn(Family) -> Echo,
    /// Is it left out of "all", since it takes so much longer than others or is a question of its own?
    pub by_name_only: bool,
    /// Is something built for it, rather than found?
    pub is_built: bool,
    /// How much longer than others it takes to build and to take down, roughly.
    pub extra_time: Duration,
    /// Builds it. The peer is one of [`Path::peers`]. Fails where the kernel cannot or will not.
    pub build: Build,
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

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Path {
    /// What most paths have in common. A path says at least its name, its summary, its peers and its needs besides.
    pub(super) const fn new(build: Build) -> Self {
        Self {
            name: "",
            summary: "",
            peers: &[],
            peers_of_attach: None,
            needs: &[],
            needs_for: |_| &[],
            axes: &[],
            has: |_| true,
            filter_sees: &[Peer::Host],
            rules_instead: |_| "the endpoints",
            mtu_owner: "each pair of devices",
            has_vlans: |_| false,
            learns: false,
            host_access: None,
            unprivileged: None,
            crosses_cable: false,
            sockets: Sockets::Internet,
            refused_loads: &[],
            echo: |_| Echo::BothWays,
            by_name_only: false,
            is_built: true,
            extra_time: Duration::ZERO,
            build,
        }
    }

    /// A path whose hub is a router between pairs of devices.
    pub(super) const fn routed(build: Build) -> Self {
        Self {
            peers: &[Peer::Local, Peer::Far],
            axes: &["containers", "rules"],
            filter_sees: &Peer::ALL,
            mtu_owner: "each pair; the host asks for smaller packets or cuts them",
            // The host is the router.
            host_access: Some(true),
            ..Self::new(build)
        }
    }

    /// Can it be asked for with this peer?
    ///
    /// # Errors
    /// It has no such peer; the error lists those it has.
    pub fn check(&self, peer: Peer) -> Result<()> {
        if self.peers.contains(&peer) {
            return Ok(());
        }
        Err(Error::NoSuchPeer {
            path: self.name,
            peer,
            choices: names(self.peers),
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
            path: self.name,
            peer,
            attach,
            choices: names(peers),
        })
    }

    /// Those of its peers that are left where its guest is attached like this.
    #[must_use]
    pub fn peers_attached(&self, attach: Attach) -> &'static [Peer] {
        self.peers_of_attach.map_or(self.peers, |of| of(attach))
    }

    /// Does an endpoint reach the host's own addresses without a further device on the host?
    #[must_use]
    pub fn reaches_host(&self, axes: &Axes) -> bool {
        let attach = axes.attach.unwrap_or_default();
        let is_peer = || self.peers_attached(attach).contains(&Peer::Host);
        self.host_access.unwrap_or_else(is_peer)
    }

    /// The first release of Linux that has all it needs, where something is built.
    #[must_use]
    pub fn since(&self) -> Option<&'static str> {
        let number = |release: &&str| -> Vec<u32> {
            let parts = release.split('.').filter_map(|part| part.parse().ok());
            parts.collect()
        };
        let needs = self.needs.iter().map(|need| need.since);
        let newest = needs.chain([NAMESPACES]).max_by_key(number);
        newest.filter(|_| self.is_built)
    }

    /// Has it this axis?
    #[must_use]
    pub fn has_axis(&self, axis: &Axis) -> bool {
        match axis.of_path {
            true => self.axes.contains(&axis.name),
            false => !axis.of_devices || self.sockets == Sockets::Internet,
        }
    }

    /// What of these axes matters for a cell of it.
    #[must_use]
    pub fn axes_of(&self, axes: &Axes, load: LoadKind, peer: Peer) -> Axes {
        let axes = axes.for_cell(load, peer, self.axes);
        match self.sockets {
            Sockets::Internet => axes,
            Sockets::UnixStream | Sockets::UnixSeqpacket => axes.without_devices(),
        }
    }

    /// Can its sockets carry a load?
    ///
    /// # Errors
    /// They cannot; the error says which loads they can.
    pub fn check_load(&self, load: LoadKind) -> Result<()> {
        let mut refused = self.refused_loads.iter();
        let carried = match refused.find(|(refused, _)| *refused == load) {
            Some((_, why)) => Err((*why).to_owned()),
            None => self.sockets.carry(load),
        };
        carried.map_err(|why| Error::NotCarried {
            path: self.name,
            why,
        })
    }

    /// Can this host build it? Found out by making what it needs in a throw-away namespace.
    ///
    /// # Errors
    /// What is missing and what would provide it, or no privilege to find out.
    pub fn available(&self) -> Result<()> {
        self.probe(self.needs)
    }

    /// Can this host build it with these axes, where it can be built at all?
    ///
    /// # Errors
    /// As [`Path::available`](Self::available).
    pub fn available_with(&self, axes: &Axes) -> Result<()> {
        self.probe((self.needs_for)(axes))?;
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

    /// What a machine must carry to build it with these axes.
    pub fn carried(&self, axes: &Axes) -> impl Iterator<Item = Carried> {
        let of_path = self.needs.iter().chain((self.needs_for)(axes));
        let of_axes = ON_LAB.iter().flat_map(|axis| axis.needs(axes));
        let needed = of_path.chain(of_axes).map(|need| need.carried);
        needed.chain(of_congestion(axes))
    }

    /// What it offers beside its speed, between an endpoint and this peer.
    pub fn offers(&self, peer: Peer, axes: &Axes) -> Vec<Feature> {
        let offers = |feature: &Feature| match feature {
            Feature::Filter => self.filter_sees.contains(&peer),
            Feature::Vlan => (self.has_vlans)(axes),
            Feature::HostAccess => self.reaches_host(axes),
            Feature::Unprivileged => self.is_unprivileged(peer, axes),
            Feature::Learning => self.learns,
        };
        Feature::ALL.into_iter().filter(offers).collect()
    }

    /// Can anybody build it in a user namespace of their own? Devices can be made there; programs and hooks are mostly the host's.
    fn is_unprivileged(&self, peer: Peer, axes: &Axes) -> bool {
        if let Some(peers) = self.unprivileged {
            return peers.contains(&peer);
        }
        let mut needs = self.needs.iter().chain((self.needs_for)(axes));
        peer == Peer::Local && self.is_built && needs.all(|need| need.is_device)
    }

    fn probe(&self, needs: &[Need]) -> Result<()> {
        for need in needs {
            need.probe().map_err(|source| match source {
                source @ hopyard_net::Error::Unsupported { .. } => Error::Unsupported {
                    path: self.name,
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

/// Modules of congestion controls. A host loads them when a socket asks for one; a guest has no modprobe.
static CONGESTION: [&str; 16] = [
    "tcp_bbr",
    "tcp_bic",
    "tcp_cdg",
    "tcp_cubic",
    "tcp_dctcp",
    "tcp_highspeed",
    "tcp_htcp",
    "tcp_hybla",
    "tcp_illinois",
    "tcp_lp",
    "tcp_nv",
    "tcp_scalable",
    "tcp_vegas",
    "tcp_veno",
    "tcp_westwood",
    "tcp_yeah",
];

/// The module that axis `congestion` needs.
fn of_congestion(axes: &Axes) -> Option<Carried> {
    let asked = axes.congestion.as_deref()?;
    let module = CONGESTION
        .iter()
        .find(|module| module.strip_prefix("tcp_") == Some(asked))?;
    Some(Carried::modules(std::slice::from_ref(module)))
}

fn names(peers: &[Peer]) -> String {
    let names: Vec<_> = peers.iter().map(|peer| peer.name()).collect();
    names.join(", ")
}
