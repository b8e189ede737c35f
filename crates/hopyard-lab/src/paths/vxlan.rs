//! `vxlan`: a VXLAN tunnel (RFC 7348) over a veth pair, or over the wire.

use std::net::IpAddr;

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::{Axes, Peer};
use crate::{Builder, Result, Topology};

const TUNNEL: Tunnel = Tunnel {
    path: "vxlan",
    device: "vx0",
    // Inner Ethernet, outer IPv4, UDP and VXLAN headers.
    overhead: 14 + 20 + 8 + 8,
    kind: |from, to| LinkKind::Vxlan {
        // Any will do, there is one tunnel per lab.
        vni: 42,
        local: IpAddr::V4(from.outer().v4),
        remote: IpAddr::V4(to.outer().v4),
        // RFC 7348.
        port: 4789,
        lower: None,
    },
};

pub(super) struct Vxlan;

impl Path for Vxlan {
    fn name(&self) -> &'static str {
        TUNNEL.path
    }

    fn summary(&self) -> &'static str {
        "a VXLAN tunnel; local: over a veth pair between the endpoints, far: from the hub over the wire"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "the tunnel's device: 50 bytes less than below"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::VXLAN]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; the host: the tunnel's UDP"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        TUNNEL.build(lab, peer)
    }
}
