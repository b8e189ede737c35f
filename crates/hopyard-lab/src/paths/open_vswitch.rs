//! `ovs-veth` and `ovs-internal`: Open vSwitch in the hub, with veth ports or with its own internal ports.

use std::time::Duration;

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Axes, Hop, Peer};
use crate::ovs::{self, BRIDGE, Port};
use crate::topology::{host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Result, Subnet, Topology};

pub(super) static OVS_VETH: Ovs = Ovs { internal: false };
pub(super) static OVS_INTERNAL: Ovs = Ovs { internal: true };

/// The hub's end of the wire.
const PORT_FAR: Port = Port::Device {
    name: UPLINK,
    other: (role::FAR, FAR_END),
};

pub(super) struct Ovs {
    internal: bool,
}

/// How an endpoint is attached: its own device, and the hub's end of it where it has one.
struct Attached {
    device: &'static str,
    hub_end: Option<&'static str>,
    port: Port,
}

impl Path for Ovs {
    fn name(&self) -> &'static str {
        if self.internal {
            "ovs-internal"
        } else {
            "ovs-veth"
        }
    }

    fn summary(&self) -> &'static str {
        if self.internal {
            "Open vSwitch in the hub, its internal ports as the endpoints' devices; datapath as for ovs-veth"
        } else {
            "Open vSwitch in the hub, veth ports; kernel datapath where the kernel has it, else userspace"
        }
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    fn has_vlans(&self, _: &Axes) -> bool {
        true
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "each port; the userspace datapath takes 1500"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, ovs::NEED]
    }

    /// Starting the daemons. The userspace datapath spends 100 ms of it asleep, to learn the frequency of the
    /// CPU's time stamp counter (`pmd_perf_estimate_tsc_frequency`).
    fn extra_time(&self) -> Duration {
        Duration::from_millis(150)
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "flows of Open vSwitch (with ct); the endpoints"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let a = self.attach(lab, role::A, "veth-a", "int-a")?;
        let mut ports = vec![a.port];
        let mut way = vec![Hop::tx(role::A, a.device)];
        way.extend(a.hub_end.map(|end| Hop::rx(role::HUB, end)));
        let inside = match peer {
            Peer::Host => {
                way.push(Hop::rx(role::HUB, BRIDGE));
                Some((role::HUB, BRIDGE, host::HUB))
            }
            Peer::Local => {
                let b = self.attach(lab, role::B, "veth-b", "int-b")?;
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
        // Internal ports are there from here on.
        lab.ovs_bridge(self.name(), &ports)?;
        Ok(Topology {
            client: lab.endpoint(role::A, a.device, Subnet::LAN.host(host::A))?,
            server: match inside {
                Some((role, device, number)) => {
                    lab.endpoint(role, device, Subnet::LAN.host(number))?
                }
                None => lab.far_end(Subnet::LAN, &mut way)?,
            },
            way,
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}

impl Ovs {
    /// Open vSwitch knows its ports by name, so internal ones keep theirs.
    fn attach(
        &self,
        lab: &mut Builder,
        namespace: &'static str,
        hub_end: &'static str,
        internal: &'static str,
    ) -> Result<Attached> {
        if self.internal {
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
}
