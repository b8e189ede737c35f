//! `vm`: a guest with virtio-net on a device of the hub, which axis `attach` chooses.

use std::time::Duration;

use hopyard_net::{LinkKind, MacvlanMode};

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, HubEnd, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::{Attach, Axes, Peer};

const NAME: &str = "vm";
/// The bridge's device.
const BRIDGE: &str = "br0";
/// The guest's tap.
const TAP: &str = "tap-a";
/// The guest's macvtap.
const MACVTAP: &str = "macvtap-a";
/// The hub's end of endpoint `b`'s device.
const PORT_B: &str = "veth-b";

pub(super) struct Vm;

impl Path for Vm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "a QEMU guest with virtio-net on a tap at a bridge or the direct switch, or on a macvtap (by name only); \
         local: to a namespace at the same"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    /// A host does not talk to the macvtaps on its own device.
    fn peers_attached(&self, attach: Attach) -> &'static [Peer] {
        match attach {
            Attach::Bridge | Attach::Direct => self.peers(),
            Attach::Macvtap => &[Peer::Local, Peer::Far],
        }
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth"), Need::Guest]
    }

    fn needs_for(&self, axes: &Axes) -> &'static [Need] {
        match axes.attach.unwrap_or_default() {
            Attach::Bridge => &[Need::Kind("bridge")],
            Attach::Direct => &[Need::DirectSwitch],
            Attach::Macvtap => &[Need::Kind("macvtap"), Need::Kind("macvlan")],
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        &["guest_cpus", "queues", "guest_memory", "attach"]
    }

    fn by_name_only(&self) -> bool {
        true
    }

    /// A guest boots for each sample.
    fn extra_time(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        match lab.axes().attach.unwrap_or_default() {
            Attach::Bridge => at_bridge(lab, peer),
            Attach::Direct => at_switch(lab, peer),
            Attach::Macvtap => at_uplink(lab, peer),
        }
    }
}

/// The tap is a port of a bridge.
fn at_bridge(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.bridge(BRIDGE, false)?;
    let client = lab.guest(NAME, role::A, HubEnd::Tap(TAP), Subnet::LAN.host(host::A))?;
    lab.space(role::HUB)?.set_master(TAP, BRIDGE)?;
    let mut way = vec![Hop::rx(role::HUB, TAP)];
    let (server, device, number) = match peer {
        Peer::Host => {
            way.push(Hop::rx(role::HUB, BRIDGE));
            (role::HUB, BRIDGE, host::HUB)
        }
        Peer::Local => {
            lab.veth((role::B, ETH), (role::HUB, PORT_B))?;
            lab.space(role::HUB)?.set_master(PORT_B, BRIDGE)?;
            way.extend([Hop::tx(role::HUB, PORT_B), Hop::rx(role::B, ETH)]);
            (role::B, ETH, host::B)
        }
        Peer::Far => {
            lab.wire()?;
            lab.space(role::HUB)?.set_master(UPLINK, BRIDGE)?;
            way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
            (role::FAR, FAR_END, host::FAR)
        }
    };
    Ok(Topology {
        client,
        server: lab.endpoint(server, device, Subnet::LAN.host(number))?,
        way,
        containers: Vec::new(),
    })
}

/// The tap is a port of the direct switch; frames to it take its queue, so it counts both ways.
fn at_switch(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let client = lab.guest(NAME, role::A, HubEnd::Tap(TAP), Subnet::LAN.host(host::A))?;
    let mut way = vec![Hop::rx(role::HUB, TAP)];
    let (server, device, number) = match peer {
        // The switch hands the host its frames at the uplink, past what that counts.
        Peer::Host => (role::HUB, UPLINK, host::HUB),
        Peer::Local => {
            lab.veth((role::B, ETH), (role::HUB, PORT_B))?;
            way.extend([
                Hop::rx_from_server(role::HUB, PORT_B),
                Hop::rx(role::B, ETH),
            ]);
            (role::B, ETH, host::B)
        }
        Peer::Far => {
            way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
            (role::FAR, FAR_END, host::FAR)
        }
    };
    if peer == Peer::Local {
        lab.switch(None, &[TAP, PORT_B])?;
    } else {
        lab.wire()?;
        lab.switch(Some(UPLINK), &[TAP])?;
    }
    Ok(Topology {
        client,
        server: lab.endpoint(server, device, Subnet::LAN.host(number))?,
        way,
        containers: Vec::new(),
    })
}

/// A macvtap on the uplink, which sends what the guest does.
fn at_uplink(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.wire()?;
    let client = lab.guest(
        NAME,
        role::A,
        HubEnd::Macvtap(MACVTAP),
        Subnet::LAN.host(host::A),
    )?;
    let mut way = vec![Hop::tx(role::HUB, MACVTAP)];
    let (server, device, number) = if peer == Peer::Local {
        let kind = LinkKind::Macvlan {
            lower: UPLINK.to_owned(),
            mode: MacvlanMode::Bridge,
        };
        let mtu = lab.mtu();
        lab.link_into(role::HUB, role::B, ETH, kind, mtu)?;
        way.push(Hop::rx(role::B, ETH));
        (role::B, ETH, host::B)
    } else {
        way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
        (role::FAR, FAR_END, host::FAR)
    };
    Ok(Topology {
        client,
        server: lab.endpoint(server, device, Subnet::LAN.host(number))?,
        way,
        containers: Vec::new(),
    })
}
