//! `direct`: hopyard's own switch in the hub; frames go by MAC address, with no bridge.

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The hub's end of endpoint `b`'s device.
const PORT_B: &str = "veth-b";

pub(super) struct Direct;

impl Path for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn summary(&self) -> &'static str {
        "hopyard's own eBPF switch in the hub, veth ports, no bridge"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth"), Need::DirectSwitch]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "ports", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let uplink = (peer != Peer::Local).then_some(UPLINK);
        if uplink.is_some() {
            lab.wire()?;
        }
        let clients = lab.clients(Subnet::LAN, |lab, seat| {
            lab.veth((seat.role, ETH), (role::HUB, &seat.port))?;
            // Frames to a guest are handed into its namespace, past the port's own device. What the host sends
            // is turned round before the uplink's queue, and the port sends it.
            let port = match peer {
                Peer::Host => Hop::rx(role::HUB, &seat.port),
                _ => Hop::rx_from_client(role::HUB, &seat.port),
            };
            Ok(vec![Hop::tx(seat.role, ETH), port])
        })?;
        let mut ports: Vec<String> = clients
            .iter()
            .filter_map(|client| client.way.last())
            .map(|hop| hop.device.clone())
            .collect();
        let mut way = Vec::new();
        let server = match peer {
            Peer::Local => {
                lab.veth((role::B, ETH), (role::HUB, PORT_B))?;
                ports.push(PORT_B.to_owned());
                way.extend([
                    Hop::rx_from_server(role::HUB, PORT_B),
                    Hop::rx(role::B, ETH),
                ]);
                lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
            }
            Peer::Host => lab.endpoint(role::HUB, UPLINK, Subnet::LAN.host(host::HUB))?,
            Peer::Far => {
                way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
                lab.endpoint(role::FAR, FAR_END, Subnet::LAN.host(host::FAR))?
            }
        };
        lab.introduce(
            &clients,
            server.role,
            Some(&server.device),
            server.addresses,
        )?;
        ports.extend(lab.idle_ports(ports.len())?);
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        lab.switch(uplink, &ports)?;
        Ok(Topology::new(clients, server, way))
    }
}
