//! `ovs-veth` and `ovs-internal`: Open vSwitch in the hub, with veth ports or with its own internal ports.

use std::time::Duration;

use super::{Build, Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::ovs::{self, BRIDGE, Port};
use crate::topology::{host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Result, Subnet, Topology};

/// The hub's end of the wire.
const PORT_FAR: Port = Port::Device {
    name: UPLINK,
    other: (role::FAR, FAR_END),
};

/// What endpoints are attached by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A veth pair, whose end in the hub is the port.
    Veth,
    /// A port of Open vSwitch's own, which is the endpoint's device too.
    Internal,
}

/// How an endpoint is attached: its own device, and the hub's end of it where it has one.
struct Attached {
    device: &'static str,
    hub_end: Option<&'static str>,
    port: Port,
}

pub(super) static OVS_VETH: Path = Path {
    name: "ovs-veth",
    summary: "Open vSwitch in the hub, veth ports; kernel datapath where the kernel has it, else userspace",
    ..path(|lab, peer| build(lab, peer, Kind::Veth))
};

pub(super) static OVS_INTERNAL: Path = Path {
    name: "ovs-internal",
    summary: "Open vSwitch in the hub, its internal ports as the endpoints' devices; datapath as for ovs-veth",
    ..path(|lab, peer| build(lab, peer, Kind::Internal))
};

/// What both have in common.
const fn path(build: Build) -> Path {
    Path {
        peers: &Peer::ALL,
        needs: &[Need::VETH, ovs::NEED],
        rules_instead: |_| "flows of Open vSwitch (with ct); the endpoints",
        mtu_owner: "each port; the userspace datapath takes 1500",
        has_vlans: |_| true,
        learns: true,
        // Starting the daemons. The userspace datapath spends 100 ms of it asleep, to learn the frequency of the
        // CPU's time stamp counter (`pmd_perf_estimate_tsc_frequency`).
        extra_time: Duration::from_millis(150),
        ..Path::new(build)
    }
}

fn build(lab: &mut Builder, peer: Peer, kind: Kind) -> Result<Topology> {
    let a = attach(lab, kind, role::A, "veth-a", "int-a")?;
    let mut ports = vec![a.port];
    let mut way = vec![Hop::tx(role::A, a.device)];
    way.extend(a.hub_end.map(|end| Hop::rx(role::HUB, end)));
    let inside = match peer {
        Peer::Host => {
            way.push(Hop::rx(role::HUB, BRIDGE));
            Some((role::HUB, BRIDGE, host::HUB))
        }
        Peer::Local => {
            let b = attach(lab, kind, role::B, "veth-b", "int-b")?;
            ports.push(b.port);
            way.extend(b.hub_end.map(|end| Hop::tx(role::HUB, end)));
            way.push(Hop::rx(role::B, b.device));
            Some((role::B, b.device, host::B))
        }
        Peer::Far => {
            lab.wire()?;
            ports.push(PORT_FAR);
            None
        }
    };
    let path = match kind {
        Kind::Veth => OVS_VETH.name,
        Kind::Internal => OVS_INTERNAL.name,
    };
    // Internal ports are there from here on.
    lab.ovs_bridge(path, &ports)?;
    let client = lab.endpoint(role::A, a.device, Subnet::LAN.host(host::A))?;
    let server = match inside {
        Some((role, device, number)) => lab.endpoint(role, device, Subnet::LAN.host(number))?,
        None => lab.far_end(Subnet::LAN, &mut way)?,
    };
    Ok(Topology::pair(client, server, way))
}

/// Open vSwitch knows its ports by name, so internal ones keep theirs.
fn attach(
    lab: &mut Builder,
    kind: Kind,
    namespace: &'static str,
    hub_end: &'static str,
    internal: &'static str,
) -> Result<Attached> {
    if kind == Kind::Internal {
        return Ok(Attached {
            device: internal,
            hub_end: None,
            port: Port::Internal {
                name: internal,
                into: namespace,
            },
        });
    }
    lab.veth((namespace, ETH), (role::HUB, hub_end))?;
    Ok(Attached {
        device: ETH,
        hub_end: Some(hub_end),
        port: Port::Device {
            name: hub_end,
            other: (namespace, ETH),
        },
    })
}
