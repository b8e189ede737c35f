//! `direct-shortcut`: the direct switch with its shortcut, which joins both sockets of a TCP connection.

use hopyard_switch::{LOSSES, Loss, SelfTest, test_shortcut};

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::switching::Port;
use crate::topology::role;
use crate::{Builder, Result, Subnet, Topology};

/// A kernel whose joined sockets do what others do, but for what the loads do not use.
pub(super) const SHORTCUT: Need = Need::new("sockmap shortcut", |_| probe())
    .since("6.2")
    .with_programs();

fn probe() -> hopyard_net::Result<()> {
    let what = "join sockets by sockmap";
    let unsupported = |why: String| hopyard_net::Error::Unsupported {
        what: what.to_owned(),
        feature: "sockmap".to_owned(),
        remedy: format!(
            "this needs Linux 6.2 or newer with CONFIG_BPF_STREAM_PARSER, CONFIG_CGROUP_BPF and cgroup v2 ({why}), or \
             choose path `direct`"
        ),
    };
    let test = test_shortcut().map_err(|error| unsupported(crate::chain(&error)))?;
    let accept: Vec<Loss> = LOSSES.map(|(loss, ..)| loss).to_vec();
    SelfTest::check(&test, what, &accept).map_err(|error| unsupported(error.to_string()))
}

pub(super) static DIRECT_SHORTCUT: Path = Path {
    name: "direct-shortcut",
    summary: "direct with its shortcut: TCP between two ports without packets (experimental)",
    // Sockets of the host and beyond the wire are never joined.
    peers: &[Peer::Local],
    needs: &[Need::VETH, Need::DIRECT_SWITCH, SHORTCUT],
    rules_instead: |_| "nobody: TCP makes no packets",
    mtu_owner: "each port; joined sockets have no packets",
    has_vlans: |_| true,
    by_name_only: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
        Ok(vec![
            Hop::any(slot.role, ETH),
            Hop::any(role::HUB, &slot.port),
        ])
    })?;
    let ports: Vec<String> = clients
        .iter()
        .filter_map(|client| client.way.last())
        .map(|hop| hop.device.clone())
        .collect();
    let mut devices = Vec::new();
    let server = lab.switched_server(peer, Port::Veth, ports.clone(), &mut devices)?;
    lab.add_static_neighbours(&clients, &server)?;
    // Frames pass the devices, messages of joined sockets do not. The switch counts both.
    let mut way: Vec<Hop> = devices
        .iter()
        .map(|hop| Hop::any(hop.namespace, &hop.device))
        .collect();
    way.extend(lab.join_ports(&ports)?);
    let mut topology = Topology::new(clients, server, way);
    // The counts of arrivals take the first of the way for the client's and the last for the server's.
    let server_side = topology.way.pop();
    topology.way.sort_by_key(|hop| hop.forward.is_empty());
    topology.way.extend(server_side);
    Ok(topology)
}
