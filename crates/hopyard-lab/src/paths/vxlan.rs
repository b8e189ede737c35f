//! `vxlan`: a VXLAN tunnel (RFC 7348) over a veth pair, or over the wire.
//!
//! The MTU asked for is the underlay's; inside the tunnel it is smaller by the headers, as overlays have it.

use std::net::IpAddr;

use hopyard_net::LinkKind;

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, Peer};
use crate::topology::{Addresses, host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Error, Result, Subnet, Topology};

/// The tunnel's device at either end.
const TUNNEL: &str = "vx0";
/// Outer Ethernet, IPv4, UDP and VXLAN headers, bytes.
const OVERHEAD: u32 = 50;
/// Least MTU of an IPv6 link (RFC 8200, section 5), bytes.
const LEAST_INSIDE: u32 = 1280;
/// Network identifier; any will do, there is one tunnel per lab.
const VNI: u32 = 42;
/// RFC 7348.
const PORT: u16 = 4789;

pub(super) struct Vxlan;

impl Path for Vxlan {
    fn name(&self) -> &'static str {
        "vxlan"
    }

    fn summary(&self) -> &'static str {
        "a VXLAN tunnel; local: over a veth pair between the endpoints, far: from the hub over the wire"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::VXLAN]
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the endpoints; the host: the tunnel's UDP"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        if lab.mtu() < LEAST_INSIDE + OVERHEAD {
            return Err(Error::MtuTooSmall {
                path: self.name(),
                least: LEAST_INSIDE + OVERHEAD,
            });
        }
        // (namespace and device below, host number) of the client's and of the server's end.
        let ((below, lower, number), (far_role, far_lower, far_number)) = match peer {
            Peer::Far => {
                lab.wire()?;
                (
                    (role::HUB, UPLINK, host::HUB),
                    (role::FAR, FAR_END, host::FAR),
                )
            }
            _ => {
                lab.veth((role::A, ETH), (role::B, ETH))?;
                ((role::A, ETH, host::A), (role::B, ETH, host::B))
            }
        };
        let (near, far) = (
            Subnet::UNDERLAY.host(number),
            Subnet::UNDERLAY.host(far_number),
        );
        lab.address(below, lower, near)?;
        lab.address(far_role, far_lower, far)?;
        let mtu = lab.mtu() - OVERHEAD;
        // Towards `far` the tunnel begins in the hub while its device lives in the endpoint.
        lab.link_into(below, role::A, TUNNEL, tunnel(near, far), mtu)?;
        lab.link_into(far_role, far_role, TUNNEL, tunnel(far, near), mtu)?;
        Ok(Topology {
            client: lab.endpoint(role::A, TUNNEL, Subnet::LAN.host(host::A))?,
            server: lab.endpoint(far_role, TUNNEL, Subnet::LAN.host(far_number))?,
            way: vec![
                Hop::tx(role::A, TUNNEL),
                Hop::tx(below, lower),
                Hop::rx(far_role, far_lower),
                Hop::rx(far_role, TUNNEL),
            ],
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}

fn tunnel(from: Addresses, to: Addresses) -> LinkKind<'static> {
    LinkKind::Vxlan {
        vni: VNI,
        local: IpAddr::V4(from.v4),
        remote: IpAddr::V4(to.v4),
        port: PORT,
        lower: None,
    }
}
