//! `vrf`: `veth-route` within a routing domain of the hub, as hosts with several tenants have it.

use hopyard_net::LinkKind;

use super::{Need, Path};
use crate::model::{Hop, Peer};
use crate::routing::Domain;
use crate::topology::role;
use crate::{Builder, Result, Topology};

const DOMAIN: Domain = Domain {
    device: "vrf0",
    table: 100,
};

pub(super) static VRF: Path = Path {
    name: "vrf",
    summary: "veth-route within a routing domain of the hub (VRF), which has a table of its own",
    needs: &[Need::VETH, Need::VRF],
    learns: true,
    crosses_cable: true,
    // The host needs an address within the domain alone.
    ..Path::routed(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let Domain { device, table } = DOMAIN;
    lab.link(role::HUB, device, LinkKind::Vrf { table })?;
    let mut topology = lab.routed_within(peer, Some(DOMAIN))?;
    // What comes in by any port counts as received by the domain's device, both ways.
    let domain = Hop::rx_of_both(role::HUB, device);
    let last = topology.way.len().saturating_sub(2);
    topology.way.insert(last, domain);
    Ok(topology)
}
