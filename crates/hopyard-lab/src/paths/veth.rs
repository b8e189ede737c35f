//! `veth`: one virtual cable between two namespaces.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Client, Endpoint, Result, Subnet, Topology};

pub(super) struct Veth;

impl Path for Veth {
    fn name(&self) -> &'static str {
        "veth"
    }

    fn summary(&self) -> &'static str {
        "one veth pair between two namespaces; a pair for each container"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Host]
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "queues"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let (other, device, number) = match peer {
            Peer::Host => (role::HUB, "veth-a", host::HUB),
            _ => (role::B, ETH, host::B),
        };
        let own = Subnet::LAN.host(number);
        let clients = lab.clients(Subnet::LAN, |lab, slot| {
            let end = slot.port_or(device);
            lab.queued_veth((slot.role, ETH), (other, end))?;
            lab.cable_end(slot, other, end, own)?;
            Ok(vec![Hop::tx(slot.role, ETH), Hop::rx(other, end)])
        })?;
        lab.introduce_by_cable(&clients, other, own)?;
        let server = Endpoint::new(other, end_of(&clients[0]), own);
        Ok(Topology::new(clients, server, Vec::new()))
    }
}

/// The device at the server's end of a client's cable.
fn end_of(client: &Client) -> &str {
    client.way.last().map_or(ETH, |hop| &hop.device)
}
