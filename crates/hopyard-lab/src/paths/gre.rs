//! `gre`: a GRE tunnel for IP packets (RFC 2784), over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::Peer;
use crate::{Builder, Result, Topology};

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

pub(super) struct Gre;

impl Path for Gre {
    fn name(&self) -> &'static str {
        TUNNEL.path
    }

    fn summary(&self) -> &'static str {
        "a GRE tunnel for IP packets; local: over a veth pair between the endpoints, far: from the hub over the wire"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    fn mtu_owner(&self) -> &'static str {
        "the tunnel's device: 24 bytes less than below"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::GRE]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; the host: the tunnel's GRE (IP protocol 47)"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        TUNNEL.build(lab, peer)
    }
}
