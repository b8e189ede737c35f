//! `bridge-nat`: as container engines connect by default: a bridge in the hub, which routes and hides the clients behind its
//! own address.

use hopyard_net::apply_ruleset;

use super::netfilter::{CONNTRACK, NAT};
use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{Endpoint, host, role};
use crate::{Builder, Result, Subnet, Topology};

/// The bridge's device.
const BRIDGE_DEVICE: &str = "br0";

pub(super) static BRIDGE_NAT: Path = Path {
    name: "bridge-nat",
    summary: "a Linux bridge in the hub, then IP forwarding and masquerade there (nftables)",
    needs: &[Need::VETH, Need::BRIDGE, Need::FILTER, NAT, CONNTRACK],
    axes: &["containers", "rules", "conntrack"],
    learns: true,
    by_name_only: true,
    ..Path::routed(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.bridge(BRIDGE_DEVICE, false)?;
    let own = Subnet::LAN.host(host::HUB);
    let router = lab.endpoint(role::HUB, BRIDGE_DEVICE, own)?;
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
        lab.space(role::HUB)?
            .set_master(&slot.port, BRIDGE_DEVICE)?;
        Ok(vec![
            Hop::tx(slot.role, ETH),
            Hop::rx(role::HUB, &slot.port),
        ])
    })?;
    let mut way = vec![Hop::rx(role::HUB, BRIDGE_DEVICE)];
    let (server, hub_side) = lab.routed_server(peer, None, &mut way)?;
    lab.forward(role::HUB, &[BRIDGE_DEVICE, hub_side])?;
    lab.add_static_neighbours(&clients, &Endpoint::new(role::HUB, BRIDGE_DEVICE, own))?;
    for client in &clients {
        lab.default_route(client.endpoint.role, router.addresses)?;
    }
    apply_ruleset(lab.space(role::HUB)?.ns(), &masquerade())?;
    lab.expect_source_translated();
    Ok(Topology::new(clients, server, way))
}

/// Whatever leaves the bridge's subnet by another device gets the hub's address.
fn masquerade() -> String {
    let [(four, four_length), (six, six_length)] = Subnet::LAN.prefixes();
    format!(
        "table inet hopyard-nat {{\nchain postrouting {{\ntype nat hook postrouting priority srcnat; policy accept;\n\
         ip saddr {four}/{four_length} oifname != \"{BRIDGE_DEVICE}\" masquerade\n\
         ip6 saddr {six}/{six_length} oifname != \"{BRIDGE_DEVICE}\" masquerade\n}}\n}}\n"
    )
}
