//! What tunnels share: two ends over a veth pair, or over the wire.
//!
//! The MTU asked for is the underlay's; inside a tunnel it is smaller by the headers, as overlays have it.

use hopyard_net::LinkKind;

use crate::builder::ETH;
use crate::far::{Extra, Vxlan};
use crate::model::{Hop, Peer, Switch};
use crate::topology::{Addresses, host, role};
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Endpoint, Error, Result, Subnet, Topology};

/// Least MTU of an IPv6 link (RFC 8200, section 5), bytes.
const LEAST_INSIDE: u32 = 1280;

/// What tunnels differ by.
pub(super) struct Tunnel {
    /// Name of the path.
    pub(super) path: &'static str,
    /// The tunnel's device at either end.
    pub(super) device: &'static str,
    /// What it adds to a packet, with the outer IPv4 header, bytes; of one that carries Ethernet frames, with the inner
    /// Ethernet header.
    pub(super) overhead: u32,
    /// Makes an end, which talks to the other one.
    pub(super) kind: fn(End, End) -> LinkKind<'static>,
}

/// An end: the namespace that its device lives in, the one that its traffic leaves by, and the device there.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) role: &'static str,
    pub(super) below: &'static str,
    pub(super) lower: &'static str,
    pub(super) number: u16,
}

impl End {
    /// Its address of the underlay.
    pub(super) fn outer(self) -> Addresses {
        Subnet::UNDERLAY.host(self.number)
    }
}

/// The ends, of the client and of the server. Towards `far` the tunnel begins in the hub while its device lives in the endpoint.
pub(super) fn ends(peer: Peer) -> [End; 2] {
    let end = |role, below, lower, number| End {
        role,
        below,
        lower,
        number,
    };
    match peer {
        Peer::Far => [
            end(role::A, role::HUB, UPLINK, host::HUB),
            end(role::FAR, role::FAR, FAR_END, host::FAR),
        ],
        _ => [
            end(role::A, role::A, ETH, host::A),
            end(role::B, role::B, ETH, host::B),
        ],
    }
}

/// Makes what the tunnel's own packets go by: a veth pair or the wire, with the ends' outer addresses. The lab's MTU has to leave room
/// inside beside so many bytes of headers.
pub(super) fn underlay(
    lab: &mut Builder,
    peer: Peer,
    path: &'static str,
    overhead: u32,
) -> Result<()> {
    if lab.mtu() < LEAST_INSIDE + overhead {
        return Err(Error::MtuTooSmall {
            path,
            least: LEAST_INSIDE + overhead,
        });
    }
    let [near, far] = ends(peer);
    match peer {
        Peer::Far => lab.wire()?,
        _ => lab.veth((near.below, near.lower), (far.below, far.lower))?,
    }
    lab.address(near.below, near.lower, near.outer())?;
    if peer == Peer::Far && lab.has_real_wire() {
        // The other machine gives its card an address by itself.
        return Ok(());
    }
    lab.address(far.below, far.lower, far.outer())
}

/// The way through a tunnel whose device has this name at both ends.
pub(super) fn way([near, far]: [End; 2], device: &str) -> Vec<Hop> {
    vec![
        Hop::tx(near.role, device),
        Hop::tx(near.below, near.lower),
        Hop::rx(far.below, far.lower),
        Hop::rx(far.role, device),
    ]
}

impl Tunnel {
    /// The near end here, the far one on the other machine.
    fn across_cable(&self, lab: &mut Builder, near: End, far: End) -> Result<Topology> {
        let inside = lab.mtu() - self.overhead;
        let LinkKind::Vxlan {
            vni,
            local,
            remote,
            port,
            ..
        } = (self.kind)(far, near)
        else {
            return Err(super::no_cable(self.path));
        };
        lab.link_into(
            near.below,
            near.role,
            self.device,
            (self.kind)(near, far),
            inside,
        )?;
        let addresses = Subnet::LAN.host(far.number);
        let tunnel = Vxlan {
            device: self.device.to_owned(),
            vni,
            port,
            local,
            remote,
            mtu: inside,
            addresses: addresses.with_prefixes().into(),
        };
        lab.make_far_end(far.outer(), Extra::Vxlan(tunnel))?;
        let client = lab.endpoint(near.role, self.device, Subnet::LAN.host(host::A))?;
        let server = Endpoint::new(far.role, self.device, addresses);
        // The worker there reads the device that the data goes by.
        let way = vec![
            Hop::tx(near.role, self.device),
            Hop::tx(near.below, near.lower),
            Hop::rx(far.role, self.device),
        ];
        Ok(Topology::pair(client, server, way))
    }

    /// A wire that pauses makes pauses of copies of frames, and the kernel lets no program cut a packet that is yet to be
    /// encapsulated by a driver (`skb->encapsulation`, net/core/filter.c): whatever is ahead of the rate would be dropped.
    fn check_wire(&self, lab: &Builder, peer: Peer) -> Result<()> {
        let axes = lab.axes();
        let is_plain =
            matches!(self.path, "wireguard" | "macsec") || axes.offload == Some(Switch::Off);
        match axes.wire_pause_ns {
            Some(pause) if peer == Peer::Far && !is_plain => Err(Error::refused(
                self.device,
                "wire_pause",
                pause.to_string(),
                "the kernel makes no pauses of packets that devices are to encapsulate: set `offload` to off, leave \
                 `wire_pause` out, or choose another path",
            )),
            _ => Ok(()),
        }
    }

    /// Makes the underlay and both ends.
    pub(super) fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        self.check_wire(lab, peer)?;
        underlay(lab, peer, self.path, self.overhead)?;
        let [near, far] = ends(peer);
        let mtu = lab.mtu() - self.overhead;
        if peer == Peer::Far && lab.has_real_wire() {
            return self.across_cable(lab, near, far);
        }
        for (end, other) in [(near, far), (far, near)] {
            let kind = (self.kind)(end, other);
            lab.link_into(end.below, end.role, self.device, kind, mtu)?;
        }
        let inside = |number| Subnet::LAN.host(number);
        let client = lab.endpoint(near.role, self.device, inside(host::A))?;
        let server = lab.endpoint(far.role, self.device, inside(far.number))?;
        let way = way([near, far], self.device);
        Ok(Topology::pair(client, server, way))
    }
}
