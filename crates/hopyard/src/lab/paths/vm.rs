//! `vm`: a guest with virtio-net on a tap that is a port of a Linux bridge in the hub.

use std::time::Duration;

use super::{Need, Path};
use crate::lab::builder::{ETH, FAR_END, UPLINK};
use crate::lab::topology::{host, role};
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::meter::way::Hop;
use crate::model::Peer;

/// The bridge's device.
const BRIDGE: &str = "br0";
/// The guest's tap.
const TAP: &str = "tap-a";

pub(super) struct Vm;

impl Path for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn summary(&self) -> &'static str {
        "a QEMU guest with virtio-net on a tap, a port of a bridge in the hub (by name only); local: to a \
         namespace on the same bridge"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Kind("veth"), Need::Kind("bridge"), Need::Guest]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["guest_cpus", "guest_memory"]
    }

    fn by_name_only(&self) -> bool {
        true
    }

    /// A guest boots for each sample.
    fn extra_time(&self) -> Duration {
        Duration::from_secs(4)
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.bridge(BRIDGE, false)?;
        let client = lab.guest(self.name(), role::A, TAP, Subnet::LAN.host(host::A))?;
        lab.space(role::HUB)?.set_master(TAP, BRIDGE)?;
        let mut way = vec![Hop::rx(role::HUB, TAP)];
        let server = match peer {
            Peer::Host => {
                way.push(Hop::rx(role::HUB, BRIDGE));
                lab.endpoint(role::HUB, BRIDGE, Subnet::LAN.host(host::HUB))?
            }
            Peer::Local => {
                lab.veth((role::B, ETH), (role::HUB, "veth-b"))?;
                lab.space(role::HUB)?.set_master("veth-b", BRIDGE)?;
                way.extend([Hop::tx(role::HUB, "veth-b"), Hop::rx(role::B, ETH)]);
                lab.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
            }
            Peer::Far => {
                lab.wire()?;
                lab.space(role::HUB)?.set_master(UPLINK, BRIDGE)?;
                way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
                lab.endpoint(role::FAR, FAR_END, Subnet::LAN.host(host::FAR))?
            }
        };
        Ok(Topology {
            client,
            server,
            way,
            containers: Vec::new(),
        })
    }
}
