//! `veth-route`: a veth pair into the hub, IP forwarding there (the "etun" case of the 2007 report).

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

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

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth")]
    }

    fn filter_sees(&self, _: Peer) -> bool {
        true
    }

    fn axes(&self) -> &'static [&'static str] {
        &["rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.veth((role::A, ETH), (role::HUB, "veth-a"))?;
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
        lab.address(role::HUB, "veth-a", Subnet::SIDE_A.host(host::HUB))?;
        lab.address(role::HUB, hub_side, subnet.host(host::HUB))?;
        lab.forward(role::HUB, ["veth-a", hub_side])?;
        let client = lab.endpoint(role::A, ETH, Subnet::SIDE_A.host(host::A))?;
        let server = lab.endpoint(other, device, subnet.host(number))?;
        lab.default_route(role::A, Subnet::SIDE_A.host(host::HUB))?;
        lab.default_route(other, subnet.host(host::HUB))?;
        Ok(Topology {
            client,
            server,
            way: vec![
                Hop::tx(role::A, ETH),
                Hop::rx(role::HUB, "veth-a"),
                Hop::tx(role::HUB, hub_side),
                Hop::rx(other, device),
            ],
        })
    }
}
