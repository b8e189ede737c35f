//! `geneve`: a Geneve tunnel (RFC 8926) without options, over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::Peer;

const TUNNEL: Tunnel = Tunnel {
    path: "geneve",
    device: "gnv0",
    // Inner Ethernet, outer IPv4, UDP and Geneve headers.
    overhead: 14 + 20 + 8 + 8,
    kind: |_, to| LinkKind::Geneve {
        // Any will do, there is one tunnel per lab.
        vni: 42,
        remote: to.outer().v4.into(),
        // RFC 8926.
        port: 6081,
    },
};

pub(super) static GENEVE: Path = Path {
    name: TUNNEL.path,
    summary: "a Geneve tunnel without options; local: over a veth pair between the endpoints, far: from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::GENEVE],
    rules_instead: |_| "the endpoints; the host: the tunnel's UDP",
    mtu_owner: "the tunnel's device: 50 bytes less than below",
    learns: true,
    ..Path::new(|lab, peer| TUNNEL.build(lab, peer))
};
