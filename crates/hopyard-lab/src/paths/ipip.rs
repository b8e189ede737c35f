//! `ipip`: IPv4 packets in IPv4 packets (RFC 2003), over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Echo, Need, Path};
use crate::model::{Family, Peer};

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

pub(super) static IPIP: Path = Path {
    name: TUNNEL.path,
    summary: "IPv4 packets in IPv4 packets, the least tunnel; local: over a veth pair between the endpoints, far: from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::IPIP],
    // It carries no IPv6.
    has: |axes| axes.family != Family::V6,
    rules_instead: |_| "the endpoints; the host: the tunnel's IP protocol 4",
    mtu_owner: "the tunnel's device: 20 bytes less than below",
    echo: |family| match family {
        Family::V4 => Echo::BothWays,
        Family::V6 => Echo::None,
    },
    ..Path::new(|lab, peer| TUNNEL.build(lab, peer))
};
