//! `netkit-redirect` and `netkit-redirect-l3`: a netkit pair into the host for each end, and eBPF programs of the pairs redirect what
//! the ends send, as networks of containers have it. From the wire packets go straight into the endpoint's namespace.

use hopyard_net::NetkitLayer;

use super::{Build, Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Result, Subnet, Topology};

/// The hub's ends of the pairs.
const PORT_A: &str = "nk-a";
const PORT_B: &str = "nk-b";

pub(super) static L2: Path = Path {
    name: "netkit-redirect",
    summary: "netkit pairs into the host whose eBPF programs redirect frames: to the other pair, to the wire, and back by peer redirect",
    ..path(|lab, peer| build(lab, peer, NetkitLayer::L2))
};

pub(super) static L3: Path = Path {
    name: "netkit-redirect-l3",
    summary: "the same in layer 3 mode: IP packets without Ethernet addresses; the host routes to the wire",
    ..path(|lab, peer| build(lab, peer, NetkitLayer::L3))
};

/// What both have in common.
const fn path(build: Build) -> Path {
    Path {
        peers: &[Peer::Local, Peer::Far],
        needs: &[Need::NETKIT, Need::NETKIT_PROGRAMS],
        rules_instead: |_| "the pair's eBPF programs; the endpoints",
        ..Path::new(build)
    }
}

fn build(lab: &mut Builder, peer: Peer, layer: NetkitLayer) -> Result<Topology> {
    lab.netkit(layer, (role::HUB, PORT_A), (role::A, ETH))?;
    match (peer, layer) {
        (Peer::Far, NetkitLayer::L2) => bridged(lab),
        (Peer::Far, NetkitLayer::L3) => routed(lab),
        _ => to_other_pair(lab, layer),
    }
}

fn to_other_pair(lab: &mut Builder, layer: NetkitLayer) -> Result<Topology> {
    lab.netkit(layer, (role::HUB, PORT_B), (role::B, ETH))?;
    let redirected = lab.redirect_by_netkit([PORT_A, PORT_B])?;
    let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
    let server = lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?;
    let way = vec![
        Hop::tx(role::A, ETH),
        Hop::tx_to_client(role::HUB, PORT_A),
        redirected,
        Hop::tx_to_server(role::HUB, PORT_B),
        Hop::rx(role::B, ETH),
    ];
    Ok(Topology::pair(client, server, way))
}

/// Frames to the wire, with the addresses of both ends.
fn bridged(lab: &mut Builder) -> Result<Topology> {
    lab.wire()?;
    let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
    let redirected = lab.redirect_behind(PORT_A, UPLINK, None)?;
    let mut way = vec![Hop::tx(role::A, ETH), redirected];
    let server = lab.far_end(Subnet::LAN, &mut way)?;
    Ok(Topology::pair(client, server, way))
}

/// Packets to the wire, where the host asks for neighbours for them and answers.
fn routed(lab: &mut Builder) -> Result<Topology> {
    let client = lab.endpoint(role::A, ETH, Subnet::SIDE_A.host(host::A))?;
    let mut behind = Vec::new();
    let (server, uplink) = lab.routed_server(Peer::Far, None, &mut behind)?;
    lab.space(role::HUB)?.add_link_local(uplink)?;
    for network in Subnet::WIRE.prefixes() {
        let inside = lab.space(role::A)?;
        inside.add_route(Some(network), None, Some(ETH))?;
    }
    let redirected = lab.redirect_behind(PORT_A, uplink, Some(client.addresses))?;
    let way = [Hop::tx(role::A, ETH), redirected]
        .into_iter()
        .chain(behind);
    Ok(Topology::pair(client, server, way.collect()))
}
