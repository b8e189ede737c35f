//! `wireguard`: a WireGuard tunnel (`drivers/net/wireguard`) over a veth pair, or over the wire. All that is sent is encrypted
//! and authenticated by ChaCha20-Poly1305, by workers of the kernel on all CPUs.

use hopyard_net::LinkKind;

use super::tunnel::{Tunnel, ends};
use super::{Need, Path};
use crate::model::Peer;
use crate::random::key;
use crate::{Builder, Result, Subnet, Topology};

const TUNNEL: Tunnel = Tunnel {
    path: "wireguard",
    device: "wg0",
    // Outer IPv4 and UDP headers, and those of a data message with its tag (WireGuard, section 5.4.6).
    overhead: 20 + 8 + 16 + 16,
    kind: |_, _| LinkKind::Wireguard,
};
/// The port that WireGuard's pages use; WireGuard has none of its own.
const PORT: u16 = 51820;

pub(super) static WIREGUARD: Path = Path {
    name: TUNNEL.path,
    summary: "a WireGuard tunnel, encrypted; local: over a veth pair between the endpoints, far: from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, Need::WIREGUARD],
    rules_instead: |_| "the endpoints; the host: the tunnel's UDP, encrypted",
    mtu_owner: "the tunnel's device: 60 bytes less than below",
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let topology = TUNNEL.build(lab, peer)?;
    let [near, far] = ends(peer);
    let mut keys = Vec::new();
    for end in [near, far] {
        // The kernel makes a key of any number (RFC 7748, section 5).
        let device = lab.space(end.role)?;
        keys.push(device.set_wireguard_key(TUNNEL.device, key()?, PORT)?);
    }
    let others = [(near, far, keys[1]), (far, near, keys[0])];
    for (end, other, key) in others {
        let network = Subnet::LAN.host(0);
        lab.space(end.role)?.add_wireguard_peer(
            TUNNEL.device,
            key,
            (other.outer().v4, PORT).into(),
            &[
                (network.v4.into(), Subnet::V4_PREFIX),
                (network.v6.into(), Subnet::V6_PREFIX),
            ],
        )?;
    }
    Ok(topology)
}
