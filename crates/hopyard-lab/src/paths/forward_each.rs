//! `forward-each`: containers that route side by side, each between a sender of its own and the wire.

use hopyard_net::{LinkKind, MacvlanMode};

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer, Routed};
use crate::topology::{host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Client, ClientSlot, Endpoint, Error, Result, Subnet, Topology};

/// A routing container's device on the host's interface; that towards its sender is [`ETH`].
const ONWARD: &str = "eth1";

pub(super) static FORWARD_EACH: Path = Path {
    name: "forward-each",
    summary: "containers that route side by side, each between a sender of its own and the wire, on macvlans of the uplink",
    peers: &[Peer::Far],
    needs: &[Need::VETH, Need::MACVLAN],
    axes: &["containers", "routed"],
    rules_instead: |_| "the containers that route; the endpoints",
    by_name_only: true,
    has,
    ..Path::new(build)
};

/// One endpoint has all flows: half of them cannot pass a container.
fn has(axes: &Axes) -> bool {
    axes.routed != Some(Routed::Half) || axes.container_count().is_some()
}

fn build(lab: &mut Builder, _: Peer) -> Result<Topology> {
    if !has(lab.axes()) {
        return Err(Error::refused(
            "the senders",
            "routed",
            Routed::Half.to_string(),
            "one endpoint has all flows; set `containers=own`, which gives each an endpoint",
        ));
    }
    lab.wire()?;
    let mut way = Vec::new();
    let far = lab.far_end(Subnet::LAN, &mut way)?;
    let routed = lab.axes().routed.unwrap_or(Routed::All);
    let mut number = 0;
    let clients = lab.clients(Subnet::SIDE_A, |lab, slot| {
        number += 1;
        if is_routed(routed, number) {
            lab.veth((slot.role, ETH), (role::router(number), ETH))?;
            Ok(vec![
                Hop::tx(slot.role, ETH),
                Hop::rx(role::router(number), ETH),
                Hop::tx(role::router(number), ONWARD),
            ])
        } else {
            on_uplink(lab, slot.role, ETH)?;
            Ok(vec![Hop::tx(slot.role, ETH)])
        }
    })?;
    for (number, client) in (1..).zip(&clients) {
        if is_routed(routed, number) {
            route(lab, number, client, &far)?;
        } else {
            send_directly(lab, client, &far)?;
        }
    }
    Ok(Topology::new(clients, far, way))
}

/// Does this sender's traffic pass a routing container? Of half of them that of every second does, the first one's included.
fn is_routed(routed: Routed, number: u16) -> bool {
    match routed {
        Routed::All => true,
        Routed::Half => number % 2 == 1,
        Routed::None => false,
    }
}

/// Another Ethernet address on the host's interface.
fn on_uplink(lab: &mut Builder, into: &'static str, device: &str) -> Result<()> {
    let mtu = lab.mtu();
    let kind = LinkKind::Macvlan {
        lower: UPLINK.to_owned(),
        mode: MacvlanMode::Bridge,
    };
    lab.link_into(role::HUB, into, device, kind, mtu)
}

/// Addresses, routes and neighbours of a routing container, its sender and the far end.
fn route(lab: &mut Builder, number: u16, client: &Client, far: &Endpoint) -> Result<()> {
    let router = role::router(number);
    let slot = ClientSlot::of(client);
    let inside = Subnet::SIDE_A.host(host::HUB);
    let outside = Subnet::LAN.host(host::container(number));
    on_uplink(lab, router, ONWARD)?;
    lab.cable_end(&slot, router, ETH, inside, None)?;
    lab.address(router, ONWARD, outside)?;
    let sender = &client.endpoint;
    // Where there are many, they know their neighbours.
    let asking = match role::is_container(sender.role) {
        true => Vec::new(),
        false => vec![ETH, ONWARD],
    };
    lab.forward(router, &asking)?;
    lab.introduce(sender, &Endpoint::new(router, ETH, inside))?;
    lab.introduce(&Endpoint::new(router, ONWARD, outside), far)?;
    lab.default_route(sender.role, inside)?;
    let back = (Some(outside), FAR_END);
    lab.route_to_host(role::FAR, sender.addresses, back, sender.role)
}

/// A sender on the wire's own link, whose addresses are of another subnet.
fn send_directly(lab: &mut Builder, client: &Client, far: &Endpoint) -> Result<()> {
    let sender = &client.endpoint;
    lab.route_to_host(
        sender.role,
        far.addresses,
        (None, &sender.device),
        sender.role,
    )?;
    lab.route_to_host(role::FAR, sender.addresses, (None, FAR_END), sender.role)?;
    lab.introduce(sender, far)
}
