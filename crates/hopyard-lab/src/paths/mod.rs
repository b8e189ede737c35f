//! The paths: one file each, one line each in [`PATHS`].

mod as_is;
mod bridge;
mod bridge_nat;
mod direct;
mod direct_shortcut;
mod flowtable;
mod forward;
mod forward_each;
mod geneve;
mod gre;
mod ipip;
mod ipsec;
mod ipvlan;
mod ipvlan_l3s;
mod macvlan;
mod native;
mod netfilter;
mod netkit;
mod open_vswitch;
pub(super) mod pasta;
mod service;
pub(super) mod slirp4netns;
mod tap_mq;
pub(super) mod tap_vde;
pub(super) mod tun_vpn;
mod tunnel;
mod user_mode;
mod veth;
mod veth_route;
mod vm;
mod vxlan;
mod wireguard;

use std::fmt;
use std::time::Duration;

pub use super::need::Need;

use super::axes::ON_LAB;
use super::{Builder, Error, Result, Topology};
pub use crate::guest::Carried;
use crate::model::{Attach, Axes, Family, Feature, Peer, UnknownName};

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
    /// Does it put an endpoint into a VLAN by itself, untagged inside and tagged on the wire?
    fn has_vlans(&self, _: &Axes) -> bool {
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
        Ok(())
    }

    /// What it offers beside its speed, between an endpoint and this peer.
    pub fn offers(&self, peer: Peer, axes: &Axes) -> Vec<Feature> {
        let offers = |feature: &Feature| match feature {
            Feature::Filter => self.filter_sees(peer),
            Feature::Vlan => self.has_vlans(axes),
            Feature::HostAccess => self.reaches_host(axes),
            Feature::Unprivileged => self.is_unprivileged(peer, axes),
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

/// Where rules see the traffic of devices that share an uplink.
fn at_uplink(peer: Peer) -> &'static str {
    match peer {
        Peer::Far => "family netdev of nftables, at the uplink",
        Peer::Local | Peer::Host => "the endpoints",
    }
}

fn names(peers: &[Peer]) -> String {
    let names: Vec<_> = peers.iter().map(|peer| peer.name()).collect();
    names.join(", ")
}

/// Every path, in the order in which tables show them.
pub static PATHS: &[&dyn Path] = &[
    &native::Native,
    &veth::Veth,
    &veth_route::VethRoute,
    &bridge::BRIDGE,
    &bridge::BRIDGE_NF,
    &bridge_nat::BridgeNat,
    &service::SERVICE_NFT,
    &service::SERVICE_IPTABLES,
    &flowtable::Flowtable,
    &open_vswitch::OVS_VETH,
    &open_vswitch::OVS_INTERNAL,
    &direct::Direct,
    &direct_shortcut::DirectShortcut,
    &tap_mq::TapMq,
    &tap_vde::TapVde,
    &tun_vpn::TunVpn,
    &pasta::PASTA,
    &slirp4netns::SLIRP4NETNS,
    &macvlan::Macvlan,
    &ipvlan::Ipvlan,
    &ipvlan_l3s::IpvlanL3s,
    &vxlan::Vxlan,
    &geneve::Geneve,
    &gre::Gre,
    &ipip::Ipip,
    &wireguard::Wireguard,
    &ipsec::TRANSPORT,
    &ipsec::TUNNEL,
    &netkit::Netkit,
    &vm::Vm,
    &forward::Forward,
    &forward_each::ForwardEach,
    &as_is::AsIs,
];

/// Why this host cannot build the path of that name; `None` where it can.
#[must_use]
pub fn lacking(name: &str) -> Option<String> {
    let path = path(name).map_err(Error::from);
    let available = path.and_then(<dyn Path>::available);
    available.err().map(|error| crate::chain(&error))
}

/// What a machine must carry to build every path.
#[must_use]
pub fn carried() -> Vec<Carried> {
    let needs = PATHS.iter().flat_map(|path| path.needs());
    needs.map(|need| need.carried).collect()
}

/// The path of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn path(name: &str) -> std::result::Result<&'static dyn Path, UnknownName> {
    PATHS
        .iter()
        .copied()
        .find(|path| path.name() == name)
        .ok_or_else(|| UnknownName {
            kind: "path",
            name: name.to_owned(),
            choices: PATHS
                .iter()
                .map(|path| path.name())
                .collect::<Vec<_>>()
                .join(", "),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_path_has_a_peer() {
        let mut names: Vec<_> = PATHS.iter().map(|p| p.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PATHS.len());
        for path in PATHS {
            assert!(!path.peers().is_empty(), "{}", path.name());
            assert!(!path.summary().is_empty(), "{}", path.name());
        }
    }

    #[test]
    fn every_path_says_what_it_needs() {
        let carried = carried();
        let wanted: Vec<_> = carried.iter().flat_map(|c| c.modules).collect();
        for module in ["veth", "bridge", "br_netfilter", "openvswitch", "ipvlan"] {
            assert!(wanted.contains(&&module), "{module}");
        }
    }

    #[test]
    fn an_unknown_path_lists_the_known() {
        let error = path("wormhole").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no path `wormhole`: choose native, veth,"),
            "{error}"
        );
    }
}
