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
use crate::model::{Axes, Peer};
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

pub(super) struct IpvlanL3s;

impl Path for IpvlanL3s {
    fn name(&self) -> &'static str {
        "ipvlan-l3s"
    }

    fn summary(&self) -> &'static str {
        "ipvlan on the hub's uplink, layer 3 with netfilter (l3s); host: the hub has one too"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    /// What leaves by the uplink passes hooks `output` and `postrouting` of the hub, what arrives there `prerouting`
    /// and `input`.
    fn filter_sees(&self, peer: Peer) -> bool {
        peer != Peer::Local
    }

    /// A host does not talk to the ipvlans on its own device; as a peer it has one too.
    fn reaches_host(&self, _: &Axes) -> bool {
        false
    }

    fn mtu_owner(&self) -> &'static str {
        "the uplink, which bounds the others"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, NEED]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers"]
    }

    fn rules_instead(&self, peer: Peer) -> &'static str {
        at_uplink(peer)
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let topology = on_uplink(lab, peer, "ipv-hub", kind)?;
        if peer == Peer::Far {
            route_by_uplink(lab, &topology)?;
        }
        Ok(topology)
    }
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
