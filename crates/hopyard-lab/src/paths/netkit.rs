//! `netkit`: veth's successor for containers, whose traffic BPF may forward (Linux 6.7).

use hopyard_net::NetkitLayer::L2;

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Result, Subnet, Topology};

pub(super) struct Netkit;

impl Path for Netkit {
    fn name(&self) -> &'static str {
        "netkit"
    }

    fn summary(&self) -> &'static str {
        "one netkit pair between two namespaces, layer 2, no program attached"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Host]
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::NETKIT]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; BPF programs of the pair"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        // The primary device is the side that decides: the hub's, or `a`'s between two endpoints.
        let (other, device, number) = match peer {
            Peer::Host => (role::HUB, "nk-a", host::HUB),
            _ => (role::B, ETH, host::B),
        };
        match peer {
            Peer::Host => lab.netkit(L2, (other, device), (role::A, ETH))?,
            _ => lab.netkit(L2, (role::A, ETH), (other, device))?,
        }
        Ok(Topology {
            client: lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(other, device, Subnet::LAN.host(number))?,
            way: vec![Hop::tx(role::A, ETH), Hop::rx(other, device)],
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}
