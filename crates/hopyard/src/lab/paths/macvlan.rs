//! `macvlan`: further Ethernet addresses on the hub's uplink, one for each endpoint.

use hopyard_net::{LinkKind, MacvlanMode};

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The hub's own macvlan: without one, a host cannot talk to the macvlans on its device.
const HUB_DEVICE: &str = "mac-hub";

pub(super) struct Macvlan;

impl Path for Macvlan {
    fn name(&self) -> &'static str {
        "macvlan"
    }

    fn summary(&self) -> &'static str {
        "macvlan on the hub's uplink, bridge mode; host: the hub has one too"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth"), Need::Kind("macvlan")]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        on_uplink(lab, peer, HUB_DEVICE, || LinkKind::Macvlan {
            lower: UPLINK.to_owned(),
            mode: MacvlanMode::Bridge,
        })
    }
}

/// Endpoints as upper devices of the uplink; shared with ipvlan, which differs in the kind alone.
pub(super) fn on_uplink(
    lab: &mut Builder,
    peer: Peer,
    hub_device: &str,
    kind: impl Fn() -> LinkKind<'static>,
) -> Result<Topology> {
    lab.wire()?;
    let mtu = lab.mtu();
    let clients = lab.clients(Subnet::LAN, |lab, seat| {
        lab.link_into(role::HUB, seat.role, ETH, kind(), mtu)?;
        Ok(vec![Hop::tx(seat.role, ETH)])
    })?;
    let mut way = Vec::new();
    let server = match peer {
        Peer::Local => {
            lab.link_into(role::HUB, role::B, ETH, kind(), mtu)?;
            way.push(Hop::rx(role::B, ETH));
            lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
        }
        Peer::Host => {
            lab.link_into(role::HUB, role::HUB, hub_device, kind(), mtu)?;
            way.push(Hop::rx(role::HUB, hub_device));
            lab.endpoint(role::HUB, hub_device, Subnet::LAN.host(host::HUB))?
        }
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
    Ok(Topology::new(clients, server, way))
}
