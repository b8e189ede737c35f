//! `ovs-internal`: Open vSwitch in the hub; its internal ports are the endpoints' devices.

use std::time::Duration;

use super::ovs_veth::{EXTRA_TIME, PORT_FAR};
use super::{Need, Path};
use crate::lab::builder::{FAR_END, UPLINK};
use crate::lab::ovs::{BRIDGE, Port};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The endpoints' devices: Open vSwitch knows its ports by name, so they keep theirs.
const DEVICE_A: &str = "int-a";
const DEVICE_B: &str = "int-b";

pub(super) struct OvsInternal;

impl Path for OvsInternal {
    fn name(&self) -> &'static str {
        "ovs-internal"
    }

    fn summary(&self) -> &'static str {
        "Open vSwitch in the hub, its internal ports as the endpoints' devices; datapath as for ovs-veth"
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
        let mut ports = vec![internal(DEVICE_A, role::A)];
        let mut way = vec![Hop::tx(role::A, DEVICE_A)];
        let (server, device, number) = match peer {
            Peer::Host => {
                way.push(Hop::rx(role::HUB, BRIDGE));
                (role::HUB, BRIDGE, host::HUB)
            }
            Peer::Local => {
                ports.push(internal(DEVICE_B, role::B));
                way.push(Hop::rx(role::B, DEVICE_B));
                (role::B, DEVICE_B, host::B)
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
            client: lab.endpoint(role::A, DEVICE_A, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(server, device, Subnet::LAN.host(number))?,
            way,
        })
    }
}

const fn internal(name: &'static str, into: &'static str) -> Port {
    Port::Internal { name, into }
}
