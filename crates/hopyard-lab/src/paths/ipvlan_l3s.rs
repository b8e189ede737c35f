//! `ipvlan-l3s`: as `ipvlan`, but routed in the hub and passed through its packet filter on the way in and out.
//!
//! Devices on one uplink reach each other directly, as in layer 2 mode. Everything else is sent by the hub's own
//! routes and received by its own stack up to hook `input` (`drivers/net/ipvlan/ipvlan_l3s.c`). Nobody answers ARP
//! or neighbour discovery for these devices, so both ends of the wire are given permanent neighbours.

use hopyard_net::{IpvlanMode, LinkKind, probe_link};

use super::Path;
use super::macvlan::on_uplink;
use super::{Carried, Need, at_uplink};
use crate::error::or_another_path;
use crate::model::Peer;
use crate::topology::{host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Error, Result, Subnet, Topology};

/// ipvlan with mode l3s, which a kernel can be built without.
const NEED: Need = Need {
    since: "4.9",
    carried: Carried::modules(&["ipvlan"]),
    is_device: true,
    ..Need::new("ipvlan mode l3s", |_| {
        probe_link(kind()).map_err(or_another_path)
    })
};

pub(super) static IPVLAN_L3S: Path = Path {
    name: "ipvlan-l3s",
    summary: "ipvlan on the hub's uplink, layer 3 with netfilter (l3s); host: the hub has one too",
    peers: &Peer::ALL,
    needs: &[Need::VETH, NEED],
    axes: &["containers"],
    // What leaves by the uplink passes hooks `output` and `postrouting` of the hub, what arrives there `prerouting`
    // and `input`.
    filter_sees: &[Peer::Host, Peer::Far],
    rules_instead: at_uplink,
    mtu_owner: "the uplink, which bounds the others",
    // A host does not talk to the ipvlans on its own device; as a peer it has one too.
    host_access: Some(false),
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let topology = on_uplink(lab, peer, "ipv-hub", kind)?;
    if peer == Peer::Far {
        route_by_uplink(lab, &topology)?;
    }
    Ok(topology)
}

fn kind() -> LinkKind<'static> {
    LinkKind::Ipvlan {
        lower: UPLINK.to_owned(),
        mode: IpvlanMode::L3s,
    }
}

/// Routes and neighbours on the wire: the hub sends for the clients, and the far end has to find them.
fn route_by_uplink(lab: &mut Builder, topology: &Topology) -> Result<()> {
    let far_mac = mac(lab, role::FAR, FAR_END)?;
    let hub_mac = mac(lab, role::HUB, UPLINK)?;
    let hub = lab.space(role::HUB)?;
    for subnet in Subnet::LAN.prefixes() {
        hub.add_route(Some(subnet), None, Some(UPLINK))?;
    }
    for (address, _) in Subnet::LAN.host(host::FAR).alone() {
        hub.add_neighbour(UPLINK, address, far_mac)?;
    }
    for client in topology.clients() {
        let addresses = lab.of_families(client.role, client.addresses.alone());
        let far = lab.space(role::FAR)?;
        for (address, _) in addresses {
            far.add_neighbour(FAR_END, address, hub_mac)?;
        }
    }
    Ok(())
}

fn mac(lab: &mut Builder, role: &'static str, device: &str) -> Result<[u8; 6]> {
    let link = lab.space(role)?.link(device)?;
    link.mac
        .ok_or_else(|| Error::Kept(format!("`{device}` has no Ethernet address")))
}
