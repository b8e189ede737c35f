//! `veth-route`: a veth pair into the hub, IP forwarding there (the "etun" case of the 2007 report).

use super::{Need, Path};
use crate::lab::builder::ETH;
use crate::lab::topology::{host, role};
use crate::lab::wire::{FAR_END, UPLINK};
use crate::lab::{Builder, Client, Result, Subnet, Topology};
use crate::model::{Axes, Hop, Peer};

pub(super) struct VethRoute;

impl Path for VethRoute {
    fn name(&self) -> &'static str {
        "veth-route"
    }

    fn summary(&self) -> &'static str {
        "a veth pair into the hub for each endpoint, IP forwarding in the hub"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    /// The host is the router.
    fn reaches_host(&self, _: &Axes) -> bool {
        true
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH]
    }

    fn filter_sees(&self, _: Peer) -> bool {
        true
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let hub = Subnet::SIDE_A.host(host::HUB);
        let clients = lab.clients(Subnet::SIDE_A, |lab, slot| {
            lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
            lab.cable_end(slot, role::HUB, &slot.port, hub)?;
            Ok(vec![
                Hop::tx(slot.role, ETH),
                Hop::rx(role::HUB, &slot.port),
            ])
        })?;
        let (other, device, hub_side, subnet, number) = match peer {
            Peer::Far => {
                lab.wire()?;
                (role::FAR, FAR_END, UPLINK, Subnet::WIRE, host::FAR)
            }
            _ => {
                lab.veth((role::B, ETH), (role::HUB, "veth-b"))?;
                (role::B, ETH, "veth-b", Subnet::SIDE_B, host::B)
            }
        };
        lab.address(role::HUB, hub_side, subnet.host(host::HUB))?;
        lab.forward(role::HUB, &ports_of(&clients, hub_side))?;
        let server = lab.endpoint(other, device, subnet.host(number))?;
        lab.introduce_by_cable(&clients, role::HUB, hub)?;
        for client in &clients {
            lab.default_route(client.endpoint.role, hub)?;
        }
        lab.default_route(other, subnet.host(host::HUB))?;
        let way = vec![Hop::tx(role::HUB, hub_side), Hop::rx(other, device)];
        Ok(Topology::new(clients, server, way))
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
