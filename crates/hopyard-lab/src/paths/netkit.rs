//! `netkit`: veth's successor for containers, whose traffic BPF may forward (Linux 6.7).

use hopyard_net::NetkitLayer::L2;

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Result, Subnet, Topology};

pub(super) static NETKIT: Path = Path {
    name: "netkit",
    summary: "one netkit pair between two namespaces, layer 2, no program attached",
    peers: &[Peer::Local, Peer::Host],
    needs: &[Need::NETKIT],
    rules_instead: |_| "the endpoints; BPF programs of the pair",
    learns: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    // The primary device is the side that decides: the hub's, or `a`'s between two endpoints.
    let (other, device, number) = match peer {
        Peer::Host => (role::HUB, "nk-a", host::HUB),
        _ => (role::B, ETH, host::B),
    };
    match peer {
        Peer::Host => lab.netkit(L2, (other, device), (role::A, ETH))?,
        _ => lab.netkit(L2, (role::A, ETH), (other, device))?,
    }
    let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
    let server = lab.endpoint(other, device, Subnet::LAN.host(number))?;
    let way = vec![Hop::tx(role::A, ETH), Hop::rx(other, device)];
    Ok(Topology::pair(client, server, way))
}
