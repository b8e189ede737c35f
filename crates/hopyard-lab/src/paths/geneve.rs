//! `geneve`: a Geneve tunnel (RFC 8926) without options, over a veth pair, or over the wire.

use hopyard_net::LinkKind;

use super::tunnel::Tunnel;
use super::{Need, Path};
use crate::model::{Axes, Peer};
use crate::{Builder, Result, Topology};

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

pub(super) struct Geneve;

impl Path for Geneve {
    fn name(&self) -> &'static str {
        TUNNEL.path
    }

    fn summary(&self) -> &'static str {
        "a Geneve tunnel without options; local: over a veth pair between the endpoints, far: from the hub over the wire"
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
        &[Need::VETH, Need::GENEVE]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; the host: the tunnel's UDP"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        TUNNEL.build(lab, peer)
    }
}
