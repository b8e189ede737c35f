//! `veth`: one virtual cable between two namespaces.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Client, Endpoint, Result, Subnet, Topology};

pub(super) static VETH: Path = Path {
    name: "veth",
    summary: "one veth pair between two namespaces; a pair for each container",
    peers: &[Peer::Local, Peer::Host],
    needs: &[Need::VETH],
    axes: &["containers", "queues"],
    learns: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let (other, device, number) = match peer {
        Peer::Host => (role::HUB, "veth-a", host::HUB),
        _ => (role::B, ETH, host::B),
    };
    let own = Subnet::LAN.host(number);
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        let end = slot.port_or(device);
        lab.queued_veth((slot.role, ETH), (other, end))?;
        lab.cable_end(slot, other, end, own, None)?;
        Ok(vec![Hop::tx(slot.role, ETH), Hop::rx(other, end)])
    })?;
    lab.introduce_by_cable(&clients, other, own)?;
    let server = Endpoint::new(other, end_of(&clients[0]), own);
    Ok(Topology::new(clients, server, Vec::new()))
}

/// The device at the server's end of a client's cable.
fn end_of(client: &Client) -> &str {
    client.way.last().map_or(ETH, |hop| &hop.device)
}
