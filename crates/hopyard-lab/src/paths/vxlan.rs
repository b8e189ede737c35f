//! `vxlan`: a VXLAN tunnel (RFC 7348) over a veth pair, or over the wire.

use std::net::IpAddr;

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::Peer;

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

pub(super) static VXLAN: Path = Path {
    name: TUNNEL.path,
    summary: "a VXLAN tunnel; local: over a veth pair between the endpoints, far: from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::VXLAN],
    rules_instead: |_| "the endpoints; the host: the tunnel's UDP",
    mtu_owner: "the tunnel's device: 50 bytes less than below",
    learns: true,
    crosses_cable: true,
    ..Path::new(|lab, peer| TUNNEL.build(lab, peer))
};
