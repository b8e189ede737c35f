//! `ipip`: IPv4 packets in IPv4 packets (RFC 2003), over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Echo, Need, Path};
use crate::model::{Axes, Family, Peer};
use crate::{Builder, Result, Topology};

const TUNNEL: Tunnel = Tunnel {
    path: "ipip",
    device: "ipip0",
    // The outer IPv4 header.
    overhead: 20,
    kind: |from, to| LinkKind::Ipip {
        local: from.outer().v4,
        remote: to.outer().v4,
    },
};

pub(super) struct Ipip;

impl Path for Ipip {
    fn name(&self) -> &'static str {
        TUNNEL.path
    }

    fn summary(&self) -> &'static str {
        "IPv4 packets in IPv4 packets, the least tunnel; local: over a veth pair between the endpoints, far: from the hub over the wire"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    fn mtu_owner(&self) -> &'static str {
        "the tunnel's device: 20 bytes less than below"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::IPIP]
    }

    /// It carries no IPv6.
    fn has(&self, axes: &Axes) -> bool {
        axes.family != Family::V6
    }

    fn echo(&self, family: Family) -> Echo {
        match family {
            Family::V4 => Echo::BothWays,
            Family::V6 => Echo::None,
        }
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; the host: the tunnel's IP protocol 4"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        TUNNEL.build(lab, peer)
    }
}
