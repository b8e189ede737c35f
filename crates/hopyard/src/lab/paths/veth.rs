//! `veth`: one virtual cable between two namespaces.

use super::{Need, Path};
use crate::lab::builder::ETH;
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

pub(super) struct Veth;

impl Path for Veth {
    fn name(&self) -> &'static str {
        "veth"
    }

    fn summary(&self) -> &'static str {
        "one veth pair between two namespaces"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Host]
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth")]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let (other, device, number) = match peer {
            Peer::Host => (role::HUB, "veth-a", host::HUB),
            _ => (role::B, ETH, host::B),
        };
        lab.veth((role::A, ETH), (other, device))?;
        Ok(Topology {
            client: lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(other, device, Subnet::LAN.host(number))?,
            way: vec![Hop::tx(role::A, ETH), Hop::rx(other, device)],
        })
    }
}
