//! `ipsec` and `ipsec-tunnel`: ESP (RFC 4303) with AES-128-GCM (RFC 4106) over a veth pair, without a key daemon.

use hopyard_net::EspMode;

use super::{Build, Need, Path};
use crate::builder::ETH;
use crate::encrypted::End;
use crate::model::{Hop, LoadKind, Peer};
use crate::topology::{host, role};
use crate::{Builder, Error, Result, Subnet, Topology};

/// Least MTU of an IPv6 link (RFC 8200, section 5), bytes.
const LEAST_INSIDE: u32 = 1280;

/// What a packet grows by at most, bytes: header and number of RFC 4106, 16 bytes, tag of 16, and up to 5 that fill it up.
const OVERHEAD: u32 = 8 + 8 + 16 + 5;
/// The IP header that tunnel mode adds, bytes.
const OUTER_HEADER: u32 = 20;

/// Packets of the endpoints' own addresses are encrypted.
pub(super) static TRANSPORT: Path = Path {
    name: "ipsec",
    summary: "a veth pair between the endpoints, whose packets IPsec encrypts (ESP in transport mode, AES-GCM)",
    ..path(|lab, _| build(lab, EspMode::Transport))
};

/// Whole packets are encrypted, between further addresses of the same devices.
pub(super) static TUNNEL: Path = Path {
    name: "ipsec-tunnel",
    summary: "the same in tunnel mode: whole packets are encrypted and get another IP header",
    ..path(|lab, _| build(lab, EspMode::Tunnel))
};

/// What both have in common.
const fn path(build: Build) -> Path {
    Path {
        peers: &[Peer::Local],
        needs: &[Need::VETH, Need::ESP],
        mtu_owner: "the pair; TCP takes the room for the headers off",
        refused_loads: &[(
            LoadKind::UdpGso,
            "does not carry load `udp_gso`: the kernel cuts no datagram that IPsec encrypts afterwards (`udp_send_skb`); choose load \
             `udp_stream`",
        )],
        ..Path::new(build)
    }
}

fn build(lab: &mut Builder, mode: EspMode) -> Result<Topology> {
    let (path, least) = match mode {
        EspMode::Transport => (TRANSPORT.name, LEAST_INSIDE + OVERHEAD),
        EspMode::Tunnel => (TUNNEL.name, LEAST_INSIDE + OVERHEAD + OUTER_HEADER),
    };
    if lab.mtu() < least {
        return Err(Error::MtuTooSmall { path, least });
    }
    lab.veth((role::A, ETH), (role::B, ETH))?;
    let end = |role, number| End {
        role,
        inner: Subnet::LAN.host(number),
        outer: match mode {
            EspMode::Transport => Subnet::LAN.host(number),
            EspMode::Tunnel => Subnet::UNDERLAY.host(number),
        },
    };
    let ends = [end(role::A, host::A), end(role::B, host::B)];
    if mode == EspMode::Tunnel {
        for end in ends {
            lab.address(end.role, ETH, end.outer)?;
        }
    }
    let client = lab.endpoint(role::A, ETH, ends[0].inner)?;
    let server = lab.endpoint(role::B, ETH, ends[1].inner)?;
    let [encrypts, decrypts] = lab.encrypt(mode, ends)?;
    let way = vec![
        Hop::tx(role::A, ETH),
        encrypts,
        decrypts,
        Hop::rx(role::B, ETH),
    ];
    Ok(Topology::pair(client, server, way))
}
