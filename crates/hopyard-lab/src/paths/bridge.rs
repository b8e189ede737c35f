//! `bridge` and `bridge-nf`: a Linux bridge in the hub, with netfilter's calls off or on.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer};
use crate::topology::role;
use crate::{Builder, Result, Subnet, Topology};

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

    fn has_vlans(&self, _: &Axes) -> bool {
        true
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "the bridge: its smallest port"
    }

    fn needs(&self) -> &'static [Need] {
        if self.netfilter {
            &[Need::VETH, Need::BRIDGE, Need::BRIDGE_NETFILTER]
        } else {
            &[Need::VETH, Need::BRIDGE]
        }
    }

    fn filter_sees(&self, peer: Peer) -> bool {
        self.netfilter || peer == Peer::Host
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "ports", "rules"]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "family bridge of nftables; path bridge-nf"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.bridge(BRIDGE_DEVICE, self.netfilter)?;
        let clients = lab.clients(Subnet::LAN, |lab, slot| {
            lab.veth((slot.role, ETH), (role::HUB, &slot.port))?;
            lab.space(role::HUB)?
                .set_master(&slot.port, BRIDGE_DEVICE)?;
            Ok(vec![
                Hop::tx(slot.role, ETH),
                Hop::rx(role::HUB, &slot.port),
            ])
        })?;
        let mut way = Vec::new();
        let server = lab.bridged_server(BRIDGE_DEVICE, peer, &mut way)?;
        lab.add_static_neighbours(&clients, &server)?;
        let in_use = clients.len() + usize::from(peer == Peer::Local);
        for port in lab.idle_ports(in_use)? {
            lab.space(role::HUB)?.set_master(&port, BRIDGE_DEVICE)?;
        }
        Ok(Topology::new(clients, server, way))
    }
}
