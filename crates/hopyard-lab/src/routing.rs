//! The hub as a router.

use super::builder::ETH;
use super::topology::{Endpoint, host, role};
use super::wire::UPLINK;
use super::{Builder, Client, Result, Subnet, Topology};
use crate::model::{Hop, Peer};

/// The hub's device towards endpoint `b`.
const SIDE_B: &str = "veth-b";

/// A routing domain of the hub (VRF).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Domain {
    /// The VRF device, master of the hub's ports.
    pub(crate) device: &'static str,
    /// The table of its routes.
    pub(crate) table: u32,
}

impl Builder {
    /// A veth pair into the hub for each endpoint, and routes: the hub forwards.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn routed(&mut self, peer: Peer) -> Result<Topology> {
        self.routed_within(peer, None)
    }

    /// As [`Builder::routed`], with all devices of the hub in a routing domain if one is named.
    ///
    /// # Errors
    /// As [`Builder::routed`].
    pub(crate) fn routed_within(&mut self, peer: Peer, domain: Option<Domain>) -> Result<Topology> {
        let hub = Subnet::SIDE_A.host(host::HUB);
        let clients = self.clients(Subnet::SIDE_A, |lab, slot| {
            lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
            lab.join_domain(&slot.port, domain)?;
            let table = domain.map(|domain| domain.table);
            lab.cable_end(slot, role::HUB, &slot.port, hub, table)?;
            Ok(vec![
                Hop::tx(slot.role, ETH),
                Hop::rx(role::HUB, &slot.port),
            ])
        })?;
        let mut way = Vec::new();
        let (server, hub_side) = self.routed_server(peer, domain, &mut way)?;
        self.forward(role::HUB, &ports_of(&clients, hub_side))?;
        self.introduce_by_cable(&clients, role::HUB, hub)?;
        for client in &clients {
            self.default_route(client.endpoint.role, hub)?;
        }
        Ok(Topology::new(clients, server, way))
    }

    /// The server behind the hub, which sends everything to it, and the hub's device towards it, in a routing domain if one is
    /// named.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub(crate) fn routed_server(
        &mut self,
        peer: Peer,
        domain: Option<Domain>,
        way: &mut Vec<Hop>,
    ) -> Result<(Endpoint, &'static str)> {
        let (hub_side, subnet) = if peer == Peer::Far {
            self.wire()?;
            (UPLINK, Subnet::WIRE)
        } else {
            self.veth((role::B, ETH), (role::HUB, SIDE_B))?;
            (SIDE_B, Subnet::SIDE_B)
        };
        let hub = subnet.host(host::HUB);
        self.join_domain(hub_side, domain)?;
        self.address(role::HUB, hub_side, hub)?;
        let server = if peer == Peer::Far {
            self.far_end_behind(hub, subnet)?
        } else {
            let server = self.endpoint(role::B, ETH, subnet.host(host::B))?;
            self.default_route(role::B, hub)?;
            server
        };
        way.push(Hop::tx(role::HUB, hub_side));
        way.push(Hop::rx(server.role, &server.device));
        Ok((server, hub_side))
    }

    /// Before it has addresses: the kernel takes those of IPv6 from a device that joins.
    fn join_domain(&mut self, device: &str, domain: Option<Domain>) -> Result<()> {
        match domain {
            Some(domain) => Ok(self.space(role::HUB)?.set_master(device, domain.device)?),
            None => Ok(()),
        }
    }
}

/// The devices that the hub routes between and has to ask for neighbours by: those of containers know theirs.
fn ports_of<'a>(clients: &'a [Client], hub_side: &'a str) -> Vec<&'a str> {
    let asking = clients
        .iter()
        .filter(|client| client.endpoint.role == role::A);
    let ports = asking.filter_map(|client| client.way.last());
    ports.map(|hop| &*hop.device).chain([hub_side]).collect()
}
