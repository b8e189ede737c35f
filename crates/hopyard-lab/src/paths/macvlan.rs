//! `macvlan`: further Ethernet addresses on the hub's uplink, one for each endpoint.

use hopyard_net::{LinkKind, MacvlanMode};

use super::{Need, Path, at_uplink};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Endpoint, Result, Subnet, Topology};

/// The hub's own macvlan: without one, a host cannot talk to the macvlans on its device.
pub(super) const HUB_DEVICE: &str = "mac-hub";

pub(super) static MACVLAN: Path = Path {
    name: "macvlan",
    summary: "macvlan on the hub's uplink, bridge mode; host: the hub has one too",
    peers: &Peer::ALL,
    needs: &[Need::VETH, Need::MACVLAN],
    axes: &["containers", "rules"],
    rules_instead: at_uplink,
    mtu_owner: "the uplink, which bounds the others",
    // A host does not talk to the macvlans on its own device; as a peer it has one too.
    host_access: Some(false),
    crosses_cable: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    on_uplink(lab, peer, HUB_DEVICE, kind)
}

/// Another Ethernet address on the uplink.
pub(super) fn kind() -> LinkKind<'static> {
    LinkKind::Macvlan {
        lower: UPLINK.to_owned(),
        mode: MacvlanMode::Bridge,
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
    let clients = lab.clients(Subnet::LAN, |lab, slot| {
        lab.link_into(role::HUB, slot.role, ETH, kind(), mtu)?;
        Ok(vec![Hop::tx(slot.role, ETH)])
    })?;
    let mut way = Vec::new();
    let server = server_on_uplink(lab, peer, hub_device, kind, &mut way)?;
    lab.add_static_neighbours(&clients, &server)?;
    Ok(Topology::new(clients, server, way))
}

/// The server of a path whose clients are upper devices of the uplink: another such device, or the far end.
pub(super) fn server_on_uplink(
    lab: &mut Builder,
    peer: Peer,
    hub_device: &str,
    kind: impl Fn() -> LinkKind<'static>,
    way: &mut Vec<Hop>,
) -> Result<Endpoint> {
    let (role, device, number) = match peer {
        Peer::Local => (role::B, ETH, host::B),
        Peer::Host => (role::HUB, hub_device, host::HUB),
        Peer::Far => return lab.far_end(Subnet::LAN, way),
    };
    let mtu = lab.mtu();
    lab.link_into(role::HUB, role, device, kind(), mtu)?;
    way.push(Hop::rx(role, device));
    lab.endpoint(role, device, Subnet::LAN.host(number))
}
