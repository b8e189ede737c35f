//! `bridge` and `bridge-nf`: a Linux bridge in the hub, with netfilter's calls off or on.

use super::{Build, Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, HostLink, Peer};
use crate::topology::role;
use crate::{Builder, Result, Subnet, Topology};

/// The bridge's device.
const BRIDGE_DEVICE: &str = "br0";

pub(super) static BRIDGE: Path = Path {
    name: "bridge",
    summary: "a Linux bridge in the hub, veth ports, bridge netfilter calls off",
    needs: &[Need::VETH, Need::BRIDGE],
    ..path(|lab, peer| build(lab, peer, false))
};

pub(super) static BRIDGE_NF: Path = Path {
    name: "bridge-nf",
    summary: "a Linux bridge in the hub, veth ports, bridge netfilter calls on, no rules",
    needs: &[Need::VETH, Need::BRIDGE, Need::BRIDGE_NETFILTER],
    filter_sees: &Peer::ALL,
    ..path(|lab, peer| build(lab, peer, true))
};

/// What both have in common.
const fn path(build: Build) -> Path {
    Path {
        peers: &Peer::ALL,
        axes: &["containers", "host_link", "ports", "rules"],
        rules_instead: |_| "family bridge of nftables; path bridge-nf",
        mtu_owner: "the bridge: its smallest port",
        has_vlans: |_| true,
        learns: true,
        crosses_cable: true,
        ..Path::new(build)
    }
}

fn build(lab: &mut Builder, peer: Peer, netfilter: bool) -> Result<Topology> {
    lab.bridge(BRIDGE_DEVICE, netfilter)?;
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
        lab.space(role::HUB)?
            .set_master(&slot.port, BRIDGE_DEVICE)?;
        Ok(vec![
            Hop::tx(slot.role, ETH),
            Hop::rx(role::HUB, &slot.port),
        ])
    })?;
    let mut way = Vec::new();
    let server = lab.bridged_server(BRIDGE_DEVICE, peer, &mut way)?;
    lab.add_static_neighbours(&clients, &server)?;
    let is_pair = lab.axes().host_link == Some(HostLink::Pair);
    let in_use = clients.len() + usize::from(peer == Peer::Local || is_pair);
    for port in lab.idle_ports(in_use)? {
        lab.space(role::HUB)?.set_master(&port, BRIDGE_DEVICE)?;
    }
    Ok(Topology::new(clients, server, way))
}
