//! `bridge` and `bridge-nf`: a Linux bridge in the hub, with netfilter's calls off or on.

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The bridge's device.
const BRIDGE_DEVICE: &str = "br0";

pub(super) static BRIDGE: Bridge = Bridge { netfilter: false };
pub(super) static BRIDGE_NF: Bridge = Bridge { netfilter: true };

pub(super) struct Bridge {
    netfilter: bool,
}

impl Path for Bridge {
    fn name(&self) -> &'static str {
        if self.netfilter {
            "bridge-nf"
        } else {
            "bridge"
        }
    }

    fn summary(&self) -> &'static str {
        if self.netfilter {
            "a Linux bridge in the hub, veth ports, bridge netfilter calls on, no rules"
        } else {
            "a Linux bridge in the hub, veth ports, bridge netfilter calls off"
        }
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn needs(&self) -> &'static [Need] {
        if self.netfilter {
            &[
                Need::Kind("veth"),
                Need::Kind("bridge"),
                Need::BridgeNetfilter,
            ]
        } else {
            &[Need::Kind("veth"), Need::Kind("bridge")]
        }
    }

    fn filter_sees(&self, peer: Peer) -> bool {
        self.netfilter || peer == Peer::Host
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "ports", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.bridge(BRIDGE_DEVICE, self.netfilter)?;
        let clients = lab.clients(Subnet::LAN, |lab, seat| {
            lab.veth((seat.role, ETH), (role::HUB, &seat.port))?;
            lab.space(role::HUB)?
                .set_master(&seat.port, BRIDGE_DEVICE)?;
            Ok(vec![
                Hop::tx(seat.role, ETH),
                Hop::rx(role::HUB, &seat.port),
            ])
        })?;
        let mut way = Vec::new();
        let server = match peer {
            Peer::Host => {
                way.push(Hop::rx(role::HUB, BRIDGE_DEVICE));
                lab.endpoint(role::HUB, BRIDGE_DEVICE, Subnet::LAN.host(host::HUB))?
            }
            Peer::Local => {
                lab.veth((role::B, ETH), (role::HUB, "veth-b"))?;
                lab.space(role::HUB)?.set_master("veth-b", BRIDGE_DEVICE)?;
                way.extend([Hop::tx(role::HUB, "veth-b"), Hop::rx(role::B, ETH)]);
                lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
            }
            Peer::Far => {
                lab.wire()?;
                lab.space(role::HUB)?.set_master(UPLINK, BRIDGE_DEVICE)?;
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
        let in_use = clients.len() + usize::from(peer == Peer::Local);
        for port in lab.idle_ports(in_use)? {
            lab.space(role::HUB)?.set_master(&port, BRIDGE_DEVICE)?;
        }
        Ok(Topology::new(clients, server, way))
    }
}
