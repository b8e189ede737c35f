//! `gre`: a GRE tunnel for IP packets (RFC 2784), over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::Peer;

const TUNNEL: Tunnel = Tunnel {
    path: "gre",
    device: "gr0",
    // Outer IPv4 and GRE headers.
    overhead: 20 + 4,
    kind: |from, to| LinkKind::Gre {
        local: from.outer().v4,
        remote: to.outer().v4,
    },
};

pub(super) static GRE: Path = Path {
    name: TUNNEL.path,
    summary: "a GRE tunnel for IP packets; local: over a veth pair between the endpoints, far: from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::GRE],
    rules_instead: |_| "the endpoints; the host: the tunnel's GRE (IP protocol 47)",
    mtu_owner: "the tunnel's device: 24 bytes less than below",
    ..Path::new(|lab, peer| TUNNEL.build(lab, peer))
};
