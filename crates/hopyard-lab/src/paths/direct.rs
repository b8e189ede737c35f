//! `direct`: hopyard's own switch in the hub; frames go by MAC address, with no bridge.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hook, Hop, Peer};
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

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
        // Frames to a guest are handed into its namespace, past the port's own device. What the host sends
        // is turned round before the uplink's queue, and the port sends it.
        let port = match peer {
            Peer::Host => Hop::rx(role::HUB, &slot.port),
            _ => Hop::rx_from_client(role::HUB, &slot.port),
        };
        Ok(vec![Hop::tx(slot.role, ETH), port])
    })?;
    let ports = clients
        .iter()
        .filter_map(|client| client.way.last())
        .map(|hop| hop.device.clone())
        .collect();
    let mut way = Vec::new();
    let server = lab.switched_server(peer, ports, &mut way)?;
    lab.add_static_neighbours(&clients, &server)?;
    Ok(Topology::new(clients, server, way))
}
