//! `veth-xdp`: a veth pair into the host for each end, and XDP in their driver hands each frame from one to the other.

use super::{Need, Path};
use crate::builder::ETH;
use crate::model::{Hop, OffloadFlag, Peer, Rate};
use crate::topology::{host, role};
use crate::units::show_rate;
use crate::wire::{FAR_END, UPLINK};
use crate::{Builder, Error, Result, Subnet, Topology};

/// The hub's ends of the pairs.
const PORT_A: &str = "veth-a";
const PORT_B: &str = "veth-b";

pub(super) static VETH_XDP: Path = Path {
    name: "veth-xdp",
    summary: "a veth pair into the host for each end; XDP in the driver hands each frame from one to the other",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::XDP],
    axes: &["queues"],
    rules_instead: |_| "the XDP program; the endpoints",
    // A question of its own: without segmentation offload streams are slower than over any other veth.
    by_name_only: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let pairs = Pairs::make(lab, peer)?;
    let redirected = lab.redirect_by_xdp(pairs.hub, [(role::A, ETH), pairs.server])?;
    pairs.topology(lab, redirected)
}

/// Devices between which XDP, or who is given frames by XDP, forwards.
pub(super) struct Pairs {
    /// The hub's, towards the client and towards the server.
    pub(super) hub: [&'static str; 2],
    /// The server's.
    server: (&'static str, &'static str),
    number: u16,
}

impl Pairs {
    /// A veth pair into the hub for each end, or the wire.
    pub(super) fn make(lab: &mut Builder, peer: Peer) -> Result<Self> {
        lab.queued_veth((role::A, ETH), (role::HUB, PORT_A))?;
        let (other, server, number) = match peer {
            Peer::Far => {
                if let Some(Rate(Some(rate_bps))) = lab.axes().rate_bps {
                    return Err(Error::refused(
                        format!("{}/{UPLINK}", role::HUB),
                        "rate",
                        show_rate(rate_bps),
                        "XDP sends past the queue that would shape it; leave `rate` out, or choose another path",
                    ));
                }
                lab.wire()?;
                (UPLINK, (role::FAR, FAR_END), host::FAR)
            }
            _ => {
                lab.queued_veth((role::B, ETH), (role::HUB, PORT_B))?;
                (PORT_B, (role::B, ETH), host::B)
            }
        };
        for (role, device) in [(role::A, ETH), server] {
            // XDP hands on the bytes of a frame alone, and not that its checksum is still to be written.
            lab.fix_off(role, device, &[OffloadFlag::TxChecksum]);
        }
        Ok(Self {
            hub: [PORT_A, other],
            server,
            number,
        })
    }

    /// Both ends, and the way by what forwards.
    pub(super) fn topology(self, lab: &mut Builder, forwards: Hop) -> Result<Topology> {
        let (role, device) = self.server;
        let client = lab.endpoint(role::A, ETH, Subnet::LAN.host(host::A))?;
        let server = lab.endpoint(role, device, Subnet::LAN.host(self.number))?;
        let way = vec![
            Hop::tx(role::A, ETH),
            Hop::rx(role::HUB, self.hub[0]),
            forwards,
            Hop::tx(role::HUB, self.hub[1]),
            Hop::rx(role, device),
        ];
        Ok(Topology::pair(client, server, way))
    }
}
