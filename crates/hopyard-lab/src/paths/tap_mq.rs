//! `tap-mq`: multi-queue taps joined by our own switch in user space.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Result, Subnet, Topology, tap};

/// The hub's tap.
const HUB_TAP: &str = "tap0";
/// What joins it and the wire.
const BRIDGE: &str = "br0";

pub(super) static TAP_MQ: Path = Path {
    name: "tap-mq",
    summary: "multi-queue taps joined by hopyard's own switch in user space; bridged to the wire for peer far",
    peers: &Peer::ALL,
    needs: &[tap::NEED, Need::VETH, Need::BRIDGE],
    axes: &[
        "queues",
        "queue_threads",
        "steering",
        "queue_length",
        "join",
    ],
    mtu_owner: "each tap",
    learns: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let mut way = vec![Hop::tx(role::A, ETH)];
    let client = (role::A, ETH);
    let server = match peer {
        Peer::Local => {
            lab.tap_switch(&[client, (role::B, ETH)])?;
            way.push(Hop::rx(role::B, ETH));
            lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
        }
        Peer::Host => {
            lab.tap_switch(&[client, (role::HUB, HUB_TAP)])?;
            way.push(Hop::rx(role::HUB, HUB_TAP));
            lab.endpoint(role::HUB, HUB_TAP, Subnet::LAN.host(host::HUB))?
        }
        Peer::Far => {
            lab.tap_switch(&[client, (role::HUB, HUB_TAP)])?;
            lab.wire()?;
            lab.bridge(BRIDGE, false)?;
            for port in [HUB_TAP, UPLINK] {
                lab.space(role::HUB)?.set_master(port, BRIDGE)?;
            }
            way.push(Hop::rx(role::HUB, HUB_TAP));
            lab.far_end(Subnet::LAN, &mut way)?
        }
    };
    let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
    Ok(Topology::pair(client, server, way))
}
