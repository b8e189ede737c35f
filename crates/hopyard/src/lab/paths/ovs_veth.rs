//! `ovs-veth`: Open vSwitch in the hub, veth ports.

use std::time::Duration;

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::ovs::{BRIDGE, Port};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The hub's ends of the endpoints' devices.
const PORT_A: Port = Port::Device {
    name: "veth-a",
    other: (role::A, ETH),
};
const PORT_B: Port = Port::Device {
    name: "veth-b",
    other: (role::B, ETH),
};
/// The hub's end of the wire.
pub(super) const PORT_FAR: Port = Port::Device {
    name: UPLINK,
    other: (role::FAR, FAR_END),
};

/// Starting the daemons. The userspace datapath spends 100 ms of it asleep, to learn the frequency of the
/// CPU's time stamp counter (`pmd_perf_estimate_tsc_frequency`).
pub(super) const EXTRA_TIME: Duration = Duration::from_millis(150);

pub(super) struct OvsVeth;

impl Path for OvsVeth {
    fn name(&self) -> &'static str {
        "ovs-veth"
    }

    fn summary(&self) -> &'static str {
        "Open vSwitch in the hub, veth ports; kernel datapath where the kernel has it, else userspace"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth"), Need::OpenVswitch]
    }

    fn extra_time(&self) -> Duration {
        EXTRA_TIME
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.veth((role::A, ETH), (role::HUB, "veth-a"))?;
        let mut ports = vec![PORT_A];
        let mut way = vec![Hop::tx(role::A, ETH), Hop::rx(role::HUB, "veth-a")];
        let (server, device, number) = match peer {
            Peer::Host => {
                way.push(Hop::rx(role::HUB, BRIDGE));
                (role::HUB, BRIDGE, host::HUB)
            }
            Peer::Local => {
                lab.veth((role::B, ETH), (role::HUB, "veth-b"))?;
                ports.push(PORT_B);
                way.extend([Hop::tx(role::HUB, "veth-b"), Hop::rx(role::B, ETH)]);
                (role::B, ETH, host::B)
            }
            Peer::Far => {
                lab.wire()?;
                ports.push(PORT_FAR);
                way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
                (role::FAR, FAR_END, host::FAR)
            }
        };
        lab.ovs_bridge(self.name(), &ports)?;
        Ok(Topology {
            client: lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(server, device, Subnet::LAN.host(number))?,
            way,
        })
    }
}
