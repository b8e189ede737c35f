//! `vm`: a guest with virtio-net on a device of the hub, which axis `attach` chooses.

use std::time::Duration;

use super::{Need, Path, macvlan};
use crate::model::{Attach, Hop, Peer};
use crate::switching::Port;
use crate::topology::{host, role};
use crate::{Builder, Endpoint, HubEnd, Result, Subnet, Topology};

/// The bridge's device.
const BRIDGE: &str = "br0";
/// The guest's tap.
const TAP: &str = "tap-a";
/// The guest's macvtap.
const MACVTAP: &str = "macvtap-a";

pub(super) static VM: Path = Path {
    name: "vm",
    summary: "a QEMU guest with virtio-net on a tap at a bridge or the direct switch, or on a macvtap; \
     local: to a namespace at the same",
    peers: &Peer::ALL,
    // A host does not talk to the macvtaps on its own device.
    peers_of_attach: Some(|attach| match attach {
        Attach::Bridge | Attach::Direct => &Peer::ALL,
        Attach::Macvtap => &[Peer::Local, Peer::Far],
    }),
    needs: &[Need::VETH, Need::GUEST],
    needs_for: |axes| match axes.attach.unwrap_or_default() {
        Attach::Bridge => &[Need::BRIDGE],
        Attach::Direct => &[Need::DIRECT_SWITCH],
        Attach::Macvtap => &[Need::MACVTAP, Need::MACVLAN],
    },
    axes: &["guest_cpus", "queues", "guest_memory", "attach", "vhost"],
    rules_instead: |_| "family bridge of nftables at its bridge; the guest",
    mtu_owner: "the guest's card and its tap",
    // As the switch that its tap is a port of.
    has_vlans: |axes| axes.attach.unwrap_or_default() != Attach::Macvtap,
    by_name_only: true,
    // A guest boots for each sample.
    extra_time: Duration::from_secs(4),
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    match lab.axes().attach.unwrap_or_default() {
        Attach::Bridge => at_bridge(lab, peer),
        Attach::Direct => at_switch(lab, peer),
        Attach::Macvtap => at_uplink(lab, peer),
    }
}

/// The tap is a port of a bridge.
fn at_bridge(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.bridge(BRIDGE, false)?;
    let client = guest(lab, HubEnd::Tap(TAP))?;
    lab.space(role::HUB)?.set_master(TAP, BRIDGE)?;
    let mut way = vec![Hop::rx(role::HUB, TAP)];
    let server = lab.bridged_server(BRIDGE, peer, &mut way)?;
    Ok(Topology::pair(client, server, way))
}

/// The tap is a port of the direct switch; frames to it take its queue, so it counts both ways.
fn at_switch(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let client = guest(lab, HubEnd::Tap(TAP))?;
    let mut way = vec![Hop::rx(role::HUB, TAP)];
    let server = lab.switched_server(peer, Port::Veth, vec![TAP.to_owned()], &mut way)?;
    Ok(Topology::pair(client, server, way))
}

/// A macvtap on the uplink, which sends what the guest does.
fn at_uplink(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.wire()?;
    let client = guest(lab, HubEnd::Macvtap(MACVTAP))?;
    let mut way = vec![Hop::tx(role::HUB, MACVTAP)];
    let server =
        macvlan::server_on_uplink(lab, peer, macvlan::HUB_DEVICE, macvlan::kind, &mut way)?;
    Ok(Topology::pair(client, server, way))
}

fn guest(lab: &mut Builder, end: HubEnd) -> Result<Endpoint> {
    lab.guest(VM.name, role::A, end, Subnet::LAN.host(host::A))
}
