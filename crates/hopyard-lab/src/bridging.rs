//! A Linux bridge of the hub.

use hopyard_net::{BridgeSettings, LinkKind};

use super::builder::ETH;
use super::topology::{Endpoint, Subnet, host, role};
use super::wire::UPLINK;
use super::{Builder, Result};
use crate::model::{Hop, HostLink, Peer};

/// The port of endpoint `b`.
const PORT_B: &str = "veth-b";
/// The port of the hub itself, and the device with its address, of a pair (axis `host_link`).
const HOST_PORT: &str = "veth-host";
const HOST_DEVICE: &str = "host0";

/// A bridge that forwards at once, and everything: without spanning tree, forward delay and multicast snooping.
pub fn forwarding_bridge() -> LinkKind<'static> {
    let settings = BridgeSettings::default().stp(false).forward_delay(0);
    LinkKind::Bridge(settings.multicast_snooping(false))
}

impl Builder {
    /// A bridge of that name in the hub, with netfilter's calls off or on. A new namespace has them on where
    /// br_netfilter is loaded; a kernel without it has them off.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn bridge(&mut self, name: &str, netfilter: bool) -> Result<()> {
        self.link(role::HUB, name, forwarding_bridge())?;
        let hub = self.space(role::HUB)?;
        let value = if netfilter { "1" } else { "0" };
        for protocol in ["iptables", "ip6tables", "arptables"] {
            let key = format!("net/bridge/bridge-nf-call-{protocol}");
            if netfilter || hub.has_sysctl(&key) {
                hub.set_sysctl(&key, value)?;
            }
        }
        Ok(())
    }

    /// The server of a path whose clients are ports of that bridge: the hub itself by the bridge's own device or by a
    /// pair, or what is behind another port.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub(crate) fn bridged_server(
        &mut self,
        bridge: &str,
        peer: Peer,
        way: &mut Vec<Hop>,
    ) -> Result<Endpoint> {
        match peer {
            Peer::Host if self.axes().host_link == Some(HostLink::Pair) => {
                self.veth((role::HUB, HOST_DEVICE), (role::HUB, HOST_PORT))?;
                let hub = self.space(role::HUB)?;
                hub.set_master(HOST_PORT, bridge)?;
                // The bridge's own device hears every question of ARP too, and would answer for the pair. Xen's bridges had none.
                hub.set_sysctl(&format!("net/ipv4/conf/{bridge}/arp_ignore"), "1")?;
                way.extend([
                    Hop::tx(role::HUB, HOST_PORT),
                    Hop::rx(role::HUB, HOST_DEVICE),
                ]);
                self.endpoint(role::HUB, HOST_DEVICE, Subnet::LAN.host(host::HUB))
            }
            Peer::Host => {
                way.push(Hop::rx(role::HUB, bridge));
                self.endpoint(role::HUB, bridge, Subnet::LAN.host(host::HUB))
            }
            Peer::Local => {
                self.veth((role::B, ETH), (role::HUB, PORT_B))?;
                self.space(role::HUB)?.set_master(PORT_B, bridge)?;
                way.extend([Hop::tx(role::HUB, PORT_B), Hop::rx(role::B, ETH)]);
                self.endpoint(role::B, ETH, Subnet::LAN.host(host::B))
            }
            Peer::Far => {
                self.wire()?;
                self.space(role::HUB)?.set_master(UPLINK, bridge)?;
                self.far_end(Subnet::LAN, way)
            }
        }
    }
}
