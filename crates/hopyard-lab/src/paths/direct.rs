//! `direct` and `direct-netkit`: hopyard's own switch in the hub; frames go by MAC address, with no bridge.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hook, Hop, Peer};
use crate::switching::Port;
use crate::topology::role;
use crate::{Builder, Result, Subnet, Topology};

pub(super) static DIRECT: Path = Path {
    name: "direct",
    summary: "hopyard's own eBPF switch in the hub, veth ports, no bridge",
    peers: &Peer::ALL,
    needs: &[Need::VETH, Need::DIRECT_SWITCH],
    needs_for: |axes| match axes.hook {
        Some(Hook::Tcx) => &[Need::TCX],
        Some(Hook::Clsact) | None => &[],
    },
    axes: &["containers", "ports", "rules", "hook"],
    rules_instead: |_| "the switch's ports (addresses); the endpoints",
    mtu_owner: "each port; the switch asks for smaller packets",
    has_vlans: |_| true,
    crosses_cable: true,
    ..Path::new(build)
};

pub(super) static DIRECT_NETKIT: Path = Path {
    name: "direct-netkit",
    summary: "direct with netkit ports: the switch's program runs where the guest sends",
    peers: &[Peer::Local, Peer::Far],
    needs: &[
        Need::NETKIT,
        Need::NETKIT_PROGRAMS,
        Need::DIRECT_SWITCH,
        Need::TCX,
    ],
    axes: &["containers"],
    rules_instead: |_| "the switch's ports (addresses); the endpoints",
    mtu_owner: "each port; the switch asks for smaller packets",
    has_vlans: |_| true,
    ..Path::new(|lab, peer| connect(lab, peer, Port::Netkit))
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    connect(lab, peer, Port::Veth)
}

fn connect(lab: &mut Builder, peer: Peer, port: Port) -> Result<Topology> {
    let mut ports = Vec::new();
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        port.connect(lab, slot.role, &slot.port)?;
        ports.push(slot.port.clone());
        let own = of_client(port, peer, &slot.port);
        Ok([Hop::tx(slot.role, ETH)].into_iter().chain(own).collect())
    })?;
    let mut way = Vec::new();
    let server = lab.switched_server(peer, port, ports, &mut way)?;
    lab.add_static_neighbours(&clients, &server)?;
    Ok(Topology::new(clients, server, way))
}

/// The client's port, where it counts anything of what goes between client and server.
fn of_client(port: Port, peer: Peer, device: &str) -> Option<Hop> {
    match (port, peer) {
        // What the host sends is turned round before the uplink's queue, and the port sends it.
        (Port::Veth, Peer::Host) => Some(Hop::rx(role::HUB, device)),
        // Frames to a guest are handed into its namespace, past the port's own device.
        (Port::Veth, _) => Some(Hop::rx_from_client(role::HUB, device)),
        (Port::Netkit, Peer::Local) => Some(Hop::tx_to_client(role::HUB, device)),
        // Frames from the wire are handed past it, and frames to the wire never come to it.
        (Port::Netkit, _) => None,
    }
}
